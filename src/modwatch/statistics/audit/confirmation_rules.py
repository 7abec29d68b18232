"""Confirmations: which first labels of an audit get a second, blind, independent label.

Two-phase sampling (Neyman 1938; Särndal, Swensson & Wretman 1992, chapter 9). Each drawn comment
has a random number of its own, which decides beforehand which first labels of it are confirmed. A
third person follows where two labels differ.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from modwatch.common.errors import DesignError

#: Side, labels and mean score of a stratum.
Stratum = tuple[str, int, float]

#: Expected error rates of the labels, for plan and forecast.
FALSE_POSITIVE, FALSE_NEGATIVE = 0.02, 0.1

#: Labels on one comment at most.
MOST_LABELS = 3

#: Least probability of every label: any error may be found.
_LEAST = 0.02

#: Labels by side and value in the order in which they are confirmed, and the part of the budget
#: that is left which they may take. A positive among the unflagged is a missed comment of the
#: period many times over. Second labels of flagged positives estimate the false-negative rate.
_ORDER = (
    ("unflagged", 1, 0.65),
    ("flagged", 0, 0.65),
    ("flagged", 1, 0.9),
    ("unflagged", 0, 1.0),
)


@dataclass(frozen=True, kw_only=True)
class ConfirmationRule:
    """The probabilities in [0, 1] that a first label of one side is confirmed.

    DesignError for values out of range.
    """

    #: Of a label "not against the rules", 0.
    negative: float
    #: Of a label "against the rules", 1.
    positive: float

    def __post_init__(self) -> None:
        if not (0 <= self.negative <= 1 and 0 <= self.positive <= 1):
            raise DesignError("the probability of a confirmation must be in [0, 1]")

    @property
    def by_label(self) -> tuple[float, float]:
        """The probabilities of the labels 0 and 1."""
        return self.negative, self.positive

    def confirmed(self, key: int) -> tuple[int, ...]:
        """Return which first labels of the comment with a random number are confirmed.

        The lower half of `key` decides; its upper half decided about the draw.
        """
        number = (key & 0xFFFFFFFF) / 2**32
        return tuple(label for label, share in enumerate(self.by_label) if number < share)


def planned_rules(strata: Iterable[Stratum], share: float) -> dict[str, ConfirmationRule]:
    """Return the rule of each side for an expected budget of `share` × labels.

    Labels that contradict the decision are confirmed with probability one, as far as the budget
    goes; others with what is left. Empty for a share of 0; DesignError for one outside [0, 1].

    >>> rules = planned_rules([("unflagged", 900, 0.001), ("unflagged", 100, 0.2)], 0.2)
    >>> rules["unflagged"].positive
    1.0
    """
    if not 0 <= share <= 1:
        raise DesignError(f"the share of confirmations must be in [0, 1], got {share}")
    if not share:
        return {}
    by_side: dict[str, list[tuple[int, float]]] = {}
    for side, labels, score in strata:
        by_side.setdefault(side, []).append((labels, score))
    expected = {side: _expected(mine) for side, mine in by_side.items()}
    budget = share * sum(labels for mine in by_side.values() for labels, _ in mine)
    found = {side: [min(_LEAST, share)] * 2 for side in by_side}
    for side, label, part in _ORDER:
        if side in by_side:
            number, cost = expected[side][label]
            affordable = part * budget / max(number * cost, 1e-9)
            found[side][label] = min(1.0, max(found[side][label], affordable))
            budget = max(budget - found[side][label] * number * cost, 0.0)
    return {
        side: ConfirmationRule(negative=round(shares[0], 4), positive=round(shares[1], 4))
        for side, shares in found.items()
    }


def expected_confirmations(
    rules: Mapping[str, ConfirmationRule], strata: Iterable[Stratum]
) -> float:
    """Return the expected number of second and third labels."""
    total = 0.0
    for side, labels, score in strata:
        rule = rules.get(side)
        if rule is not None:
            for share, (number, cost) in zip(
                rule.by_label, _expected([(labels, score)]), strict=True
            ):
                total += share * number * cost
    return total


def _expected(
    strata: Sequence[tuple[int, float]],
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return of first labels 0 and 1: how many, and what the confirmation of one costs."""
    given, toxic = (np.array(column, np.float64) for column in zip(*strata, strict=True))
    found = []
    for right, wrong, of in (
        (1 - FALSE_POSITIVE, FALSE_NEGATIVE, 1 - toxic),
        (1 - FALSE_NEGATIVE, FALSE_POSITIVE, toxic),
    ):
        true, false = float(given @ of) * right, float(given @ (1 - of)) * wrong
        both = true + false
        differ = (true * (1 - right) + false * (1 - wrong)) / both if both else 0.0
        found.append((both, 1 + differ))
    return found[0], found[1]
