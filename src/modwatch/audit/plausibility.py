"""Whether the tables of an audit can be what its plan and the people made: without the scores.

What only chance decides is held against chance: probabilities of independent draws are put together
as R. A. Fisher (1925) does, −2 Σ ln p being χ² with two degrees of freedom for each.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta

import numpy as np
from scipy import stats

from modwatch.audit.draw import DrawnComment, keys_of
from modwatch.audit.evidence import moment
from modwatch.audit.labels import AuditLabel, Key, key_of
from modwatch.audit.plan import AuditPlan
from modwatch.metrics.inputs import Floats

#: What chance alone does so rarely has another cause: not one in a million audits is accused.
_TOO_RARE = 1e-9

#: Clocks of different machines differ by no more.
_CLOCKS = timedelta(minutes=5)


def sample_problems(
    plan: AuditPlan,
    drawn: Sequence[DrawnComment],
    sizes: Sequence[int],
    earlier: Sequence[DrawnComment] = (),
) -> Iterator[str]:
    """Yield what is wrong with a sample of `sizes` (H,) comments a stratum, in words.

    `earlier` is the sample of the stage before: of each stratum, that with the smaller keys.
    """
    planned = range(len(plan.strata))
    if any(each.stratum not in planned or not 0 <= each.key < 2**64 for each in drawn):
        yield "holds a stratum that is not planned, or a number that cannot be"
        return
    if len({key_of(each) for each in drawn}) < len(drawn):
        yield "holds a comment twice"
    if [each.key for each in drawn] != sorted(each.key for each in drawn):
        yield "is not in the order of its keys"
    strata: list[list[DrawnComment]] = [[] for _ in plan.strata]
    for each in drawn:
        strata[each.stratum].append(each)
    if [len(mine) for mine in strata] != list(sizes):
        yield "does not hold as many comments of each stratum as the plan says"
    yield from _of_comments(plan, drawn)
    for number, mine in enumerate(strata):
        first = [each for each in earlier if each.stratum == number]
        if mine[: len(first)] != first:
            yield f"does not go on where the stage before ended in stratum {number}"
    there = [number for number, mine in enumerate(strata) if mine]
    # Of N numbers at random, how likely are fewer than n up to the largest that was drawn?
    law = stats.binom(
        [plan.strata[number].population for number in there],
        [(strata[number][-1].key + 1) / 2**64 for number in there],
    )
    most = np.array([len(strata[number]) for number in there]) - 1
    if there and (_too_rare(law.cdf(most)) or _too_rare(law.sf(most))):
        yield "does not hold the comments of the smallest numbers: others were left out or added"


def population_problems(
    plan: AuditPlan, drawn: Sequence[DrawnComment], population: Mapping[tuple[str, str, int], int]
) -> Iterator[str]:
    """Yield what is wrong with the numbers of comments by column, value and stratum, in words.

    Of a stratum's N comments K have the value, of its n drawn ones k do: hypergeometric.
    """
    if any(not 0 <= stratum < len(plan.strata) for _, _, stratum in population):
        yield "holds a stratum that is not planned"
        return
    found = Counter(
        (column, value, each.stratum)
        for each in drawn
        for column, values in each.traits.items()
        for value in {*values}
    )
    sizes, whole = Counter(each.stratum for each in drawn), [s.population for s in plan.strata]
    if any(not 0 < count <= whole[cell[2]] for cell, count in population.items()):
        yield "holds more comments of a value than the stratum has, or none"
        return
    cells = defaultdict[tuple[str, str], list[tuple[int, int, int, int]]](list)
    for cell in sorted(population.keys() | found.keys()):
        there, size = population.get(cell, 0), sizes[cell[2]]
        if found[cell] > there or size - found[cell] > whole[cell[2]] - there:
            yield "holds fewer comments of a value, or without it, than were drawn"
            return
        cells[cell[:2]].append((whole[cell[2]], there, size, found[cell]))
    for rows in cells.values():
        of, there, size, mine = np.array(rows).T
        law = stats.hypergeom(of, there, size)
        if _too_rare(law.cdf(mine)) or _too_rare(law.sf(mine - 1)):
            yield "does not fit the sample: a value is too frequent or too rare in it"
            return


def label_problems(
    labels: Sequence[AuditLabel],
    before: Sequence[AuditLabel],
    drawn_at: Mapping[Key, str],
    sealed_at: str,
) -> Iterator[str]:
    """Yield what is wrong with the labels of drawn comments, in words.

    `before` are those of the stage before, `drawn_at` says when each comment was drawn.
    """
    if not {*before} <= {*labels}:
        yield "does not hold all labels of the stage before"
    for each in labels:
        told = moment(each.decided_at)
        if told < moment(drawn_at[key_of(each)]) - _CLOCKS:
            yield f"holds a label of {each.day} from before the comment was drawn"
            return
        if told > moment(sealed_at) + _CLOCKS:
            yield f"holds a label of {each.day} from after the labels were sealed"
            return


def _of_comments(plan: AuditPlan, drawn: Sequence[DrawnComment]) -> Iterator[str]:
    """Yield which days hold a comment with a number or a score that it cannot have."""
    planned = {day.day for day in plan.population if day.comments}
    for day in sorted({each.day for each in drawn}):
        mine = [each for each in drawn if each.day == day]
        if day not in planned:
            yield f"holds a comment of {day}, which the plan does not"
        if keys_of(plan, day, [each.comment_id for each in mine]).tolist() != [
            each.key for each in mine
        ]:
            yield f"holds a comment of {day} without the number that the plan gives it"
        if not all(_within(plan, each) for each in mine):
            yield f"holds a comment of {day} whose score is outside its stratum"


def _within(plan: AuditPlan, each: DrawnComment) -> bool:
    stratum = plan.strata[each.stratum]
    lower = 0 if stratum.lower is None else stratum.lower
    upper = np.inf if stratum.upper is None else stratum.upper
    decided = (each.score > plan.threshold) == (stratum.side == "flagged")
    return decided and each.score <= 1 and lower <= each.score < upper


def _too_rare(chances: Floats) -> bool:
    """Return whether independent probabilities are hardly ever as small as these together."""
    told = -2 * np.log(np.maximum(chances, np.finfo(float).tiny)).sum()
    return bool(stats.chi2.sf(told, 2 * chances.size) < _TOO_RARE)
