"""A tiny corpus with an obvious rule, and models trained on it."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from modwatch.models.artifact import save
from modwatch.models.recipe import offline_recipe
from modwatch.models.training import train

_PLAIN = ["the", "garden", "needs", "rain", "and", "old", "bridge", "paint", "birds", "sing"]
_RUDE = ["grumblesnort", "fizzlewit", "bogwaddle"]

TINY = offline_recipe(
    vocab_size=200,
    hidden_size=16,
    epochs=8,
    batch_size=16,
    max_length=16,
    random_features=64,
    patience=100,
    evaluations=1,
)


def tiny_corpus(n: int = 240, seed: int = 0) -> tuple[list[str], list[int]]:
    """Return `n` texts of invented words; a third hold a rude one and are labelled 1."""
    rng = np.random.default_rng(seed)
    texts, labels = [], []
    for i in range(n):
        words = list(rng.choice(_PLAIN, rng.integers(3, 12)))
        if i % 3 == 0:
            words[rng.integers(len(words))] = str(rng.choice(_RUDE))
        texts.append(" ".join(words))
        labels.append(int(i % 3 == 0))
    return texts, labels


@pytest.fixture(scope="session")
def corpus():
    return tiny_corpus()


@pytest.fixture(scope="session")
def tiny_recipe():
    return TINY


@pytest.fixture(scope="session")
def tiny_model(corpus):
    texts, labels = corpus
    return train(texts, labels, recipe=TINY, seed=1)


@pytest.fixture(scope="session")
def tiny_artifact(tiny_model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("artifact") / "tiny"
    save(tiny_model, folder)
    return folder


@pytest.fixture
def artifact_copy(tiny_artifact, tmp_path):
    """Return a function that copies the artifact, to break the copy."""
    return lambda: Path(shutil.copytree(tiny_artifact, tmp_path / "copy"))
