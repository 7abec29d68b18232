"""The profile of a scorer: stages, operations by hand, the page."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from transformers import BertConfig, BertModel

from modwatch.common.errors import ModelError
from modwatch.models.classifier import build_classifier
from modwatch.models.recipe import Recipe
from modwatch.models.scoring.local import LocalScorer
from modwatch.models.scoring.profile_page import profile_page
from modwatch.models.scoring.profiling import STAGES, ScorerProfile, profile

TEXTS = ["river lamp", "stone", "fizzle unheard river"] * 20


@pytest.fixture(scope="module")
def found(scoring_artifact: Path) -> ScorerProfile:
    return profile(LocalScorer(scoring_artifact, model_version="7", precision="fp32"), TEXTS)


def test_every_stage_takes_time_and_no_comment_is_lost(found: ScorerProfile) -> None:
    assert [*found.stages] == [*STAGES]
    assert all(seconds > 0 for seconds in found.stages.values())
    assert (found.model_version, found.comments, found.precision) == ("7", 60, "fp32")
    assert found.subwords >= 60
    assert min(found.seconds, found.peak, found.bandwidth, found.memory) > 0


def test_operations_are_those_of_the_matrix_products(scoring_artifact: Path) -> None:
    """A BERT of one layer: 8d² + 4df a subword, 4dT² a comment, then the head."""
    scorer = LocalScorer(scoring_artifact, model_version="7", precision="fp32")
    recipe = Recipe(method="deterministic")
    encoder = BertModel(
        BertConfig(
            vocab_size=9_000,
            hidden_size=32,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=48,
        ),
        add_pooling_layer=False,
    )
    scorer.predictor.members[:] = [build_classifier(encoder, recipe).eval()]
    text = "river stone lamp"
    found = profile(scorer, [text] * 4)
    length = found.subwords // 4
    linear = (8 * 32**2 + 4 * 32 * 48) * length
    head = 2 * 32 * 32 + 2 * 32
    assert found.operations == 4 * (linear + 4 * 32 * length**2 + head)
    weights = 4 * (4 * 32**2 + 2 * 32 * 48 + 4 * 32 + 48 + 32)
    values = 4 * 4 * length * (4 * 2 * 32 + 2 * (32 + 48))
    assert found.bytes == weights + values


def test_packed_layers_have_the_operations_of_the_layers(scoring_artifact: Path) -> None:
    exact, packed = (
        profile(LocalScorer(scoring_artifact, model_version="7", precision=precision), TEXTS)
        for precision in ("fp32", "bf16")
    )
    assert packed.operations == exact.operations
    assert packed.bytes < exact.bytes


def test_without_comments_there_is_no_profile(scoring_artifact: Path) -> None:
    with pytest.raises(ModelError, match="no comments"):
        profile(LocalScorer(scoring_artifact, model_version="7"), [])


def test_lines_and_page_say_the_same(found: ScorerProfile) -> None:
    known = replace(
        found,
        comments=1_000,
        seconds=2.0,
        operations=4e9,
        bytes=1e8,
        peak=1e10,
        bandwidth=1e8,
        stages=dict(zip(STAGES, (0.2, 0.1, 1.0, 0.5, 0.2), strict=True)),
    )
    assert known.share_of_peak == pytest.approx(0.2)
    assert known.intensity == 40
    assert known.roof == 4e9  # the bandwidth is the limit
    text = "\n".join(known.lines())
    assert "500.0 comments/s" in text
    assert "2.0 GFLOP/s, 20.0% of 10.0 GFLOP/s of large ones; the encoder alone 40.0%" in text
    assert "tokenisation 10.0%" in text
    page = profile_page(known)
    assert "500.0 comments/s" in page
    assert "the roof is 4.0 GFLOP/s" in page
    assert re.search(r'<img src="data:image/svg', page)
    assert not re.search(r'(src|href)="(?!data:)', page)
    assert np.isfinite(known.share_of_peak)
