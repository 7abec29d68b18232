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
from modwatch.metrics.estimate import Estimate
from modwatch.metrics.estimation.annotators import KnownAnswers, TrueLabels
from modwatch.metrics.estimation.estimator import MINIMUM_OF_A_CLASS, WIDEST_AREA
from modwatch.metrics.estimation.labelled_day import Confirmations, LabelledDay
from modwatch.metrics.estimation.measure import sample_estimates
from modwatch.metrics.estimation.sample import Sample
from modwatch.metrics.intervals import NORMAL_QUANTILE, interval, mid_p
from modwatch.metrics.significance import difference, holm

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
#: Membership (N,) of the comments of each day.
Members = Sequence[NDArray[np.bool_]]
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
_DRAWS = 400


@dataclass(frozen=True, kw_only=True)
class GroupedDay:
    """A labelled day of which the stratum of every comment is known."""

    labelled: LabelledDay
    #: (N,) stratum of each comment, routed or not.
    stratum: Ints
    #: (N,) whether a comment was routed.
    routed: NDArray[np.bool_]

    def part(self, member: NDArray[np.bool_], merged: Ints) -> LabelledDay:
        """Return the comments (N,) that are members, as a day with a design of its own.

        `merged` (H,) is the stratum that each stratum is counted in.
        """
        day, size = self.labelled, len(self.labelled.population)
        stratum = merged[self.stratum[member]]
        place = np.cumsum(member) - 1
        confirmations = day.confirmations
        if confirmations is not None:
            inside = member[confirmations.row]
            rows = place[confirmations.row[inside]]
            confirmations = Confirmations(row=rows, label=confirmations.label[inside])
        return LabelledDay(
            prob=day.prob[member],
            stratum=stratum,
            label=day.label[member],
            labelled=day.labelled[member],
            population=np.bincount(stratum, minlength=size),
            sample=np.bincount(stratum[self.routed[member]], minlength=size),
            confirmations=confirmations,
        )


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
    model overestimates toxicity; `bpsn_auc` and `bnsp_auc` are those of `modwatch.divergence`, with
    bootstrap intervals. `difference` is that from all other comments; BPSN and BNSP compare with
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
    samples = [Sample(side) for side in sides]
    sizes = [sample.prob.size for sample in samples]
    part = np.repeat([0, 1], sizes)
    # Labels tell of error rates what people do in both; of true labels, only those of one's own.
    labels = Sample([*sides[0], *sides[1]]).true_labels(known, seed=seed, part=part)
    parted = [_rows_of(labels, part == side) for side in (0, 1)]
    found: list[dict[str, Estimate]] = [
        {
            each.metric: each
            for each in sample_estimates(
                sample,
                own,
                review_fractions=[],
                strategies=[],
                threshold=threshold,
                toxic_share=0.5,
                seed=seed,
            )
        }
        for sample, own in zip(samples, parted, strict=True)
    ]
    comments = samples[0].size
    for estimates, side in zip(found, sides, strict=True):
        estimates["calibration_error"] = _calibration(estimates["prevalence"], side)
    for metric in LABEL_METRICS[:-2]:
        yield _row(group, metric, found[0][metric], found[1][metric], comments)
    for metric, flip in (("bpsn_auc", False), ("bnsp_auc", True)):
        area = _mixed_auc(samples, labels, part, seed=seed, flip=flip)
        yield _row(group, metric, area, None, comments)


def _side(days: Sequence[GroupedDay], member: Members) -> list[LabelledDay]:
    """Return the members of each day; strata in which no day has a label join the nearest."""
    strata = max(len(day.labelled.population) for day in days)
    count = np.zeros(strata, np.int64)
    for day, inside in zip(days, member, strict=True):
        count += np.bincount(day.stratum[inside & day.labelled.labelled], minlength=strata)
    used = np.flatnonzero(count[1:]) + 1
    merged = np.arange(strata)
    if used.size:
        rest = merged[1:]
        merged[1:] = used[np.abs(rest[:, None] - used).argmin(axis=1)]
    parts = []
    for day, inside in zip(days, member, strict=True):
        size = len(day.labelled.population)
        parts.append(day.part(inside, np.minimum(merged[:size], max(size - 1, 0))))
    return parts


def _rows_of(labels: TrueLabels | None, chosen: NDArray[np.bool_]) -> TrueLabels | None:
    if labels is None:
        return None
    return replace(labels, cell=labels.cell[chosen], group=labels.group[chosen])


def _calibration(prevalence: Estimate, days: Sequence[LabelledDay]) -> Estimate:
    """Return the mean probability, which is known, less the prevalence."""
    if prevalence.value is None or prevalence.low is None or prevalence.high is None:
        return prevalence
    mean = float(np.concatenate([day.prob for day in days]).mean(dtype=np.float64))
    ends = mean - prevalence.high, mean - prevalence.low
    return Estimate.of(mean - prevalence.value, ends, n=prevalence.n, limits=(-1.0, 1.0))


def _mixed_auc(
    samples: Sequence[Sample],
    labels: TrueLabels | None,
    part: Ints,
    *,
    seed: int,
    flip: bool,
) -> Estimate:
    """Return the AUROC of others' toxic comments against the group's harmless ones.

    With `flip`, of the group's toxic ones against others' harmless ones. The interval is from
    bootstrap draws of rows within top and rest of either side, each with a draw of the true labels.
    """
    prob = np.concatenate([sample.prob for sample in samples])
    weight = np.concatenate([sample.weight for sample in samples])
    top = np.concatenate([sample.top for sample in samples])
    toxic = labels.mean if labels is not None else np.concatenate([s.label for s in samples])
    of_group = (part == 0) != flip
    positive, negative = ~of_group, of_group
    fewest = round(min(float(toxic[positive].sum()), float((1 - toxic)[negative].sum())))
    reason = next((why for s in samples if (why := s.lacks(s.everything()))), "")
    if reason or fewest < MINIMUM_OF_A_CLASS:
        reason = reason or f"{fewest} labels of the rarer class; {MINIMUM_OF_A_CLASS} are needed"
        return Estimate.insufficient(reason, n=prob.size)
    order = np.argsort(prob, kind="stable")
    starts = np.flatnonzero(np.diff(prob[order], prepend=-1.0))

    def area(times: Floats, y: Floats) -> float:
        above = np.add.reduceat((times * weight * y * positive)[order], starts)
        below = np.add.reduceat((times * weight * (1 - y) * negative)[order], starts)
        pairs = above.sum() * below.sum()
        won = above @ (np.cumsum(below) - below / 2)
        return float(won / pairs) if pairs else float("nan")

    rng = np.random.default_rng(seed)
    cells = [np.flatnonzero((part == s) & (top == t)) for s in (0, 1) for t in (False, True)]
    drawn = np.empty(_DRAWS)
    for draw in range(_DRAWS):
        times = np.zeros(prob.size)
        for cell in cells:
            if cell.size:
                times[cell] = np.bincount(
                    rng.integers(cell.size, size=cell.size), minlength=cell.size
                )
        y = toxic
        if labels is not None:
            y = labels.prob[rng.integers(len(labels.prob))][labels.cell]
        drawn[draw] = area(times, y)
    low, high = interval(drawn[~np.isnan(drawn)])
    if high - low > WIDEST_AREA:
        reason = f"the interval is {high - low:.2f} wide; more labels are needed"
        return Estimate.insufficient(reason, n=prob.size)
    return Estimate.of(area(np.ones(prob.size), toxic), (low, high), n=prob.size)


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
