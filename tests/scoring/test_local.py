"""The in-process scorer: order, invariance, hostile texts, broken artifacts."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from modwatch.errors import ModelError
from modwatch.scoring import engine
from modwatch.scoring.local import LocalScorer
from modwatch.scoring.scorer import Predictions, Scorer

HOSTILE = ["", "\x00", "🙂", "שלום", "‮x", "\ud800".encode("utf-8", "replace").decode(), "<b>"]


@pytest.fixture(scope="module")
def scorer(scoring_artifact: Path) -> LocalScorer:
    return LocalScorer(scoring_artifact, model_version="7")


def columns(predictions: Predictions) -> np.ndarray:
    return np.stack([predictions.prob, predictions.model_variance, predictions.mutual_information])


def mixed(n: int, seed: int = 0) -> list[str]:
    rng = np.random.default_rng(seed)
    words = ["river", "lamp", "stone", "fizzle", "unheard"]
    return [" ".join(rng.choice(words, rng.integers(0, 40))) for _ in range(n)]


def test_satisfies_the_interface(scorer: LocalScorer) -> None:
    as_scorer: Scorer = scorer
    assert as_scorer.model_version == "7"
    assert 0 <= as_scorer.threshold <= 1


def test_no_texts_no_predictions(scorer: LocalScorer) -> None:
    assert columns(scorer.score([])).shape == (3, 0)


def test_predictions_are_float32_in_range(scorer: LocalScorer) -> None:
    predictions = scorer.score(mixed(50) + HOSTILE)
    for column in columns(predictions):
        assert column.dtype == np.float32
        assert np.isfinite(column).all()
        assert (column >= 0).all()
    assert (predictions.prob <= 1).all()
    assert (predictions.model_variance <= 0.25).all()


def test_same_texts_same_bits(scorer: LocalScorer, scoring_artifact: Path) -> None:
    texts = mixed(300)
    first = columns(scorer.score(texts))
    again = LocalScorer(scoring_artifact, model_version="7").score(texts)
    assert np.array_equal(first, columns(again))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(order=st.permutations(range(12)))
def test_company_and_order_do_not_matter(scorer: LocalScorer, order: list[int]) -> None:
    texts = mixed(12, seed=5)
    alone = np.concatenate([columns(scorer.score([text])) for text in texts], axis=1)
    together = columns(scorer.score([texts[i] for i in order]))
    assert np.abs(together - alone[:, order]).max() <= 1e-6


def test_chunks_do_not_matter(scorer: LocalScorer, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = mixed(100)
    whole = columns(scorer.score(texts))
    monkeypatch.setattr(engine, "WINDOW", 7)
    assert np.abs(columns(scorer.score(texts)) - whole).max() <= 1e-6


def test_megabyte_comment_is_cut_to_the_same_score(scorer: LocalScorer) -> None:
    long = "river stone " * 90_000
    predictions = scorer.score([long, long[:5_000]])
    assert predictions.prob[0] == pytest.approx(predictions.prob[1], abs=1e-6)


def test_bf16_moves_probabilities_little(scorer: LocalScorer, scoring_artifact: Path) -> None:
    """Stated tolerance of bf16: 0.02 in probability."""
    coarse = LocalScorer(scoring_artifact, model_version="7", precision="bf16")
    texts = mixed(200)
    assert np.abs(coarse.score(texts).prob - scorer.score(texts).prob).max() <= 0.02


def test_unknown_precision_is_refused(scoring_artifact: Path) -> None:
    with pytest.raises(ModelError, match=r"auto, fp32 or bf16, got .fp64"):
        LocalScorer(scoring_artifact, model_version="7", precision="fp64")  # type: ignore[arg-type]


def test_missing_artifact_names_the_folder(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="nowhere"):
        LocalScorer(tmp_path / "nowhere", model_version="7")


def test_interface_does_not_load_torch() -> None:
    code = "import sys, modwatch.scoring.scorer; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0
