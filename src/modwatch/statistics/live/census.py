"""All comments of some days as rows, with or without labels, and the estimates from them.

The scores of all comments are known, and with them P(toxic | score) as far as the labels show it
(`statistics.calibration`). Averaged over all comments it gives every metric without an error of
sampling; what is uncertain is the curve.

That holds if comments of the same score, on either side of the routing and of the decision, are
alike whether they were drawn or not, which the design of the slice ensures, and if the curve is as
smooth as its prior. Routed comments whose label is missing are a group of their own, which only
follow-ups have labels of: without them its odds may be several times as high or as low.

The estimate by the design alone (`sample`) supposes nothing about the score, and allows for
comments that the slice has not met, such as a campaign in a narrow band of scores. Every interval
holds a part of either side of it; where it excludes the value, the interval holds both.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modwatch.statistics.arguments import Floats, Ints
from modwatch.statistics.intervals import PartialTotal
from modwatch.statistics.live.estimator import MetricEstimate
from modwatch.statistics.live.labelled_day import LabelledDay
from modwatch.statistics.live.population import Domain
from modwatch.statistics.live.sample import Sample

#: Rows, at most, that stand for the comments without a label.
MOST_ROWS = 8000

#: Part of either side of the interval by the design that every interval holds: where the value by
#: score is wrong in one direction, that holds the truth of a normal estimate in 91 %.
OWN_PART = 0.7

#: Quantiles of the score between which the share of missing labels may differ.
_MISSED_AT = (0.25, 0.5, 0.75)


class Census(Sample):
    """The labelled comments of some days, and others that stand for all without a label."""

    def _rows(self, days: Sequence[LabelledDay]) -> list[tuple[Ints, Ints | None]]:
        """Return the rows of each day, with a label and without, and which comments stand for all.

        A comment that was not routed would have been answered or not: it is a row of either kind.
        """
        left = sum(int((~day.labelled).sum()) for day in days)
        part = min(MOST_ROWS / max(left, 1), 1.0)
        lost = [day.lost for day in days]
        edges, missed = _missed(days, lost)
        found = list[tuple[Ints, Ints | None]]()
        self._kinds = list[tuple[Floats, NDArray[np.bool_]]]()
        for day, gone in zip(days, lost, strict=True):
            stands = _standing(day, gone, part)
            chosen, count = np.unique(stands[~day.labelled], return_counts=True)
            routed = gone[chosen] | (day.stratum[chosen] == 0)
            share = np.where(routed, gone[chosen], missed[np.searchsorted(edges, day.prob[chosen])])
            labelled = np.flatnonzero(day.labelled)
            weight = np.concatenate([np.ones(labelled.size), count * (1 - share), count * share])
            missing = np.concatenate([gone[labelled], 0 * chosen, 0 * chosen + 1]).astype(np.bool_)
            found.append((np.concatenate([labelled, chosen, chosen])[weight > 0], stands))
            self._kinds.append((weight[weight > 0], missing[weight > 0]))
        return found

    def _weights(
        self,
        days: Sequence[LabelledDay],  # noqa: ARG002 - known from `_rows`
        rows: Sequence[Ints],  # noqa: ARG002
    ) -> tuple[Floats, NDArray[np.bool_], dict[str, str]]:
        """Return the weight of each row (m,), whether it is missing, and that none lacks labels."""
        weights, missing = zip((np.empty(0), np.empty(0, np.bool_)), *self._kinds, strict=True)
        return np.concatenate(weights), np.concatenate(missing), {"top": "", "rest": ""}

    def _calibrated(self, weight: Floats) -> tuple[Ints, Floats]:
        """Return post-stratum and weight (m,) of the rows, which are as they are."""
        return np.zeros(weight.size, np.int64), weight

    def lacks(self, domain: Domain) -> str:  # noqa: ARG002 - of any domain
        """Return an empty text: no total lacks a label. Ask the sample of the same days."""
        return ""

    def masses(self, domain: Domain) -> Floats:
        """Return how many comments of the domain each row (m,) represents, including itself."""
        return np.asarray(self.weight * domain.part)

    observed = masses

    def total(
        self,
        outcome: Floats,
        domain: Domain,
        *,
        reach: Floats | float = 1.0,
        evident: Floats | None = None,  # noqa: ARG002 - nothing is inferred from a sample
    ) -> PartialTotal:
        """Return the total of `outcome` (m,) in [0, 1] over a domain, without sampling error."""
        nothing = np.zeros(outcome.size)
        seen = float(np.dot(outcome, self.masses(domain)))
        return PartialTotal(
            seen=seen, span=0.0, event=outcome, share=nothing, error=nothing, reach=reach
        )


def _standing(day: LabelledDay, lost: NDArray[np.bool_], part: float) -> Ints:
    """Return which comment of a day stands for each one (N,): a labelled one for itself.

    A `part` of the others, evenly spread by score, on either side of the routing and the decision.
    """
    stands = np.arange(len(day.prob))
    side = (day.stratum == 0) + 2 * lost + 4 * day.decisions(0.5)
    for one in np.unique(side):
        inside = np.flatnonzero((side == one) & ~day.labelled)
        rising = inside[np.argsort(day.prob[inside], kind="stable")]
        count = max(round(part * rising.size), 1)
        chunk = np.arange(rising.size) * count // max(rising.size, 1)
        first, last = (np.searchsorted(chunk, chunk, end) for end in ("left", "right"))
        stands[rising] = rising[(first + last) // 2]
    return stands


def _missed(
    days: Sequence[LabelledDay], lost: Sequence[NDArray[np.bool_]]
) -> tuple[Floats, Floats]:
    """Return the share of labels that are missing outside the top, between edges of the score."""
    prob, gone, weight = [np.empty(0)], [np.empty(0)], [np.empty(0)]
    for day, missing in zip(days, lost, strict=True):
        routed = np.flatnonzero((day.stratum > 0) & (day.labelled | missing))
        prob.append(day.prob[routed].astype(np.float64))
        gone.append(missing[routed].astype(np.float64))
        weight.append((day.population / np.maximum(day.sample, 1))[day.stratum[routed]])
    probs, weights = np.concatenate(prob), np.concatenate(weight)
    edges = np.unique(np.quantile(probs, _MISSED_AT)) if probs.size else np.empty(0)
    whole, part = (
        np.bincount(np.searchsorted(edges, probs), weights=each, minlength=edges.size + 1)
        for each in (weights, weights * np.concatenate(gone))
    )
    return edges, np.asarray(part / np.maximum(whole, 1))


def reconciled(sampled: MetricEstimate, modelled: MetricEstimate) -> MetricEstimate:
    """Return the estimate by score, unless that by the design contradicts it.

    Its interval holds `OWN_PART` of either side of the one by the design, or all of both.
    """
    if modelled.value is None:
        return sampled
    value, low, high = modelled.known
    if sampled.value is None:
        return replace(sampled, value=value, low=low, high=high, status="ok", reason="")
    own, least, most = sampled.known
    part = OWN_PART
    if not least <= value <= most:
        value, part = own, 1.0
    low, high = min(low, own - part * (own - least)), max(high, own + part * (most - own))
    return replace(sampled, value=value, low=low, high=high)


def contradicted(row: Mapping[Any, Any], design: Mapping[Any, Any]) -> bool:
    """Return whether the design excludes the value by score: two rows of `Measured.tables`.

    Then the value is the design's, with an interval that holds more than the design's.
    """
    ends, own = ((one["low"], one["high"]) for one in (row, design))
    return bool(row["value"] == design["value"] and ends != own)
