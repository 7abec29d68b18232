"""From labels to counts: stratum by stratum, stage by stage, and where to label next."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace

import numpy as np

from modwatch.audit.allocation import proportional
from modwatch.audit.counts import StratumCounts, WeightedCounts, combine
from modwatch.audit.draw import DrawnComment
from modwatch.audit.labels import AuditLabel, Key, final_labels, key_of
from modwatch.audit.plan import AuditPlan
from modwatch.audit.stages import next_stage


def second_stage(
    plan: AuditPlan, drawn: Sequence[DrawnComment], labels: Sequence[AuditLabel]
) -> list[int]:
    """Return how many comments of each stratum (H,) are drawn after both stages.

    The labels of the second stage go to the unflagged side: recall hangs on it. They go in
    proportion to what is left when there is a stratum of which no comment was labelled.
    """
    sizes = [stratum.labels for stratum in plan.strata]
    numbers = plan.of_side("unflagged")
    rest = np.array([plan.strata[number].population - sizes[number] for number in numbers])
    more = min(plan.second_stage_labels, int(rest.sum()))
    if not more:
        return sizes
    said = _said(drawn, final_labels(drawn, labels))
    if all(said[number] for number in numbers):
        # Those that were drawn and not labelled cannot be drawn again: as if they were not there.
        there = {n: len(said[n]) + left for n, left in zip(numbers, rest.tolist(), strict=True)}
        extra = next_stage(_counts(plan, [[number] for number in numbers], there, said), more)
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
    final: Mapping[Key, int],
    population: Mapping[int, int],
) -> WeightedCounts | None:
    """Return what the labels of `drawn` tell of one side; None without any.

    `samples` are those of the stages, each with the one before it; `population` says how many
    comments of each stratum of the side `drawn` stand for. Strata without a label go together with
    a neighbour.

    A stratum is told by the stages that have labels of it, their shares in proportion: a stage
    without any says nothing of it, and its neighbours are others.
    """
    earlier, stages = set[Key](), []
    for sample in samples:
        new = {key_of(each) for each in sample} - earlier
        stages.append(_said([each for each in drawn if key_of(each) in new], final))
        earlier |= new
    shares = (plan.first_stage_share, 1 - plan.first_stage_share)
    alike = defaultdict[tuple[int, ...], list[list[int]]](list)
    for group in _groups(population, {n for said in stages for n in said if said[n]}):
        told = tuple(s for s, said in enumerate(stages) if any(said[n] for n in group))
        alike[told].append(group)
    parts = []
    for told, groups in alike.items():
        left, counts = dict(population), []
        for stage in told:
            counts.append(_counts(plan, groups, left, stages[stage]))
            left = {number: size - len(stages[stage][number]) for number, size in left.items()}
        part = np.array([shares[stage] for stage in told])
        whole = [sum(population[number] for number in group) for group in groups]
        found = combine(counts, part / part.sum(), population=whole)
        parts.append(replace(found, weight=found.weight * sum(whole) / sum(population.values())))
    return _together(parts) if parts else None


def _together(parts: Sequence[WeightedCounts]) -> WeightedCounts:
    """Return the cells of all parts, whose weights are those of the whole."""
    names = [each.name for each in fields(WeightedCounts)]
    return WeightedCounts(
        **{name: np.concatenate([getattr(each, name) for each in parts]) for name in names}
    )


def _said(drawn: Iterable[DrawnComment], final: Mapping[Key, int]) -> defaultdict[int, list[int]]:
    """Return the labels of some comments by stratum."""
    said = defaultdict[int, list[int]](list)
    for each in drawn:
        if key_of(each) in final:
            said[each.stratum].append(final[key_of(each)])
    return said


def _groups(population: Mapping[int, int], labelled: set[int]) -> list[list[int]]:
    """Return the strata, those without a label together with the next that has one."""
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


def _counts(
    plan: AuditPlan,
    groups: Sequence[Sequence[int]],
    population: Mapping[int, int],
    said: Mapping[int, Sequence[int]],
) -> StratumCounts:
    """Return the counts by group of strata, of which `population` comments each are left."""
    sizes = [sum(population[n] for n in group) for group in groups]
    return StratumCounts.of(
        population=sizes,
        labels=[sum(len(said[n]) for n in group) for group in groups],
        positives=[sum(sum(said[n]) for n in group) for group in groups],
        score=[
            sum(population[n] * plan.strata[n].score for n in group) / size
            for group, size in zip(groups, sizes, strict=True)
        ],
    )
