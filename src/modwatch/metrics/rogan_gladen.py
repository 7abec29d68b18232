"""Metrics corrected for annotator errors: a sensitivity analysis beside the estimates.

Model: each label is wrong with probability e, whatever the comment's true label and score. A
proportion m of comments is then observed as m' = m(1−2e) + e, so m = (m' − e)/(1−2e): Rogan &
Gladen (1978) with sensitivity and specificity 1−e. Accuracy is such a proportion too, since a wrong
label turns a correct decision into an error and vice versa. With the reviewed share k and the
flagged share F of all comments, and the observed prevalence π':

    prevalence, accuracy, precision_flagged, review_efficiency
                          (m' − e)/(1−2e)
    recall_flagged        (T' − eF)/(T' + M' − e): toxic flagged T', toxic missed M'
    review_effectiveness  (R' − ek)/(R' + U' − e): errors reviewed R', errors not reviewed U'
    oc_accuracy           1 − (U' − e(1−k))/(1−2e) − ek. The metric assumes an oracle; here
                          reviewers err at rate e as well
    auroc                 ½ + (m' − ½)/c, c = (π'−e)(1−e−π')/((1−2e)π'(1−π'))
    calibration_auroc     the same with the error rate of the model, 1 − accuracy, for π'

(for the last two, Menon et al. 2015, section 4). If the labels of the top have another error rate
than the rest, each metric uses the mean rate over its comments. This is exact for reviewed and for
unreviewed comments; a metric over both is off by 2·cov(e, m) over the comments, which a table of
estimates does not contain.

An interval combines three components: that of the estimate, as two halves of a normal distribution;
the confidence distribution of e; and the chance variation of the actual errors, of variance e(1−e)
a comment. Seeded draws of the three are combined as if independent.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
from scipy import special

from modwatch.errors import MetricInputError
from modwatch.metrics.annotator_error import (
    ErrorRate,
    ErrorRates,
    LabelPairs,
    assumed_error_rates,
    error_rates_from_pairs,
)
from modwatch.metrics.estimation.labelled_day import LabelledDay
from modwatch.metrics.inputs import Floats
from modwatch.metrics.intervals import NORMAL_QUANTILE

#: Assumed error rates, reported beside the measured one or without one.
ASSUMED_RATES = (0.0, 0.01, 0.02, 0.05)

_SHAPE = "errors of labels change the shape of the curve"
_RANKING = "the ranking is made of the labels"

#: Metrics without a correction, and why.
NOT_CORRECTED = {
    "auprc": _SHAPE,
    "calibration_auprc": _SHAPE,
    "oc_auroc": _RANKING,
    "oc_auprc": _RANKING,
    "brier": "needs the mean of p² + (1−p)² over all comments",
    "ece": "errors of labels do not cancel in a sum of absolute values",
}

#: Columns of a table of corrections: an estimate, and the same corrected for annotator errors.
COLUMNS = (
    *("source", "error_rate", "metric", "strategy", "alpha", "value", "low", "high"),
    *("corrected", "corrected_low", "corrected_high", "status", "note"),
)

_FLOATS = ("alpha", "value", "low", "high", "corrected", "corrected_low", "corrected_high")
_TAILS = (0.025, 0.975)
_POINTS = (np.arange(2000) + 0.5) / 2000
_NORMAL = np.asarray(special.ndtri(_POINTS), dtype=np.float64)

_Row = dict[Any, Any]
_Key = tuple[Any, ...]


@dataclass(frozen=True, kw_only=True)
class PopulationCounts:
    """Counts over all comments that a table of estimates describes."""

    comments: int
    #: Comments with prob > threshold.
    flagged: int
    #: Comments in the top stratum, all of them reviewed.
    top: int
    #: The strategy that chose the top.
    strategy: str

    def __post_init__(self) -> None:
        if not 0 <= max(self.flagged, self.top) <= self.comments or min(self.flagged, self.top) < 0:
            raise MetricInputError(
                f"flagged and top must be in [0, {self.comments}], got {self.flagged} and "
                f"{self.top}; pass counts of the same comments"
            )

    @classmethod
    def of(
        cls, days: Sequence[LabelledDay], *, threshold: float, strategy: str
    ) -> "PopulationCounts":
        """Return the counts over some days.

        >>> from modwatch.metrics.estimation.labelled_day import fully_labelled
        >>> day = fully_labelled([1, 0], [0.9, 0.6])
        >>> PopulationCounts.of([day], threshold=0.7, strategy="uncertainty").flagged
        1
        """
        return cls(
            comments=sum(len(day.prob) for day in days),
            flagged=sum(int((np.asarray(day.prob, np.float64) > threshold).sum()) for day in days),
            top=sum(int((day.stratum == 0).sum()) for day in days),
            strategy=strategy,
        )


def sensitivity_table(
    table: pd.DataFrame,
    pairs: LabelPairs,
    totals: PopulationCounts,
    *,
    others: Mapping[str, ErrorRates] = MappingProxyType({}),
    seed: int = 0,
) -> pd.DataFrame:
    """Return every estimate and its correction for the measured and for assumed error rates.

    Columns: `COLUMNS`. `source` is measured, a key of `others` (each absent if insufficient) or
    assumed; `status` is ok, insufficient or not_corrected; `note` is the reason, or says that a
    value was clipped to [0, 1].

    Args:
        table: estimates, as `measure_days` returns them.
        pairs: confirmations; their error rate is the measured one.
        totals: counts over the comments of `table`.
        others: further error rates by source.
        seed: of the draws behind the intervals.
    """
    sources = [
        ("measured", error_rates_from_pairs(pairs)),
        *others.items(),
        *(("assumed", assumed_error_rates(rate)) for rate in ASSUMED_RATES),
    ]
    parts = [
        corrected_table(table, rates, totals, seed=seed).assign(
            source=source, error_rate=rates.pooled.value
        )
        for source, rates in sources
        if rates.pooled.status == "ok"
    ]
    return pd.concat(parts, ignore_index=True)[list(COLUMNS)]


def corrected_rows(
    table: pd.DataFrame,
    pairs: LabelPairs,
    totals: PopulationCounts,
    *,
    review_fraction: float,
    seed: int = 0,
) -> pd.DataFrame:
    """Return `moderator_error` and the corrected metrics as deployed, in the columns of `table`.

    `moderator_error` is the pooled annotator error rate, its n the pairs. If it is sufficient there
    follow, with the suffix `_corrected`, prevalence, accuracy, and at the strategy of the top and
    `review_fraction` OC-Acc and Review Efficiency; `reason` may contain a note beside the value.

    Args:
        table, pairs, totals, seed: as in `sensitivity_table`.
        review_fraction: the deployed one.
    """
    rates = error_rates_from_pairs(pairs)
    known = ("value", "low", "high", "n", "effective_n", "status", "reason")
    rows: list[_Row] = [
        {"metric": "moderator_error", **{name: getattr(rates.pooled, name) for name in known}}
    ]
    if rates.pooled.status == "ok":
        deployed = table["metric"].isin(["prevalence", "accuracy"]) | (
            table["metric"].isin(["oc_accuracy", "review_efficiency"])
            & (table["strategy"] == totals.strategy)
            & ((table["alpha"].astype("Float64") - review_fraction).abs().fillna(1) < 1e-12)
        )
        naive = table[deployed].reset_index(drop=True)
        corrected = corrected_table(naive, rates, totals, seed=seed)
        for row, new in zip(naive.to_dict("records"), corrected.to_dict("records"), strict=True):
            bounds = {name: new[f"corrected_{name}"] for name in ("low", "high")}
            named = {"metric": f"{row['metric']}_corrected", "value": new["corrected"], **bounds}
            rows.append({**row, **named, "status": new["status"], "reason": new["note"]})
    frame = pd.DataFrame(rows).reindex(columns=list(table.columns))
    return frame.astype(dict.fromkeys(("alpha", "value", "low", "high"), "Float64"))


def corrected_table(
    table: pd.DataFrame, rates: ErrorRates, totals: PopulationCounts, *, seed: int = 0
) -> pd.DataFrame:
    """Return every estimate of `table` except the completion, and its correction for `rates`.

    Columns as `sensitivity_table`, without `source` and `error_rate`. Raises MetricInputError if
    the error rates are insufficient.

    >>> row = {"metric": "prevalence", "strategy": None, "alpha": None, "value": 0.068,
    ...        "low": 0.06, "high": 0.08, "status": "ok", "reason": ""}
    >>> totals = PopulationCounts(comments=1000, flagged=10, top=45, strategy="uncertainty")
    >>> table = corrected_table(pd.DataFrame([row]), assumed_error_rates(0.02), totals)
    >>> table["corrected"].round(6).tolist()
    [0.05]
    """
    if rates.pooled.status != "ok":
        raise MetricInputError(
            f"the error rate is insufficient ({rates.pooled.reason}); assume one instead"
        )
    rows = table[table["metric"] != "completion"].astype(object)
    observed = {_key(row): row for row in rows.where(rows.notna(), None).to_dict("records")}
    sampler = Sampler(rates, totals, seed)
    corrected = [{**row, **_corrected(row, observed, sampler)} for row in observed.values()]
    frame = pd.DataFrame(corrected).reindex(columns=list(COLUMNS[2:]))
    return frame.astype(dict.fromkeys(_FLOATS, "Float64"))


def _corrected(row: _Row, observed: dict[_Key, _Row], sampler: "Sampler") -> _Row:
    """Return corrected value, interval, status and note of one estimate."""
    metric = row["metric"]
    if metric not in FORMULAS:
        return {"status": "not_corrected", "note": NOT_CORRECTED.get(metric, "no formula")}
    formula, needed = FORMULAS[metric]
    setting = _key(row)[1:] if needed == "review_efficiency" else (None, None)
    other = row if needed is None else observed.get((needed, *setting))
    if row["status"] != "ok":
        return {"status": "insufficient", "note": row["reason"]}
    if other is None or other["status"] != "ok":
        return {"status": "insufficient", "note": f"needs {needed}, which is insufficient"}
    drawn = formula(sampler.draw(row, other))
    unclipped, (low, high) = float(drawn[0]), _interval(drawn[1:])
    if math.isnan(unclipped):
        return {"status": "insufficient", "note": "errors could explain all that the labels show"}
    value = min(max(unclipped, 0.0), 1.0)
    note = "" if value == unclipped else f"{unclipped:.4g} before it was cut to [0, 1]"
    bounds = {"corrected_low": min(low, value), "corrected_high": max(high, value)}
    return {"corrected": value, **bounds, "status": "ok", "note": note}


def _interval(drawn: Floats) -> tuple[float, float]:
    """Return the central 95 %; draws that errors explain entirely may have any value."""
    anything = (np.arange(drawn.size) % 2).astype(np.float64)
    drawn = np.clip(np.where(np.isnan(drawn), anything, drawn), 0, 1)
    low, high = np.quantile(drawn, _TAILS, method="hazen")  # the draws are midpoints
    return float(low), float(high)


def _key(row: _Row) -> _Key:
    return row["metric"], row["strategy"], row["alpha"]


@dataclass(frozen=True, kw_only=True)
class Observed:
    """Draws (d,) of the inputs of one correction; the first of each is the value itself."""

    #: The estimate, and another one that its formula needs.
    value: Floats
    other: Floats
    #: Error rate of all labels, of the reviewed and of the unreviewed.
    error: Floats
    error_reviewed: Floats
    error_unreviewed: Floats
    #: Share of all comments that is flagged, and that is reviewed.
    flagged: float
    reviewed: float
    #: Chance deviation of the share of wrong labels from their rate, in a share of all comments.
    chance: Callable[[Floats, float], Floats]


class Sampler:
    """Draws of estimates and error rates."""

    def __init__(self, rates: ErrorRates, totals: PopulationCounts, seed: int) -> None:
        self._totals = totals
        self._generator = np.random.default_rng(seed)
        self._top = self._error(rates.top)
        self._rest = self._top if rates.rest is rates.top else self._error(rates.rest)

    def draw(self, row: _Row, other: _Row) -> Observed:
        """Return draws for one row of a table of estimates and the other row that it needs."""
        size, top = max(self._totals.comments, 1), self._totals.top
        reviewed = 0.0 if row["alpha"] is None else float(row["alpha"]) * size
        everybody = self._mean_error(top, size - top)
        error_reviewed = error_unreviewed = everybody
        # How many of the comments that another strategy reviews are in the top is unknown.
        if row["strategy"] == self._totals.strategy:
            shared = min(reviewed, top)
            error_reviewed = self._mean_error(shared, reviewed - shared)
            error_unreviewed = self._mean_error(top - shared, size - reviewed - (top - shared))
        return Observed(
            value=self._estimate(row),
            other=self._estimate(other),
            error=everybody,
            error_reviewed=error_reviewed,
            error_unreviewed=error_unreviewed,
            flagged=self._totals.flagged / size,
            reviewed=reviewed / size,
            chance=self._chance,
        )

    def _estimate(self, row: _Row) -> Floats:
        """Return draws of an estimate, half a normal distribution to either side."""
        value, low, high = (float(row[name]) for name in ("value", "low", "high"))
        z = self._generator.permutation(_NORMAL)
        drawn = value + z / NORMAL_QUANTILE * np.where(z < 0, value - low, high - value)
        return np.asarray(np.clip(np.append(value, drawn), 0, 1))

    def _error(self, rate: ErrorRate) -> Floats:
        drawn = np.quantile(rate.confidence, _POINTS)
        return np.append(rate.value or 0.0, self._generator.permutation(drawn))

    def _mean_error(self, top: float, rest: float) -> Floats:
        """Return draws of the mean error rate of `top` and `rest` many comments."""
        mass = top + rest
        return (top * self._top + rest * self._rest) / mass if mass > 0 else self._rest

    def _chance(self, error: Floats, part: float) -> Floats:
        comments = max(part * self._totals.comments, 1.0)
        z = np.append(0.0, self._generator.permutation(_NORMAL))
        return np.asarray(z * np.sqrt(error * (1 - error) / comments))


def _oc_accuracy(observed: Observed) -> Floats:
    left = 1 - observed.reviewed
    missed = (1 - observed.value) / max(left, 1e-12)
    missed = _true(missed, observed.error_unreviewed, left, observed)
    return 1 - left * missed - observed.reviewed * observed.error_reviewed


def _true(share: Floats, error: Floats, part: float, observed: Observed) -> Floats:
    """Return the true proportion from the observed `share`, among a part of all comments."""
    return _divide(share - observed.chance(error, part) - error, 1 - 2 * error)


def _part_of_all(observed: Observed, part: float, error: Floats, other_error: Floats) -> Floats:
    """Return the share of all events that lies in a part of the comments.

    `value` is the observed share, `other` the observed rate of events in that part.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        elsewhere = observed.other * part * (1 / observed.value - 1)
    inside = part * _true(observed.other, error, part, observed)
    left = 1 - part
    outside = left * _true(elsewhere / max(left, 1e-12), other_error, left, observed)
    return _divide(inside, inside + outside)


def _area(observed: Observed, positive: Floats) -> Floats:
    """Return the area under the ROC curve; `positive` is the observed share of positive labels.

    The score of a flipped label is uniform among the ranks of the others.
    """
    e, rarer = observed.error, np.minimum(positive, 1 - positive)
    spread = np.sqrt(1 / 12 + (observed.value - 0.5) ** 2)
    area = observed.value - _divide(spread * observed.chance(e, 1.0), rarer)
    kept = np.maximum(positive - e, 0) * np.maximum(1 - e - positive, 0)
    return 0.5 + _divide((area - 0.5) * (1 - 2 * e) * positive * (1 - positive), kept)


def _divide(above: Floats, below: Floats) -> Floats:
    """Return the quotient; NaN where errors could explain all events."""
    quotient = np.full(np.shape(above), np.nan)
    np.divide(above, below, out=quotient, where=below > 0)
    return quotient


#: The formula of each metric that has one, and the other estimate that it needs.
FORMULAS: dict[str, tuple[Callable[[Observed], Floats], str | None]] = {
    "prevalence": (lambda o: _true(o.value, o.error, 1.0, o), None),
    "accuracy": (lambda o: _true(o.value, o.error, 1.0, o), None),
    "precision_flagged": (lambda o: _true(o.value, o.error, o.flagged, o), None),
    "recall_flagged": (
        lambda o: _part_of_all(o, o.flagged, o.error, o.error),
        "precision_flagged",
    ),
    "auroc": (lambda o: _area(o, o.other), "prevalence"),
    "calibration_auroc": (lambda o: _area(o, 1 - o.other), "accuracy"),
    "oc_accuracy": (_oc_accuracy, None),
    "review_efficiency": (lambda o: _true(o.value, o.error_reviewed, o.reviewed, o), None),
    "review_effectiveness": (
        lambda o: _part_of_all(o, o.reviewed, o.error_reviewed, o.error_unreviewed),
        "review_efficiency",
    ),
}
