"""Stages of an audit: the labels of each by stratum, and the allocation of the second."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from modwatch.common.errors import DesignError
from modwatch.statistics.arguments import Floats, Ints
from modwatch.statistics.audit.allocation import neyman, proportional
from modwatch.statistics.audit.draw import DrawnComment
from modwatch.statistics.audit.inversion_interval import pattern
from modwatch.statistics.audit.labels import AuditLabel, Key, final_labels, key_of
from modwatch.statistics.audit.plan import AuditPlan
from modwatch.statistics.audit.stratified import StratumCounts, WeightedCounts, combine

#: The label of a comment, or draws (R,) of it.
Label = int | Ints

_NONE: Ints = np.zeros((), dtype=np.int64)

#: Share of the positives that the allocation assumes to be spread evenly.
_HIDDEN = 0.1


def next_stage(stage: StratumCounts, labels: int) -> Ints:
    """Return the labels (H,) of the next stage, in the strata of `stage`.

    Neyman allocation by the labels of `stage` and, where there were few positives, by the scores,
    and the promise of `allocation.safe_minima` for what is left. Fully labelled strata get none.
    `stratified.combine` combines the stages, with shares fixed in the plan. DesignError when
    everything is labelled, or there are fewer than two labels a stratum.

    >>> first = StratumCounts.from_arrays(population=[900, 100], labels=[30, 30], positives=[0, 15],
    ...                          score=[0.01, 0.5])
    >>> next_stage(first, 100).tolist()
    [85, 15]
    """
    left = stage.population - stage.labels
    some = left > 0
    if not some.any():
        raise DesignError("Every comment is labelled already; there is nothing left to draw.")
    sizes = np.zeros(left.size, dtype=np.int64)
    sizes[some] = neyman(left[some], spread(stage)[some], labels)
    return sizes


def spread(stage: StratumCounts) -> Floats:
    """Return the estimated standard deviation (H,) of the label in each stratum.

    Where all labels are positive, one positive and one negative are added, as in a pilot.
    """
    counts = stage.weighted()
    share = max(float(counts.rate), 1 / (2 * float(counts.labels.sum())))
    rate = share * ((1 - _HIDDEN) * pattern(counts) + _HIDDEN)
    rate = np.minimum(rate, (stage.labels + 1) / (stage.labels + 2))
    return np.asarray(np.sqrt(rate * (1 - rate)))


def second_stage(
    plan: AuditPlan, drawn: Sequence[DrawnComment], labels: Sequence[AuditLabel]
) -> list[int]:
    """Return the number of comments (H,) of each stratum that are drawn in both stages together.

    All labels of the second stage go to the unflagged side, which decides the precision of recall.
    They are allocated proportionally when a stratum has no labels yet.
    """
    sizes = [stratum.labels for stratum in plan.strata]
    numbers = plan.of_side("unflagged")
    rest = np.array([plan.strata[number].population - sizes[number] for number in numbers])
    more = min(plan.second_stage_labels, int(rest.sum()))
    if not more:
        return sizes
    by_stratum = _labels_by_stratum(drawn, final_labels(drawn, labels))
    if all(by_stratum[number] for number in numbers):
        # Comments that were drawn but not labelled cannot be drawn again, and are left out.
        population = {
            n: len(by_stratum[n]) + left for n, left in zip(numbers, rest.tolist(), strict=True)
        }
        counts = _group_counts(plan, [[number] for number in numbers], population, by_stratum)
        extra = next_stage(counts, more)
    else:
        extra = np.zeros(len(numbers), dtype=np.int64)
        extra[rest > 0] = proportional(rest[rest > 0], more)
    for number, count in zip(numbers, extra.tolist(), strict=True):
        sizes[number] += count
    return sizes


def side_counts(
    plan: AuditPlan,
    samples: Sequence[Sequence[DrawnComment]],
    drawn: Sequence[DrawnComment],
    final: Mapping[Key, Label],
    population: Mapping[int, int],
) -> WeightedCounts | None:
    """Return the counts of the labels of `drawn` on one side; None without labels.

    `final` are labels, or draws (R,) of each; then positives are (R, C).

    `samples` are those of the stages, each including the one before; `population` is the number of
    comments of each stratum of the side that `drawn` represents. Strata without labels are merged
    with a neighbour.

    A stratum is estimated from the stages that have labels of it, with proportional shares. Stages
    without labels of it do not count, and merge it differently.
    """
    earlier, stages = set[Key](), []
    for sample in samples:
        new = {key_of(comment) for comment in sample} - earlier
        stages.append(
            _labels_by_stratum([comment for comment in drawn if key_of(comment) in new], final)
        )
        earlier |= new
    shares = (plan.first_stage_share, 1 - plan.first_stage_share)
    by_stages = defaultdict[tuple[int, ...], list[list[int]]](list)
    for group in _groups(population, {n for stage in stages for n in stage if stage[n]}):
        labelled = tuple(s for s, stage in enumerate(stages) if any(stage[n] for n in group))
        by_stages[labelled].append(group)
    parts = []
    for labelled, groups in by_stages.items():
        left, counts = dict(population), []
        for stage in labelled:
            counts.append(_group_counts(plan, groups, left, stages[stage]))
            left = {number: size - len(stages[stage][number]) for number, size in left.items()}
        part = np.array([shares[stage] for stage in labelled])
        sizes = [sum(population[number] for number in group) for group in groups]
        cells = combine(counts, part / part.sum(), population=sizes)
        parts.append(replace(cells, weight=cells.weight * sum(sizes) / sum(population.values())))
    return WeightedCounts.concatenated(parts) if parts else None


def _labels_by_stratum(
    drawn: Iterable[DrawnComment], final: Mapping[Key, Label]
) -> defaultdict[int, list[Label]]:
    labels = defaultdict[int, list[Label]](list)
    for comment in drawn:
        if key_of(comment) in final:
            labels[comment.stratum].append(final[key_of(comment)])
    return labels


def _groups(population: Mapping[int, int], labelled: set[int]) -> list[list[int]]:
    """Return the strata, those without labels merged with the next that has some."""
    groups: list[list[int]] = []
    waiting: list[int] = []
    for number in population:
        waiting.append(number)
        if number in labelled:
            groups.append(waiting)
            waiting = []
    if groups:
        groups[-1] += waiting
    return groups


def _group_counts(
    plan: AuditPlan,
    groups: Sequence[Sequence[int]],
    population: Mapping[int, int],
    labels: Mapping[int, Sequence[Label]],
) -> StratumCounts:
    """Return the counts by group of strata, of whose comments `population` are left."""
    positives = [
        sum((np.asarray(one) for n in group for one in labels[n]), _NONE) for group in groups
    ]
    sizes = [sum(population[n] for n in group) for group in groups]
    return StratumCounts.from_arrays(
        population=sizes,
        labels=[sum(len(labels[n]) for n in group) for group in groups],
        positives=np.stack(np.broadcast_arrays(*positives), axis=-1),
        score=[
            sum(population[n] * plan.strata[n].score for n in group) / size
            for group, size in zip(groups, sizes, strict=True)
        ],
    )
