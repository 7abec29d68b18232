"""People who label comments: where they draw the line, and how often they slip.

A person's primary label is 1 when the comment's toxicity exceeds their threshold, lowered by
their sensitivity where their own group is mentioned. Each time they label, the result is flipped
with their flip rate p. Two labels of one comment by one person then differ with probability
2p(1−p): Eq. 3 of Gordon et al. (2021) read backwards.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from modwatch.errors import MetricInputError
from modwatch.ingest.community.lexicon import GROUPS

#: Mean threshold of the annotators of each group of GROUPS.
GROUP_THRESHOLD = (0.40, 0.48, 0.54, 0.62)


@dataclass(frozen=True, kw_only=True)
class Person:
    """Someone who labels comments."""

    #: Pseudonym, such as `annotator-007`.
    person_id: str
    role: Literal["annotator", "moderator"]
    #: One of GROUPS.
    group: str
    #: In (0, 1): the toxicity above which they call a comment toxic.
    threshold: float
    #: In [0, 0.5): how often a label is not what they think.
    flip_rate: float
    #: How much lower the threshold is where their own group is mentioned.
    sensitivity: float = 0.0

    @property
    def retest_disagreement(self) -> float:
        """P(two labels of one comment differ) = 2p(1−p)."""
        return 2 * self.flip_rate * (1 - self.flip_rate)


def annotators(size: int, seed: int) -> tuple[Person, ...]:
    """Return `size` annotators, the groups in turn; thresholds follow the group, slips 4–16 %."""
    rng = np.random.default_rng([seed, 0, 100])
    people = []
    for number in range(size):
        group = number % len(GROUPS)
        threshold = float(np.clip(rng.normal(GROUP_THRESHOLD[group], 0.08), 0.05, 0.95))
        person = Person(
            person_id=f"annotator-{number + 1:03d}",
            role="annotator",
            group=GROUPS[group],
            threshold=threshold,
            flip_rate=float(rng.uniform(0.04, 0.16)),
            sensitivity=0.15,
        )
        people.append(person)
    return tuple(people)


def moderators(size: int, seed: int) -> tuple[Person, ...]:
    """Return `size` moderators, the groups in turn; trained: near 0.5, slips of 2–6 %."""
    rng = np.random.default_rng([seed, 0, 101])
    people = []
    for number in range(size):
        group = number % len(GROUPS)
        mean = 0.5 + 0.3 * (GROUP_THRESHOLD[group] - 0.5)
        person = Person(
            person_id=f"moderator-{number + 1:02d}",
            role="moderator",
            group=GROUPS[group],
            threshold=float(np.clip(rng.normal(mean, 0.03), 0.05, 0.95)),
            flip_rate=float(rng.uniform(0.02, 0.06)),
            sensitivity=0.05,
        )
        people.append(person)
    return tuple(people)


def judge(
    person: Person,
    comment_ids: Sequence[str],
    toxicity: ArrayLike,
    *,
    own_group: ArrayLike = False,
    round_number: int = 0,
    seed: int = 0,
) -> NDArray[np.int8]:
    """Return the labels, (N,) 0 or 1, that `person` gives to N comments in one round.

    `toxicity` is (N,) in [0, 1] — for replayed data the 0/1 truth itself —, `own_group` (N,) tells
    where the person's group is mentioned. The same arguments give the same labels; another
    `round_number` gives the labels of a later day.

    >>> strict = Person(person_id="m", role="moderator", group="", threshold=0.3, flip_rate=0.0)
    >>> judge(strict, ["a", "b"], [0.2, 0.4]).tolist()
    [0, 1]
    """
    severity = np.asarray(toxicity, np.float64)
    if severity.shape != (len(comment_ids),):
        raise MetricInputError(
            f"toxicity has shape {severity.shape} for {len(comment_ids)} comments; give one each."
        )
    threshold = person.threshold - person.sensitivity * np.asarray(own_group, np.float64)
    slips = np.array(
        [_uniform(seed, person.person_id, c, round_number) for c in comment_ids], np.float64
    )
    return ((severity > threshold) ^ (slips < person.flip_rate)).astype(np.int8)


def _uniform(seed: int, person_id: str, comment_id: str, round_number: int) -> float:
    """Return a number in [0, 1) that depends on nothing but its arguments."""
    key = f"{seed}\x1f{person_id}\x1f{comment_id}\x1f{round_number}"
    digest = hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest) / 2**64
