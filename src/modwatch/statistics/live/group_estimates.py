"""How a model decides about groups of comments: each group compared with all other comments.

Figures of the scores are known for every comment. Those of labels are estimated as for all comments
together: by the design, as a group's part of a stratum is a random sample of its comments there,
and by the score, with the labels of all others as those of another curve.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import special

from modwatch.common.errors import MetricInputError
from modwatch.statistics import arguments
from modwatch.statistics.arguments import Ints
from modwatch.statistics.estimate import Estimate, difference, holm
from modwatch.statistics.intervals import LEVEL, NORMAL_QUANTILE, mid_p
from modwatch.statistics.label_truth import ErrorEvidence
from modwatch.statistics.live.census import Census, reconciled
from modwatch.statistics.live.conformal import COVERAGE, crossed_sets
from modwatch.statistics.live.estimator import Estimator, MetricEstimate
from modwatch.statistics.live.labelled_day import Confirmations, LabelledDay
from modwatch.statistics.live.sample import Sample

#: Membership (N,) of the comments of each day.
Members = Sequence[NDArray[np.bool_]]
#: Attribute of groups that have BPSN and BNSP.
IDENTITY = "identity"
#: A group: its attribute, such as `language`, and its name.
Group = tuple[str, str]

#: Labels, whose number is their place.
_LABELS = ("harmless", "toxic")
#: Coverage of prediction sets, of all comments and by label.
COVERAGES = ("set_coverage", *(f"set_coverage_{label}" for label in _LABELS))
_OF_SETS = (*COVERAGES, "unsure_share")

#: Metrics of the scores of a day, and of the labels of a window.
SCORE_METRICS = ("mean_uncertainty", "flagged_share", "reviewed_share")
LABEL_METRICS = (
    *("accuracy", "prevalence", "precision_flagged", "recall_flagged", "auroc", "brier"),
    *("calibration_error", "overturn_rate", *_OF_SETS, "bpsn_auc", "bnsp_auc"),
)
#: Of these, without a difference from all others: a size, and what compares both sides by itself.
_ALONE = ("unsure_share", "bpsn_auc", "bnsp_auc")
#: The gap between the groups of an attribute, in rows without a group.
GAP = "set_coverage_gap"

#: Scales of the distance of P(toxic | score) of a group from that of all others: in log-odds, and
#: in slope, as the score may say nothing of a group.
DISTANCE = (0.4, 0.4)

#: Columns of the tables.
COLUMNS = (
    *("attribute", "group", "metric", "value", "low", "high"),
    *("difference", "difference_low", "difference_high", "p_value", "p_holm"),
    *("n", "comments", "status", "reason"),
)

_DIFFERENCE = ("difference", "difference_low", "difference_high", "p_value")


@dataclass(frozen=True, kw_only=True)
class GroupedDay:
    """A labelled day, with the stratum of every comment."""

    labelled: LabelledDay
    #: (N,) stratum of each comment, routed or not.
    stratum: Ints
    #: (N,) whether a comment was routed.
    routed: NDArray[np.bool_]


def compare_scores(
    prob: NDArray[np.floating],
    flagged: NDArray[np.bool_],
    reviewed: NDArray[np.bool_],
    members: Mapping[Group, NDArray[np.bool_]],
) -> pd.DataFrame:
    """Return `SCORE_METRICS` of each group of a day's N comments; a row each group and metric.

    Columns: `COLUMNS`. `mean_uncertainty` is the mean of p(1−p), in [0, ¼]; `flagged_share` and
    `reviewed_share` are in [0, 1]. They are exact for the day; `low` and `high` is the 95 %
    interval for the stream that the day is sampled from, and `difference` that from all other
    comments. `p_holm` is corrected for all rows.

    Args:
        prob: (N,) in [0, 1].
        flagged: (N,) the model's decisions.
        reviewed: (N,) whether a comment was routed as one of the top, not as a random one.
        members: (N,) whether each comment belongs to a group.

    >>> rng = np.random.default_rng(2)
    >>> prob, german = rng.random(1000), np.arange(1000) < 300
    >>> table = compare_scores(prob, prob > 0.5, prob > 0.9, {("language", "de"): german})
    >>> table["value"].round(2).tolist(), bool((table["p_holm"] > 0.05).all())
    ([0.16, 0.46, 0.1], True)
    """
    p = prob.astype(np.float64)
    uncertainty = p * (1 - p)

    def mean(inside: NDArray[np.bool_]) -> Estimate:
        values = uncertainty[inside]
        if values.size < 2:
            return Estimate.insufficient("fewer than two comments", n=values.size)
        margin = NORMAL_QUANTILE * float(values.std(ddof=1)) / values.size**0.5
        value = float(values.mean())
        return Estimate.from_interval(value, (value - margin, value + margin), n=values.size)

    def share(events: NDArray[np.bool_], inside: NDArray[np.bool_]) -> Estimate:
        size = int(inside.sum())
        if not size:
            return Estimate.insufficient("no comment", n=0)
        count = int(events[inside].sum())
        return Estimate.from_interval(count / size, mid_p(count, size), n=size)

    rows = []
    for group, member in members.items():
        sides = (member, ~member)
        found = {
            "mean_uncertainty": [mean(side) for side in sides],
            "flagged_share": [share(flagged, side) for side in sides],
            "reviewed_share": [share(reviewed, side) for side in sides],
        }
        comments = int(member.sum())
        rows += [_row(group, name, both[0], both[1], comments) for name, both in found.items()]
    return _table(rows)


def measure_groups(
    days: Sequence[GroupedDay],
    members: Iterable[tuple[Group, Members]],
    *,
    threshold: float = 0.5,
    known: ErrorEvidence | None = None,
    seed: int = 0,
) -> pd.DataFrame:
    """Return `LABEL_METRICS` of each group over a window; a row each group and metric.

    Columns: `COLUMNS`. The metrics are those of `measure_days` for the group's comments, which
    allow for people's errors; people are supposed to err alike in all groups. Where people gave the
    labels, those of all others tell P(toxic | score) of a group as far as its own agree. Further:

    - `calibration_error`, the mean probability less the prevalence, in [−1, 1], above 0 where the
      model overestimates toxicity;
    - `overturn_rate`, the share of the reviewed top whose automated decision is wrong;
    - `set_coverage`, the share of comments whose label is in a prediction set, and of the toxic
      and the harmless ones `set_coverage_toxic` and `set_coverage_harmless`: sets at 90 % for each
      label, which all comments calibrate; `unsure_share`, how many of these are not one label.
      `reason` has the guarantee;
    - `bpsn_auc` and `bnsp_auc`, of identities only (Borkan et al. 2019): the AUROC of toxic
      comments elsewhere against harmless ones that mention the identity, and of toxic ones that
      mention it against harmless ones elsewhere.

    `difference` is that from all other comments; figures that compare with them by themselves, or
    whose sets are calibrated apart, have none. `p_holm` is corrected for all rows. The last rows
    have no group: by attribute `set_coverage…_gap`, the largest less the smallest coverage of a
    group, and without an attribute, of all comments, `set_coverage…` and `unsure_share`.

    Groups with few labels are insufficient, with the reason.

    Args:
        days: of the window.
        members: name of each group, and which comments of each day belong to it.
        threshold: in [0, 1]; the model flags prob > threshold, except on days with decisions
            (`LabelledDay.flagged`).
        known: further evidence of people's error rates, such as answers to gold items.
        seed: of the draws behind the intervals.

    Raises:
        MetricInputError: not one membership per comment, or an argument out of range.
    """
    threshold = arguments.fraction("threshold", threshold)
    rows: list[dict[str, Any]] = []
    for group, member in members:
        rows += _group_rows(days, group, member, threshold=threshold, known=known, seed=seed)
    if rows:
        rows += [*_gaps(rows), *_all_rows(days, known=known, seed=seed)]
    return _table(rows)


def _group_rows(
    days: Sequence[GroupedDay],
    group: Group,
    member: Members,
    *,
    threshold: float,
    known: ErrorEvidence | None,
    seed: int,
) -> Iterator[dict[str, Any]]:
    for day, inside in zip(days, member, strict=True):
        if inside.shape != day.stratum.shape:
            raise MetricInputError(
                f"got {inside.size} memberships for {day.stratum.size} comments; pass one each"
            )
    sides = [
        _side(days, rows, threshold=threshold) for rows in (member, [~inside for inside in member])
    ]
    samples = [Sample([side]) for side in sides]
    part = np.repeat([0, 1], [sample.prob.size for sample in samples])
    # Error rates are estimated from the labels of both sides, true labels from those of each.
    pooled = Sample(sides)
    labels = pooled.true_labels(known, seed=seed, part=part)
    estimators = [
        Estimator(
            sample,
            threshold=threshold,
            seed=seed,
            labels=None if labels is None else labels.of_rows(part == side),
        )
        for side, sample in enumerate(samples)
    ]
    toxic = pooled.label if labels is None else labels.mean
    sets = crossed_sets(pooled, toxic)
    found = []
    for number, (estimator, side) in enumerate(zip(estimators, sides, strict=True)):
        model = estimator.of_the_model()
        if labels is not None and not samples[number].lacks(samples[number].everything()):
            borrowing = _by_score(side, samples[1 - number], threshold, known=known, seed=seed)
            model = map(reconciled, model, borrowing)
        of_side = _side_estimates(model, estimator, side)
        found.append(of_side | _of_sets(estimator, sets[part == number]))
    if group[0] == IDENTITY:
        for metric, (one, other) in (("bpsn_auc", estimators[::-1]), ("bnsp_auc", estimators)):
            found[0][metric] = one.auroc_against(other, metric=metric)
    for metric in LABEL_METRICS:
        if metric in found[0]:
            others = None if metric in _ALONE else found[1][metric]
            yield _row(group, metric, found[0][metric], others, samples[0].size)


def _by_score(
    side: LabelledDay, others: Sample, threshold: float, *, known: ErrorEvidence | None, seed: int
) -> Iterator[MetricEstimate]:
    """Return the estimates of a side by score, which borrow from the labels of the others.

    These are the labels of another curve, as earlier ones are (`statistics.calibration`).
    """
    census = Census([side])
    labels = census.true_labels(known, history=others.given, moved=DISTANCE, seed=seed)
    return Estimator(census, threshold=threshold, seed=seed, labels=labels).of_the_model()


def _side_estimates(
    model: Iterator[MetricEstimate], estimator: Estimator, side: LabelledDay
) -> dict[str, Estimate]:
    """Return the estimates of one side by metric, but for prediction sets."""
    found: dict[str, Estimate] = {estimate.metric: estimate for estimate in model}
    found["calibration_error"] = _calibration(found["prevalence"], side)
    found["overturn_rate"] = estimator.overturn_rate()
    return found


_GUARANTEE = f"sets at {100 * COVERAGE:g} % for each label"


def _of_sets(estimator: Estimator, sets: NDArray[np.bool_]) -> dict[str, Estimate]:
    """Return the coverage of the sets (m, 2) of the labelled rows, by label too, and unsure ones.

    The `reason` of a figure is the guarantee of the sets.
    """
    estimates = [
        estimator.set_coverage(sets, metric=COVERAGES[0]),
        *(estimator.set_coverage_of(label, sets, metric=COVERAGES[1 + label]) for label in (0, 1)),
        estimator.unsure_share(sets),
    ]
    return {found.metric: replace(found, reason=found.reason or _GUARANTEE) for found in estimates}


def _all_rows(
    days: Sequence[GroupedDay], *, known: ErrorEvidence | None, seed: int
) -> list[dict[str, Any]]:
    """Return the rows of the prediction sets of all comments together."""
    everyone = [np.ones(day.stratum.shape, np.bool_) for day in days]
    sample = Sample([_side(days, everyone, threshold=0.5)])
    labels = sample.true_labels(known, seed=seed)
    sets = crossed_sets(sample, sample.label if labels is None else labels.mean)
    estimator = Estimator(sample, threshold=0.5, seed=seed, labels=labels)
    found = _of_sets(estimator, sets)
    of_all = (None, None)
    return [_row(of_all, metric, estimate, None, sample.size) for metric, estimate in found.items()]


def _gaps(rows: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the rows of the gaps in coverage between the groups of each attribute."""
    for attribute, metric in product(dict.fromkeys(row["attribute"] for row in rows), COVERAGES):
        of_groups = [r for r in rows if r["metric"] == metric and r["attribute"] == attribute]
        gap = _gap([row for row in of_groups if row["status"] == "ok"])
        comments = sum(row["comments"] for row in of_groups)
        yield _row((attribute, None), f"{metric}_gap", gap, None, comments)


def _gap(rows: Sequence[Mapping[str, Any]]) -> Estimate:
    """Return the largest less the smallest value of two estimates or more."""
    if len(rows) < 2:
        return Estimate.insufficient("fewer than two groups have a coverage", n=0)
    pairs = list(combinations(rows, 2))
    wider = float(special.ndtri(1 - (1 - LEVEL) / 2 / len(pairs))) / NORMAL_QUANTILE
    ends = [_absolute(_widened(one, wider), _widened(other, wider)) for one, other in pairs]
    low, high = (max(end[which] for end in ends) for which in (0, 1))
    values = [row["value"] for row in rows]
    n = sum(row["n"] for row in rows)
    return Estimate.from_interval(max(values) - min(values), (low, high), n=n)


def _widened(row: Mapping[str, Any], factor: float) -> Estimate:
    """Return an estimate in [0, 1] whose interval is `factor` times as wide."""
    ends = (row["value"] + factor * (row[name] - row["value"]) for name in ("low", "high"))
    low, high = (min(max(end, 0.0), 1.0) for end in ends)
    return Estimate.from_interval(row["value"], (low, high), n=row["n"])


def _absolute(one: Estimate, other: Estimate) -> tuple[float, float]:
    """Return the ends of the interval of the absolute difference."""
    found = difference(one, other)
    assert found is not None  # noqa: S101
    _, low, high, _ = found
    return max(low, -high, 0.0), max(high, -low)


def _side(days: Sequence[GroupedDay], member: Members, *, threshold: float) -> LabelledDay:
    """Return the members of all days as one day with a design of its own."""
    columns = [
        (
            *(day.labelled.prob, day.labelled.label, day.labelled.labelled),
            day.labelled.draw,
            *(day.stratum, day.routed, day.labelled.decisions(threshold)),
        )
        for day in days
    ]
    prob, label, labelled, missing, stratum, routed, flagged = (
        np.concatenate([values[inside] for values, inside in zip(parts, member, strict=True)])
        for parts in zip(*columns, strict=True)
    )
    size = int(stratum.max(initial=0)) + 1
    used = np.flatnonzero(np.bincount(stratum[labelled & (missing < 0)], minlength=size)[1:]) + 1
    merged = np.arange(size)
    if used.size:
        merged[1:] = used[np.abs(merged[1:, None] - used).argmin(axis=1)]
    stratum = merged[stratum]
    return LabelledDay(
        prob=prob,
        stratum=np.where(routed, stratum, -1),
        label=label,
        labelled=labelled,
        population=np.bincount(stratum, minlength=size),
        sample=np.bincount(stratum[routed], minlength=size),
        flagged=flagged,
        confirmations=_confirmations(days, member),
        missing=missing,
    )


def _confirmations(days: Sequence[GroupedDay], member: Members) -> Confirmations | None:
    """Return the further labels of the members; None if labels are the truth."""
    rows, labels, before = [], [], 0
    for day, inside in zip(days, member, strict=True):
        given = day.labelled.confirmations
        if given is None:
            return None
        kept = inside[given.row]
        rows.append(before + (np.cumsum(inside) - 1)[given.row[kept]])
        labels.append(given.label[kept])
        before += int(inside.sum())
    return Confirmations(row=np.concatenate(rows), label=np.concatenate(labels))


def _calibration(prevalence: Estimate, day: LabelledDay) -> Estimate:
    """Return the mean probability, which is known, less the prevalence."""
    if prevalence.value is None:
        return prevalence
    value, low, high = prevalence.known
    mean = float(day.prob.mean(dtype=np.float64))
    return Estimate.from_interval(
        mean - value, (mean - high, mean - low), n=prevalence.n, limits=(-1.0, 1.0)
    )


def _row(
    group: Group | tuple[str | None, None],
    metric: str,
    own: Estimate,
    others: Estimate | None,
    comments: int,
) -> dict[str, Any]:
    """Return the row of an estimate, with its difference from that of all other comments."""
    gap = None if others is None else difference(own, others)
    return {
        "attribute": group[0],
        "group": group[1],
        "metric": metric,
        **{name: getattr(own, name) for name in ("value", "low", "high", "n", "status", "reason")},
        **dict(zip(_DIFFERENCE, gap or (None,) * len(_DIFFERENCE), strict=True)),
        "comments": comments,
    }


def _table(rows: Sequence[dict[str, Any]]) -> pd.DataFrame:
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    numbers = ["value", "low", "high", *_DIFFERENCE]
    table[numbers] = table[numbers].astype("float64")
    table["p_holm"] = holm(table["p_value"])
    return table
