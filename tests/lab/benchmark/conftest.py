"""A small benchmark on the synthetic community, run once a session."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from modwatch.models.recipe import offline_recipe
from modwatch_lab.benchmark import run_cotomod
from modwatch_lab.benchmark.corpora import BenchmarkData, benchmark_data

TINY = offline_recipe(
    vocab_size=300,
    hidden_size=16,
    batch_size=32,
    max_length=32,
    random_features=32,
    epochs=1,
    evaluations=1,
    max_steps=8,
    members=2,
    passes=2,
)
SEEDS, DRAWS = (0, 1), 5


def small_data() -> BenchmarkData:
    return benchmark_data("synthetic", train_examples=700, test_examples=300)


@dataclass(frozen=True, kw_only=True)
class Finished:
    """A benchmark that has run: its folder, what it returned, and its messages."""

    folder: Path
    results: dict[str, Any]
    lines: list[str]


@pytest.fixture(scope="session")
def data():
    return small_data()


@pytest.fixture(scope="session")
def tiny():
    return TINY


@pytest.fixture(scope="session")
def finished(data, tiny, tmp_path_factory):
    folder = tmp_path_factory.mktemp("cotomod")
    lines: list[str] = []
    results = run_cotomod(data, tiny, folder, seeds=SEEDS, draws=DRAWS, say=lines.append)
    return Finished(folder=folder, results=results, lines=lines)


@pytest.fixture
def run_again(data, tiny):
    """Return a function that runs one method with one loss and seed in a folder."""

    def run(folder: Path, **changes: Any) -> tuple[dict[str, Any], list[str]]:
        lines: list[str] = []
        given = {"methods": ["deterministic"], "losses": ["focal"], "seeds": [0], "draws": DRAWS}
        recipe = changes.pop("recipe", tiny)
        found = run_cotomod(data, recipe, folder, **given | changes, say=lines.append)
        return found, lines

    return run
