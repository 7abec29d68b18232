"""The in-process scorer: order, invariance, hostile texts, broken artifacts."""

import gc
import subprocess
import sys
import weakref
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from transformers import BertConfig

from modwatch.common.errors import ModelError
from modwatch.models import devices
from modwatch.models.artifact import LoadedModel, load
from modwatch.models.batches import Batch
from modwatch.models.scoring import local
from modwatch.models.scoring import scorer as scorer_module
from modwatch.models.scoring.local import LocalScorer
from modwatch.models.scoring.scorer import Predictions, Scorer

HOSTILE = ["", "\x00", "🙂", "שלום", "‮x", "\ud800".encode("utf-8", "replace").decode(), "<b>"]


@pytest.fixture(scope="module")
def scorer(scoring_artifact):
    return LocalScorer(scoring_artifact, model_version="7")


def columns(predictions: Predictions) -> np.ndarray:
    return predictions.values[[0, 2, 3]]


def mixed(n: int, seed: int = 0) -> list[str]:
    rng = np.random.default_rng(seed)
    words = ["river", "lamp", "stone", "fizzle", "unheard"]
    return [" ".join(rng.choice(words, rng.integers(0, 40))) for _ in range(n)]


def test_satisfies_the_interface(scorer):
    as_scorer: Scorer = scorer
    assert as_scorer.model_version == "7"
    assert 0 <= as_scorer.threshold <= 1


def test_no_texts_no_predictions(scorer):
    assert columns(scorer.score([])).shape == (3, 0)


def test_predictions_are_float32_in_range(scorer):
    predictions = scorer.score(mixed(50) + HOSTILE)
    for column in columns(predictions):
        assert column.dtype == np.float32
        assert np.isfinite(column).all()
        assert (column >= 0).all()
    assert (predictions.prob <= 1).all()
    assert (predictions.further["model_variance"] <= 0.25).all()


def test_same_texts_same_bits(scorer, scoring_artifact):
    texts = mixed(300)
    first = columns(scorer.score(texts))
    again = LocalScorer(scoring_artifact, model_version="7").score(texts)
    assert np.array_equal(first, columns(again))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(order=st.permutations(range(12)))
def test_company_and_order_do_not_matter(scorer, order):
    texts = mixed(12, seed=5)
    alone = np.concatenate([columns(scorer.score([text])) for text in texts], axis=1)
    together = columns(scorer.score([texts[i] for i in order]))
    assert np.abs(together - alone[:, order]).max() <= 1e-6


def test_chunks_do_not_matter(scorer, monkeypatch):
    texts = mixed(100)
    whole = columns(scorer.score(texts))
    monkeypatch.setattr(scorer_module, "WINDOW", 7)
    assert np.abs(columns(scorer.score(texts)) - whole).max() <= 1e-6


def test_a_comment_of_a_megabyte_is_cut(scorer):
    long = "river stone " * 90_000
    predictions = scorer.score([long, long[:5_000]])
    assert predictions.prob[0] == pytest.approx(predictions.prob[1], abs=1e-6)
    assert predictions.cut.tolist() == [True, False]
    assert predictions.uncertainty[0] == 0.25 > predictions.uncertainty[1]


def test_bf16_moves_probabilities_little(scorer, scoring_artifact):
    """Stated tolerance of bf16: 0.02 in probability."""
    coarse = LocalScorer(scoring_artifact, model_version="7", precision="bf16")
    texts = mixed(200)
    assert np.abs(coarse.score(texts).prob - scorer.score(texts).prob).max() <= 0.02


def test_a_shortage_of_memory_halves_batches_until_it_is_over(scoring_artifact, monkeypatch):
    monkeypatch.setattr(devices, "_SUCCESSES", 2)
    scorer = LocalScorer(scoring_artifact, model_version="7")
    texts, most = [text[:30] for text in mixed(200)], scorer.limits
    expected = scorer.score(texts)
    predict, fits = scorer.predictor.logit_moments, 32

    def short_of_memory(batch: Batch) -> torch.Tensor:
        if len(batch.ids) > fits:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return predict(batch)

    monkeypatch.setattr(scorer.predictor, "logit_moments", short_of_memory)
    assert np.abs(columns(scorer.score(texts)) - columns(expected)).max() <= 1e-6
    assert scorer.limits.batch_size == 32
    fits = 10_000
    for _ in range(20):
        scorer.score(texts[:2])
    assert scorer.limits == most


@pytest.mark.parametrize(
    ("threads", "width", "tokens"),
    [(1, 16, 4_096), (1, 384, 682), (2, 384, 1_365), (1, 4_096, 256), (64, 768, 4_096)],
)
def test_batches_of_a_cpu_fit_the_caches_of_its_threads(threads, width, tokens, monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    encoder = torch.nn.Module()
    encoder.config = BertConfig(hidden_size=width, num_attention_heads=1)  # type: ignore[assignment]
    assert local._limits(encoder, torch.device("cpu")).batch_tokens == tokens  # type: ignore[arg-type]


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_the_encoder_is_in_memory_in_one_precision(precision, scoring_artifact, monkeypatch):
    loaded = list[weakref.ref[torch.nn.Module]]()

    def remembering(folder: Path) -> LoadedModel:
        model = load(folder)
        loaded.extend(weakref.ref(member.encoder) for member in model.members)
        return model

    monkeypatch.setattr(local, "load", remembering)
    scorer = LocalScorer(scoring_artifact, model_version="7", precision=precision)
    gc.collect()
    assert [item() is not None for item in loaded] == [precision == "fp32"]
    assert scorer.score(["river"]).prob.shape == (1,)


def test_unknown_precision_is_refused(scoring_artifact):
    with pytest.raises(ModelError, match=r"auto, fp32 or bf16, got .fp64"):
        LocalScorer(scoring_artifact, model_version="7", precision="fp64")  # type: ignore[arg-type]


def test_missing_artifact_names_the_folder(tmp_path):
    with pytest.raises(ModelError, match="nowhere"):
        LocalScorer(tmp_path / "nowhere", model_version="7")


def test_interface_does_not_load_torch():
    code = "import sys, modwatch.models.scoring.scorer; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0
