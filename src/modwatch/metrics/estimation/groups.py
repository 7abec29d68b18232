"""How a model decides about groups of comments: each group beside all other comments.

What the scores tell is known of every comment. What depends on labels is estimated by the design,
as for all comments together: a group's part of a stratum is a random sample of its comments there.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from modwatch.errors import MetricInputError
from modwatch.metrics import inputs
from modwatch.metrics.estimate import Estimate
from modwatch.metrics.estimation.annotators import KnownAnswers, TrueLabels
from modwatch.metrics.estimation.estimator import Estimator
from modwatch.metrics.estimation.labelled_day import Confirmations, LabelledDay
from modwatch.metrics.estimation.sample import Sample
from modwatch.metrics.intervals import NORMAL_QUANTILE, mid_p
from modwatch.metrics.significance import difference, holm

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
#: Membership (N,) of the comments of each day.
Members = Sequence[NDArray[np.bool_]]
#: Attribute of groups that have BPSN and BNSP.
IDENTITY = "identity"
#: A group: its attribute, such as `language`, and its name.
Group = tuple[str, str]

#: What is known of every comment of a day, and what labels tell of a window.
SCORE_METRICS = ("mean_uncertainty", "flagged_share", "reviewed_share")
LABEL_METRICS = (
    *("accuracy", "prevalence", "precision_flagged", "recall_flagged", "auroc", "brier"),
    *("calibration_error", "bpsn_auc", "bnsp_auc"),
)

#: Columns of the tables.
COLUMNS = (
    *("attribute", "group", "metric", "value", "low", "high"),
    *("difference", "difference_low", "difference_high", "p_value", "p_holm"),
    *("n", "comments", "status", "reason"),
)

_DIFFERENCE = ("difference", "difference_low", "difference_high", "p_value")


@dataclass(frozen=True, kw_only=True)
class GroupedDay:
    """A labelled day of which the stratum of every comment is known."""

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
    interval for the stream of which the day is a sample, and `difference` that from all other
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
        return Estimate.of(value, (value - margin, value + margin), n=values.size)

    def share(events: NDArray[np.bool_], inside: NDArray[np.bool_]) -> Estimate:
        size = int(inside.sum())
        if not size:
            return Estimate.insufficient("no comment", n=0)
        count = int(events[inside].sum())
        return Estimate.of(count / size, mid_p(count, size), n=size)

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
    known: KnownAnswers | None = None,
    seed: int = 0,
) -> pd.DataFrame:
    """Return `LABEL_METRICS` of each group over a window; a row each group and metric.

    Columns: `COLUMNS`. The metrics are those of `measure_days` for the group's comments, which
    allow for people's errors; people are supposed to err alike in all groups. Further,
    `calibration_error` is the mean probability less the prevalence, in [−1, 1], above 0 where the
    model overestimates toxicity; `bpsn_auc` and `bnsp_auc`, of identities only, are those of
    `modwatch.divergence`. `difference` is that from all other comments; BPSN and BNSP compare with
    them by themselves. `p_holm` is corrected for all rows.

    Groups with few labels are insufficient, with the reason.

    Args:
        days: of the window.
        members: name of each group, and which comments of each day belong to it.
        threshold: in [0, 1]; the model flags prob > threshold.
        known: further evidence of people's error rates, such as answers to gold items.
        seed: of the draws behind the intervals.

    Raises:
        MetricInputError: not one membership per comment, or an argument out of range.
    """
    threshold = inputs.fraction("threshold", threshold)
    rows: list[dict[str, Any]] = []
    for group, member in members:
        rows += _group_rows(days, group, member, threshold=threshold, known=known, seed=seed)
    return _table(rows)


def _group_rows(
    days: Sequence[GroupedDay],
    group: Group,
    member: Members,
    *,
    threshold: float,
    known: KnownAnswers | None,
    seed: int,
) -> Iterator[dict[str, Any]]:
    for day, inside in zip(days, member, strict=True):
        if inside.shape != day.stratum.shape:
            raise MetricInputError(
                f"got {inside.size} memberships for {day.stratum.size} comments; pass one each"
            )
    sides = [_side(days, member), _side(days, [~inside for inside in member])]
    samples = [Sample([side]) for side in sides]
    part = np.repeat([0, 1], [sample.prob.size for sample in samples])
    # Labels tell of error rates what people do in both; of true labels, only those of one's own.
    labels = Sample(sides).true_labels(known, seed=seed, part=part)
    estimators = [
        Estimator(sample, threshold=threshold, seed=seed, labels=_rows_of(labels, part == side))
        for side, sample in enumerate(samples)
    ]
    found: list[dict[str, Estimate]] = [
        {each.metric: each for each in estimator.of_the_model()} for estimator in estimators
    ]
    comments = samples[0].size
    for estimates, side in zip(found, sides, strict=True):
        estimates["calibration_error"] = _calibration(estimates["prevalence"], side)
    for metric in LABEL_METRICS[:-2]:
        yield _row(group, metric, found[0][metric], found[1][metric], comments)
    if group[0] != IDENTITY:
        return
    for metric, (one, other) in (("bpsn_auc", estimators[::-1]), ("bnsp_auc", estimators)):
        yield _row(group, metric, one.auroc_against(other, metric=metric), None, comments)


def _side(days: Sequence[GroupedDay], member: Members) -> LabelledDay:
    """Return the members of all days as one day with a design of its own.

    A group may have no label on a day, or in a stratum: the strata of all days are taken together,
    and those without any label join the nearest one that has some.
    """
    columns = [
        (day.labelled.prob, day.labelled.label, day.labelled.labelled, day.stratum, day.routed)
        for day in days
    ]
    prob, label, labelled, stratum, routed = (
        np.concatenate([values[inside] for values, inside in zip(parts, member, strict=True)])
        for parts in zip(*columns, strict=True)
    )
    size = int(stratum.max(initial=0)) + 1
    used = np.flatnonzero(np.bincount(stratum[labelled], minlength=size)[1:]) + 1
    merged = np.arange(size)
    if used.size:
        merged[1:] = used[np.abs(merged[1:, None] - used).argmin(axis=1)]
    stratum = merged[stratum]
    return LabelledDay(
        prob=prob,
        stratum=stratum,
        label=label,
        labelled=labelled,
        population=np.bincount(stratum, minlength=size),
        sample=np.bincount(stratum[routed], minlength=size),
        confirmations=_confirmations(days, member),
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


def _rows_of(labels: TrueLabels | None, chosen: NDArray[np.bool_]) -> TrueLabels | None:
    if labels is None:
        return None
    return replace(labels, cell=labels.cell[chosen], group=labels.group[chosen])


def _calibration(prevalence: Estimate, day: LabelledDay) -> Estimate:
    """Return the mean probability, which is known, less the prevalence."""
    if prevalence.value is None or prevalence.low is None or prevalence.high is None:
        return prevalence
    mean = float(day.prob.mean(dtype=np.float64))
    ends = mean - prevalence.high, mean - prevalence.low
    return Estimate.of(mean - prevalence.value, ends, n=prevalence.n, limits=(-1.0, 1.0))


def _row(
    group: Group, metric: str, own: Estimate, others: Estimate | None, comments: int
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
