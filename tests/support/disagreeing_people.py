"""Simulated people with opinions and slips."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from modwatch.statistics.disagreement import Annotations


@dataclass(frozen=True, kw_only=True)
class World:
    """Annotations of I items, and what only a simulation knows."""

    annotations: Annotations
    #: (I,) share of the annotators whose primary label is 1.
    opinion: NDArray[np.float64]
    #: (I,) a model's probability.
    prob: NDArray[np.float64]
    #: Mean of the flip rates.
    flip_rate: float


def world(
    seed: int, *, items: int = 4_000, annotators: int = 5, retests: float = 0.2, hard: bool = False
) -> World:
    """Forty people with thresholds; each flips at their own rate, or more on hard items."""
    rng = np.random.default_rng(seed)
    toxicity = rng.beta(0.7, 1.5, items)
    threshold = np.clip(rng.normal(0.5, 0.12, 40), 0.05, 0.95)
    item = np.repeat(np.arange(items), annotators)
    person = np.concatenate([rng.permutation(40)[:annotators] for _ in range(items)])
    primary = toxicity[item] > threshold[person]
    rate = rng.uniform(0.04, 0.16, 40)[person]
    if hard:
        rate = np.clip(0.25 - 1.2 * np.abs(toxicity[item] - 0.5), 0.02, 0.3)
    first, second = (primary ^ (rng.random(item.size) < rate) for _ in range(2))
    again = rng.random(item.size) < retests
    annotations = Annotations.from_columns(
        item=np.r_[item, item[again]],
        annotator=np.r_[person, person[again]],
        label=np.r_[first, second[again]].astype(int),
    )
    noise = rng.normal(0, 0.15, items)
    return World(
        annotations=annotations,
        opinion=np.bincount(item, primary, items) / annotators,
        prob=np.clip(0.8 * toxicity + 0.05 + noise, 0, 1),
        flip_rate=float(rate.mean()),
    )
