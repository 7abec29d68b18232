"""The reference that a model brings: held-out comments as it scores them."""

import json

import numpy as np
import pytest

from modwatch.common.errors import ModelError
from modwatch.models.calibration import prevalence_weights
from modwatch.models.manifest import read_manifest
from modwatch.models.reference import from_json, held_out_profile, to_json
from modwatch.models.training import train
from modwatch.statistics.drift.profile import Profile


def made(size: int = 500) -> Profile:
    prob = np.random.default_rng(1).random(size)
    lengths = np.arange(size)
    return held_out_profile(prob, np.ones(size), lengths=lengths, threshold=0.5)


def test_without_weights_every_comment_counts_once():
    profile = made()
    prob = np.random.default_rng(1).random(500)
    assert profile.comments == profile.scored == 500
    assert profile.flagged == (prob > 0.5).sum()
    assert profile.categories["length"] == {"0-49": 50, "50-199": 150, "200-999": 300}


def test_with_weights_the_flagged_share_is_that_of_the_expected_prevalence():
    rng = np.random.default_rng(2)
    label = (rng.random(20_000) < 0.3).astype(np.int64)
    prob = np.where(label == 1, rng.beta(6, 2, 20_000), rng.beta(2, 6, 20_000))
    weights = prevalence_weights(label, 0.05)
    profile = held_out_profile(prob, weights, lengths=np.ones(20_000), threshold=0.5)
    exact = float(weights[prob > 0.5].sum() / weights.sum())
    assert profile.flagged / profile.scored == pytest.approx(exact, abs=1 / profile.scored)
    assert profile.scored == int(weights.sum() ** 2 / (weights**2).sum())


def test_the_json_gives_the_same_profile():
    profile = made()
    read = from_json(json.loads(json.dumps(to_json(profile))), model_version="7")
    assert read is not None
    assert read.model_version == "7"
    assert (read.comments, read.flagged) == (profile.comments, profile.flagged)
    assert read.categories == profile.categories
    for name, counts in profile.scores.items():
        assert (read.scores[name] == counts).all()


def test_nothing_stored_is_no_reference():
    assert from_json({}, model_version="7") is None


@pytest.mark.parametrize(
    "broken",
    [
        {"comments": 3},
        {**to_json(made()), "prob": [[5_000, 1]]},
        {**to_json(made()), "prob": 3},
        {**to_json(made()), "length": []},
    ],
)
def test_values_that_are_no_reference(broken):
    with pytest.raises(ModelError, match="reference of model version 7"):
        from_json(broken, model_version="7")


def test_training_stores_the_scores_that_scoring_will_give(
    tiny_model, tiny_artifact, corpus, tiny_recipe
):
    stored = read_manifest(tiny_artifact)["training"]["reference"]
    assert stored == tiny_model.facts.reference
    assert stored["comments"] == tiny_model.facts.validation["n"]
    again = train(*corpus, recipe=tiny_recipe, seed=1)
    assert again.facts.reference == stored
