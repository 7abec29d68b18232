"""How to split labels between the random slice and confirmations, for intervals of a given width.

The labels of a window show how much the slice varies, and how often labels are wrong. The window is
labelled again in simulation: as if the slice had c times as many rows, each representing a c-th,
but at least one comment; its true labels drawn given the observed labels; first labels wrong
at given error rates; a given share of them confirmed. The widths of the intervals at other sizes of
the slice are interpolated by a power law (two-phase sampling: Neyman 1938; Cochran 1977, chapter
12). They are those of the design alone, times what the scores and earlier labels leave of them in
the window itself: both fall with the root of the labels.
"""

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from modwatch.common.errors import DesignError, MetricInputError
from modwatch.routing.confirmation_design import confirmation_probabilities
from modwatch.routing.design import RoutingPolicy
from modwatch.statistics import arguments
from modwatch.statistics.arguments import Floats
from modwatch.statistics.label_truth import RATE_BOUNDS, ErrorEvidence, GivenLabels, TrueLabels
from modwatch.statistics.live.estimator import MetricEstimate
from modwatch.statistics.live.labelled_day import LabelledDay
from modwatch.statistics.live.measure import Measured, sample_estimates
from modwatch.statistics.live.sample import Sample

#: Default widths of the 95 % interval.
WIDTHS = (0.1, 0.05, 0.02)

#: Expected confirmations over routed comments that are compared.
CONFIRMATION_SHARES = (0.02, 0.05, 0.13, 0.3)

_TIMES = (1, 4, 16)
_REPETITIONS = 3

COLUMNS = (
    *("metric", "width", "width_now", "labels_now", "confirmations_now"),
    *("labels", "slice_share", "confirmations", "confirmation_share", "total"),
)


@dataclass(frozen=True, kw_only=True)
class _Trial:
    """A window labelled in simulation."""

    #: Labels of the slice, confirmations, and the width of the interval of each metric.
    labels: float
    confirmations: float
    widths: dict[str, float] = field(default_factory=dict)


def plan_labels(
    days: Sequence[LabelledDay],
    policy: RoutingPolicy,
    *,
    widths: Sequence[float] = (),
    budget: float | None = None,
    error_rates: Sequence[float] | None = None,
    threshold: float = 0.5,
    known: ErrorEvidence | None = None,
    history: GivenLabels | None = None,
    seed: int = 0,
) -> pd.DataFrame:
    """Return the split of labels between slice and confirmations for each metric and width.

    One row per metric and width of a 95 % interval, with the split that requires the fewest labels:
    `labels` of the slice in the whole window, and `slice_share`, theirs of as many routed comments
    as now; `confirmations`, and `confirmation_share`, the value of the policy that they require;
    `total`, the sum of both. Missing where neither sixteen times the slice nor all comments
    suffice. `width_now`, `labels_now` and `confirmations_now` are those of the window. Metrics that
    are insufficient, or known exactly, are absent.

    With a `budget`, one row per metric: the split of so many labels in the window that gives the
    narrowest interval, and its expected `width`.

    Where labels are the truth, as in research data, nothing is confirmed.

    Args:
        days: the labelled days of the window.
        policy: the deployed one.
        widths: of 95 % intervals, in (0, 1]; `WIDTHS` by default.
        budget: labels of the slice and confirmations together, in the whole window.
        error_rates: false-positive and false-negative rate of one label; by default as estimated
            from the window.
        threshold, known, history, seed: as in `measure_days`.

    Raises:
        MetricInputError: a width out of range.
        DesignError: a budget that is not positive, or error rates out of range.
    """
    wanted = [arguments.fraction("width", width) for width in widths or WIDTHS]
    if not all(wanted):
        raise MetricInputError("width must be in (0, 1], got 0")
    if budget is not None and not budget > 0:
        raise DesignError(f"the budget must be more than 0 labels, got {budget:g}")
    rates = None if error_rates is None else _checked(error_rates)
    measured = Measured.from_days(days, known, history=history, seed=seed)
    window = _Window(measured, policy, threshold=threshold)
    now = window.now()
    trials = window.trials(rates)
    rows = [
        {
            "metric": metric,
            "width_now": width_now,
            "labels_now": int(now.labels),
            "confirmations_now": int(now.confirmations),
            **row,
        }
        for metric, width_now in now.widths.items()
        if width_now > 0
        for row in (
            [_narrowest(metric, budget, trials)]
            if budget is not None
            else [_cheapest(metric, width, trials) for width in wanted]
        )
    ]
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    frame["slice_share"] = [
        None if pd.isna(labels) else min(labels / max(window.routed, 1), 1.0)
        for labels in frame["labels"]
    ]
    whole = dict.fromkeys(("labels", "confirmations", "total"), "Int64")
    parts = dict.fromkeys(("width", "slice_share", "confirmation_share"), "Float64")
    return frame.astype(whole | parts)


class _Window:
    """The labelled days, to be labelled again in simulation."""

    def __init__(self, measured: Measured, policy: RoutingPolicy, *, threshold: float) -> None:
        self.days, self.policy, self.threshold = measured.days, policy, threshold
        self.routed = sum(int(day.sample.sum()) for day in self.days)
        self._sample, self._labels, self.seed = measured.sample, measured.labels, measured.seed
        self._options: dict[str, Any] = {
            "review_fractions": [policy.review_fraction],
            "strategies": [policy.strategy],
            "threshold": threshold,
        }
        #: Width of each interval over that by the design alone.
        self._narrower = {
            one.metric: _width(one) / (_width(other) or 1.0)
            for one, other in measured.estimates(**self._options)
            if one.value is not None and other.value is not None
        }

    def now(self) -> _Trial:
        """Return the labels of the window itself."""
        return self._measured(self._sample, self._labels)

    def trials(self, error_rates: tuple[float, float] | None) -> dict[float, list[_Trial]]:
        """Return, for each share of confirmations, trials with slices of rising size."""
        if not self._sample.label.size:
            return {}
        if self._labels is None and error_rates is None:
            # Labels are the truth, and there is nothing to simulate.
            grown = (Sample(self.days, repeat=times) for times in _TIMES)
            return {0.0: [self._measured(sample, None) for sample in grown]}
        rates = error_rates or self._rates()
        found: dict[float, list[_Trial]] = {share: [] for share in CONFIRMATION_SHARES}
        for times in _TIMES:
            sample = Sample(self.days, repeat=times)
            toxic = self._chance(times)
            for share in CONFIRMATION_SHARES:
                runs = [
                    self._simulated(
                        sample, toxic, rates, share, np.random.default_rng([times, run])
                    )
                    for run in range(_REPETITIONS)
                ]
                found[share].append(_typical(runs))
        return found

    def _rates(self) -> tuple[float, float]:
        """Return the error rates estimated from the labels of the window."""
        if self._labels is None:
            return 0.0, 0.0
        up, down = (float(drawn.mean()) for _, drawn in self._labels.rates())
        return up, down

    def _chance(self, times: int) -> Floats:
        """Return how probable it is that each row of the grown sample is toxic."""
        sample = self._sample
        chance = sample.label == 1 if self._labels is None else self._labels.mean
        rows = np.split(
            np.arange(sample.label.size), np.cumsum([d.labelled.sum() for d in self.days])
        )
        again = []
        for day, mine in zip(self.days, rows, strict=False):
            place = np.searchsorted(np.flatnonzero(day.labelled), day.rows(times))
            again.append(chance[mine][place])
        return np.concatenate(again).astype(np.float64)

    def _simulated(
        self,
        sample: Sample,
        chance: Floats,
        rates: tuple[float, float],
        share: float,
        generator: np.random.Generator,
    ) -> _Trial:
        """Return the window as if people had labelled it with these error rates."""
        toxic = generator.random(chance.size) < chance
        rate = np.where(toxic, rates[1], rates[0])
        labels = toxic[:, None] ^ (generator.random((chance.size, 3)) < rate[:, None])
        first, top = labels[:, 0], sample.top
        recent = [float(first[part].mean()) if part.any() else None for part in (top, ~top)]
        probability = confirmation_probabilities(
            sample.prob,
            (~top).astype(np.int64),
            flagged=sample.flagged(self.threshold).part > 0,
            share=share,
            toxic_labels=(recent[0], recent[1]),
        )
        asked = probability[np.arange(first.size), first.astype(np.int64)]
        second = generator.random(first.size) < asked
        third = second & (labels[:, 0] != labels[:, 1])
        counts = np.column_stack([np.ones_like(second), second, third])
        given, positive = counts.sum(axis=1), (counts & labels).sum(axis=1)
        labelled = sample.relabelled(first.astype(np.int64), given, positive)
        return self._measured(labelled, labelled.true_labels(seed=self.seed))

    def _measured(self, sample: Sample, labels: TrueLabels | None) -> _Trial:
        """Return labels, confirmations and widths of a sample."""
        widths = {
            estimate.metric: _width(estimate) * self._narrower.get(estimate.metric, 1.0)
            for estimate in sample_estimates(sample, labels, seed=self.seed, **self._options)
            if estimate.value is not None
        }
        return _Trial(
            labels=int((~sample.top).sum()), confirmations=sample.further_labels, widths=widths
        )


def _width(estimate: MetricEstimate) -> float:
    _, low, high = estimate.known
    return high - low


def _checked(rates: Sequence[float]) -> tuple[float, float]:
    """Return the rates; raise DesignError where no labels can be planned with them."""
    up, down = rates
    if up + down >= 1:
        raise DesignError(
            f"error rates of {up:g} and {down:g} sum to {up + down:g}: such labels tell nothing of "
            "the truth; pass rates that sum to less than 1"
        )
    for name, rate, most in zip(("positive", "negative"), rates, RATE_BOUNDS, strict=True):
        if not 0 <= rate <= most:
            raise DesignError(f"the false-{name} rate must be in [0, {most:g}], got {rate:g}")
    return up, down


def _typical(runs: Sequence[_Trial]) -> _Trial:
    """Return the mean of trials that differ by chance; metrics that some lack are left out."""
    shared = set.intersection(*(set(run.widths) for run in runs))
    return _Trial(
        labels=runs[0].labels,
        confirmations=float(np.mean([run.confirmations for run in runs])),
        widths={metric: float(np.mean([run.widths[metric] for run in runs])) for metric in shared},
    )


def _cheapest(metric: str, width: float, trials: dict[float, list[_Trial]]) -> dict[str, Any]:
    """Return the split with the fewest labels that gives the width; without one, the width."""
    splits = []
    for share, sizes in trials.items():
        known = [(trial.labels, trial.widths[metric]) for trial in sizes if metric in trial.widths]
        labels = _labels_for(width, known) if known else None
        if labels is not None:
            splits.append(_split(width, share, labels, sizes))
    return min(splits, key=lambda row: row["total"], default={"width": width})


def _narrowest(metric: str, budget: float, trials: dict[float, list[_Trial]]) -> dict[str, Any]:
    """Return the split of the budget that gives the narrowest interval; empty without one."""
    splits = []
    for share, sizes in trials.items():
        labels = _labels_within(budget, sizes)
        known = [(trial.labels, trial.widths[metric]) for trial in sizes if metric in trial.widths]
        if known and labels is not None:
            splits.append(_split(_width_at(labels, known), share, labels, sizes))
    return min(splits, key=lambda row: row["width"], default={})


def _split(width: float, share: float, labels: int, sizes: Sequence[_Trial]) -> dict[str, Any]:
    confirmations = round(_confirmations_at(labels, sizes))
    return {
        "width": width,
        "labels": labels,
        "confirmations": confirmations,
        "confirmation_share": share,
        "total": labels + confirmations,
    }


def _confirmations_at(labels: float, sizes: Sequence[_Trial]) -> float:
    """Return the confirmations of a slice of another size: a line through the nearest two trials.

    >>> _confirmations_at(150, [_Trial(labels=n, confirmations=n / 10) for n in (100, 200)])
    15.0
    """
    pairs = list(pairwise(sizes))
    least, most = next((pair for pair in pairs if labels <= pair[1].labels), pairs[-1])
    grown = (most.confirmations - least.confirmations) / max(most.labels - least.labels, 1)
    return max(least.confirmations + grown * (labels - least.labels), 0.0)


def _labels_within(budget: float, sizes: Sequence[_Trial]) -> int | None:
    """Return the largest slice that leaves enough of the budget for its confirmations."""
    most = int(min(budget, sizes[-1].labels))
    fitting = bisect_right(range(most + 1), budget, key=lambda n: n + _confirmations_at(n, sizes))
    return fitting - 1 if fitting > 1 else None


def _labels_for(width: float, known: Sequence[tuple[float, float]]) -> int | None:
    """Return the labels that give the width, interpolated from pairs of labels and width.

    >>> _labels_for(0.05, [(10, 0.2), (20, 0.1), (40, 0.05), (80, 0.02), (160, 0.01)])
    40
    """
    labels, now = known[0]
    if now <= width:  # fewer suffice: widths shrink with the root of the rows
        return math.ceil(labels * (now / width) ** 2)
    for (fewer, wide), (more, narrow) in pairwise(known):
        if not narrow:  # every comment has a label
            return math.ceil(more)
        if narrow <= width:
            power = math.log(more / fewer) / math.log(narrow / wide)
            return math.ceil(fewer * math.pow(width / wide, power))
    return None


def _width_at(labels: float, known: Sequence[tuple[float, float]]) -> float:
    """Return the width that so many labels give, by the same power laws.

    >>> round(_width_at(40, [(10, 0.2), (160, 0.05)]), 3)
    0.1
    """
    first, now = known[0]
    if labels <= first or len(known) == 1:
        return min(now * math.sqrt(first / labels), 1.0)
    (fewer, wide), (more, narrow) = next(
        (pair for pair in pairwise(known) if labels <= pair[1][0]), (known[-2], known[-1])
    )
    if not narrow:
        return wide
    power = math.log(narrow / wide) / math.log(more / fewer)
    return wide * math.pow(labels / fewer, power)
