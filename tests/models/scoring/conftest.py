"""A saved model of a few hundred weights for the scorers."""

import numpy as np
import pytest

from modwatch.models.artifact import save
from modwatch.models.recipe import offline_recipe
from modwatch.models.training import train

RECIPE = offline_recipe(
    vocab_size=200,
    layers=1,
    hidden_size=16,
    epochs=2,
    max_length=32,
    random_features=64,
)


@pytest.fixture(scope="session")
def scoring_artifact(tmp_path_factory):
    rng = np.random.default_rng(0)
    words = ["river", "lamp", "stone", "quiet", "marble", "window", "grumble", "fizzle"]
    texts = [" ".join(rng.choice(words, rng.integers(1, 20))) for _ in range(200)]
    model = train(texts, ["fizzle" in text for text in texts], recipe=RECIPE, seed=0)
    folder = tmp_path_factory.mktemp("scoring") / "artifact"
    save(model, folder)
    return folder
