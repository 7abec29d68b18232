"""Simulated annotators and moderators: a threshold on the toxicity, and a flip rate.

The primary label of a person is 1 when the toxicity of the comment exceeds their threshold, which
is lower by their sensitivity where the comment mentions their own group. Each label is flipped
with probability p, the flip rate, so two labels of one comment by one person differ with
probability 2p(1−p): the inverse of Eq. 3 of Gordon et al. (2021).
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from modwatch.common.errors import MetricInputError
from modwatch_lab.community.lexicon import GROUPS

#: Mean threshold of the annotators of each group of GROUPS.
GROUP_THRESHOLD = (0.40, 0.48, 0.54, 0.62)


@dataclass(frozen=True, kw_only=True)
class Person:
    """One simulated person."""

    #: Pseudonym, such as `annotator-007`.
    person_id: str
    role: Literal["annotator", "moderator"]
    #: One of GROUPS.
    group: str
    #: In (0, 1): comments with a higher toxicity are toxic to them.
    threshold: float
    #: In [0, 0.5): probability that a label is not the primary label.
    flip_rate: float
    #: Reduction of the threshold for comments that mention their own group.
    sensitivity: float = 0.0


def annotators(size: int, seed: int) -> tuple[Person, ...]:
    """Return `size` annotators of alternating groups; flip rates are in [0.04, 0.16]."""
    rng = np.random.default_rng([seed, 0, 100])
    return tuple(
        Person(
            person_id=f"annotator-{number + 1:03d}",
            role="annotator",
            group=GROUPS[number % len(GROUPS)],
            threshold=_threshold(GROUP_THRESHOLD[number % len(GROUPS)], 0.08, rng),
            flip_rate=float(rng.uniform(0.04, 0.16)),
            sensitivity=0.15,
        )
        for number in range(size)
    )


def moderators(size: int, seed: int) -> tuple[Person, ...]:
    """Return `size` moderators: thresholds closer to 0.5, flip rates in [0.02, 0.06]."""
    rng = np.random.default_rng([seed, 0, 101])
    return tuple(
        Person(
            person_id=f"moderator-{number + 1:02d}",
            role="moderator",
            group=GROUPS[number % len(GROUPS)],
            threshold=_threshold(
                0.5 + 0.3 * (GROUP_THRESHOLD[number % len(GROUPS)] - 0.5), 0.03, rng
            ),
            flip_rate=float(rng.uniform(0.02, 0.06)),
            sensitivity=0.05,
        )
        for number in range(size)
    )


def _threshold(mean: float, spread: float, rng: np.random.Generator) -> float:
    return float(np.clip(rng.normal(mean, spread), 0.05, 0.95))


def simulate_labels(
    person: Person,
    comment_ids: Sequence[str],
    toxicity: ArrayLike,
    *,
    own_group: ArrayLike = False,
    round_number: int = 0,
    seed: int = 0,
) -> NDArray[np.int8]:
    """Return the labels, (N,) 0 or 1, that `person` gives to N comments in one round.

    `toxicity` is (N,) in [0, 1], for replayed data the true label; `own_group` (N,) is true where
    the comment mentions the group of the person. The same arguments give the same labels; another
    `round_number` gives new flips, as on a later day.

    >>> strict = Person(person_id="m", role="moderator", group="", threshold=0.3, flip_rate=0.0)
    >>> simulate_labels(strict, ["a", "b"], [0.2, 0.4]).tolist()
    [0, 1]
    """
    severity = np.asarray(toxicity, np.float64)
    if severity.shape != (len(comment_ids),):
        raise MetricInputError(
            f"toxicity has shape {severity.shape} for {len(comment_ids)} comments; give one each."
        )
    threshold = person.threshold - person.sensitivity * np.asarray(own_group, np.float64)
    draws = np.array(
        [_uniform(seed, person.person_id, c, round_number) for c in comment_ids], np.float64
    )
    return ((severity > threshold) ^ (draws < person.flip_rate)).astype(np.int8)


def _uniform(seed: int, person_id: str, comment_id: str, round_number: int) -> float:
    """Return a number in [0, 1) that depends on the arguments only."""
    key = f"{seed}\x1f{person_id}\x1f{comment_id}\x1f{round_number}"
    digest = hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest) / 2**64
