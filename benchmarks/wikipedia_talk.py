"""The files of Wikipedia Talk that several benchmarks read, and a model trained on them."""

import csv
import gzip
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from modwatch.models.artifact import save
from modwatch.models.recipe import Recipe
from modwatch.models.scoring.local import LocalScorer
from modwatch.models.training import train

Score = Callable[[Sequence[str]], NDArray[np.floating]]


@dataclass(frozen=True, kw_only=True)
class Texts:
    texts: list[str]
    labels: NDArray[np.int64]


def rows(path: Path) -> Iterator[list[str]]:
    csv.field_size_limit(10**9)
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        yield from csv.reader(file)


def stream(folder: Path) -> tuple[Texts, NDArray[np.float64]]:
    """Return the stream and the Perspective API's toxicity of each comment."""
    table = list(rows(folder / "context_gc.csv.gz"))[1:]
    labels = np.array([int(float(row[3])) for row in table])
    return Texts(texts=[row[1] for row in table], labels=labels), np.array(
        [float(row[4]) for row in table]
    )


def corpus(folder: Path, without: set[str]) -> Texts:
    """Return the training files less duplicates, broken rows and the texts of `without`."""
    found: dict[str, int] = {}
    for name in ("balanced_test", "non_toxic_train"):
        for row in rows(folder / f"{name}.csv.gz"):
            if len(row) == 2 and row[1] in ("0", "1") and row[0].strip() not in without:
                found[row[0]] = int(row[1])
    return Texts(texts=list(found), labels=np.array(list(found.values())))


def test_set(folder: Path) -> Texts:
    table = list(rows(folder / "toxicity_testset.csv.gz"))[1:]
    labels = np.array([int(row[2] == "True") for row in table])
    return Texts(texts=[row[1] for row in table], labels=labels)


def ours(train_on: Texts, recipe: Recipe, seed: int, scratch: Path) -> Score:
    model = train(train_on.texts, train_on.labels.tolist(), recipe=recipe, seed=seed)
    save(model, scratch)
    scorer = LocalScorer(scratch, model_version="candidate")
    return lambda texts: scorer.score(texts).prob
