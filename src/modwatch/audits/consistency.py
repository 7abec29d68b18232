"""Consistency of an audit: its plan with the scores, its tables with the plan and each other.

Draws are compared with chance: p-values of independent draws are combined by Fisher's method
(1925), −2 Σ ln p being χ² with two degrees of freedom each.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta

import numpy as np
from scipy import stats

from modwatch.audits.evidence import moment
from modwatch.statistics.arguments import Floats
from modwatch.statistics.audit.draw import DrawnComment, keys_of
from modwatch.statistics.audit.labels import (
    AuditLabel,
    Key,
    Outcome,
    in_order,
    key_of,
    labels_demanded,
)
from modwatch.statistics.audit.plan import AuditPlan, PopulationDay
from modwatch.statistics.audit.sample_design import ScoreCounts, sizes_and_means
from modwatch.statistics.decisions import is_flagged

#: p-values below this are reported: fewer than one false report in a million audits.
_TOO_RARE = 1e-9

#: Tolerated difference between the clocks of machines.
_CLOCKS = timedelta(minutes=5)

#: Tolerated difference of mean scores, absolute or relative, from rounding on other processors.
_ROUNDING = 1e-6

_DAY_FIELDS = {
    "model_version": "the model",
    "threshold": "the threshold",
    "comments": "the number of comments",
    "flagged": "the number of flagged comments",
}


def plan_problems(
    plan: AuditPlan, days: Sequence[PopulationDay], flagged: ScoreCounts, unflagged: ScoreCounts
) -> Iterator[str]:
    """Yield the differences between a plan and the current scores of its period.

    `days` are the days of the plan as they are now, `flagged` and `unflagged` their scores.
    Compares model, threshold, numbers of comments and digest of each day, and the mean score of
    each stratum. The comments of each stratum are compared when the sample is redrawn.
    """
    yield from day_problems(plan.population, days)
    for side, scores in (("flagged", flagged), ("unflagged", unflagged)):
        means = _mean_scores(plan, side, scores)
        for number, mean in zip(plan.of_side(side), means.tolist(), strict=True):
            planned = plan.strata[number].score
            if not math.isclose(mean, planned, rel_tol=_ROUNDING, abs_tol=_ROUNDING**2):
                yield (
                    f"stratum {number}: the mean score is {mean:.6g}, but {planned:.6g} in the plan"
                )


def day_problems(planned: Sequence[PopulationDay], days: Sequence[PopulationDay]) -> Iterator[str]:
    """Yield the differences between the days of a plan and the same days as they are now."""
    for then, now in zip(planned, days, strict=True):
        for name, title in _DAY_FIELDS.items():
            before, after = getattr(then, name), getattr(now, name)
            if before != after:
                yield f"{then.day}: {title} is {after}, but {before} in the plan"
        if then.digest != now.digest and then.comments == now.comments:
            yield f"{then.day}: ids, scores or decisions differ from the plan"
        if then.texts != now.texts and then.comments == now.comments:
            yield (
                f"{then.day}: texts differ from the plan: people may have read other words than "
                "the model scored"
            )


def _mean_scores(plan: AuditPlan, side: str, scores: ScoreCounts) -> Floats:
    """Return the mean score (H,) of each stratum of a side; 0 for one without comments now."""
    if not plan.of_side(side):
        return np.empty(0)
    return sizes_and_means(plan.edges(side), scores, plan.calibration_of(side))[1]


def sample_problems(
    plan: AuditPlan,
    drawn: Sequence[DrawnComment],
    sizes: Sequence[int],
    earlier: Sequence[DrawnComment] = (),
    *,
    seed: str,
) -> Iterator[str]:
    """Yield the problems of a sample that should have `sizes` (H,) comments per stratum.

    For `seed` see `draw.keys_of`. `earlier` is the sample of the previous stage, which has the
    smaller keys of each stratum.
    """
    planned = range(len(plan.strata))
    if any(comment.stratum not in planned or not 0 <= comment.key < 2**64 for comment in drawn):
        yield "contains a stratum that is not in the plan, or an invalid random number"
        return
    if len({key_of(comment) for comment in drawn}) < len(drawn):
        yield "contains a comment twice"
    if [comment.key for comment in drawn] != sorted(comment.key for comment in drawn):
        yield "is not sorted by random number"
    strata: list[list[DrawnComment]] = [[] for _ in plan.strata]
    for comment in drawn:
        strata[comment.stratum].append(comment)
    if [len(mine) for mine in strata] != list(sizes):
        yield "does not contain the planned number of comments of each stratum"
    yield from _comment_problems(plan, drawn, seed)
    for number, mine in enumerate(strata):
        first = [comment for comment in earlier if comment.stratum == number]
        if mine[: len(first)] != first:
            yield f"does not continue the previous stage in stratum {number}"
    drawn_from = [number for number, mine in enumerate(strata) if mine]
    # Among N random numbers, how likely are fewer than n up to the largest that was drawn?
    law = stats.binom(
        [plan.strata[number].population for number in drawn_from],
        [(strata[number][-1].key + 1) / 2**64 for number in drawn_from],
    )
    most = np.array([len(strata[number]) for number in drawn_from]) - 1
    if drawn_from and (_too_rare(law.cdf(most)) or _too_rare(law.sf(most))):
        yield (
            "does not contain the comments with the smallest random numbers: some were left out or "
            "added"
        )


def population_problems(
    plan: AuditPlan, drawn: Sequence[DrawnComment], population: Mapping[tuple[str, str, int], int]
) -> Iterator[str]:
    """Yield the problems of the numbers of comments by column, value and stratum.

    K of a stratum's N comments have the value, and k of its n drawn ones: hypergeometric.
    """
    if any(not 0 <= stratum < len(plan.strata) for _, _, stratum in population):
        yield "contains a stratum that is not in the plan"
        return
    in_sample = Counter(
        (column, value, comment.stratum)
        for comment in drawn
        for column, values in comment.traits.items()
        for value in {*values}
    )
    sizes, totals = (
        Counter(comment.stratum for comment in drawn),
        [s.population for s in plan.strata],
    )
    if any(not 0 < count <= totals[cell[2]] for cell, count in population.items()):
        yield "contains a value with more comments than the stratum has, or none"
        return
    cells = defaultdict[tuple[str, str], list[tuple[int, int, int, int]]](list)
    for cell in sorted(population.keys() | in_sample.keys()):
        known, size = population.get(cell, 0), sizes[cell[2]]
        if in_sample[cell] > known or size - in_sample[cell] > totals[cell[2]] - known:
            yield "contains fewer comments with or without a value than were drawn"
            return
        cells[cell[:2]].append((totals[cell[2]], known, size, in_sample[cell]))
    for rows in cells.values():
        total, known_, size_, mine_ = np.array(rows).T
        law = stats.hypergeom(total, known_, size_)
        if _too_rare(law.cdf(mine_)) or _too_rare(law.sf(mine_ - 1)):
            yield "does not match the sample, in which a value is too frequent or too rare"
            return


def label_problems(
    labels: Sequence[AuditLabel],
    before: Sequence[AuditLabel],
    drawn_at: Mapping[Key, str],
    sealed_at: str,
) -> Iterator[str]:
    """Yield the problems of the labels of drawn comments.

    `before` are those of the previous stage, `drawn_at` is the time when each comment was drawn.
    """
    if not {*before} <= {*labels}:
        yield "does not contain all labels of the previous stage"
    for label in labels:
        decided_at = moment(label.decided_at)
        if decided_at < moment(drawn_at[key_of(label)]) - _CLOCKS:
            yield f"contains a label of {label.day} from before the comment was drawn"
            return
        if decided_at > moment(sealed_at) + _CLOCKS:
            yield f"contains a label of {label.day} from after the labels were sealed"
            return


def outcome_problems(
    outcomes: Sequence[Outcome],
    drawn: Sequence[DrawnComment],
    labels: Sequence[AuditLabel],
    *,
    stopped: bool,
) -> Iterator[str]:
    """Yield the problems of the outcomes of drawn comments, given their sealed labels."""
    if [key_of(outcome) for outcome in outcomes] != [key_of(comment) for comment in drawn]:
        yield "does not list the outcome of every drawn comment"
        return
    given = Counter(key_of(label) for label in labels)
    if any(outcome.labels != given[key_of(outcome)] for outcome in outcomes):
        yield "counts other labels than were sealed: labels were left out or added"
    if any(outcome.outcome == "decided" and not outcome.labels for outcome in outcomes):
        yield "contains a comment that was decided and has no label: its label was left out"
    if not stopped and any(outcome.outcome not in ("decided", "erased") for outcome in outcomes):
        yield "contains undecided comments, although the labelling was not stopped"


def confirmation_problems(
    plan: AuditPlan,
    drawn: Sequence[DrawnComment],
    labels: Sequence[AuditLabel],
    outcomes: Sequence[Outcome],
) -> Iterator[str]:
    """Yield the problems of further labels: those that the plan demands and only those.

    A comment that is decided has them all, unless a lead adjudicated it. Of a comment whose label
    was corrected by its person, only the decision log shows what the label was before.
    """
    given = in_order(labels)
    decided = {key_of(outcome) for outcome in outcomes if outcome.outcome == "decided"}
    few = many = 0
    for comment in drawn:
        mine = given.get(key_of(comment), [])
        if not mine or any(one.action != "label" for one in mine):
            continue
        demanded = labels_demanded(plan, comment, mine)
        confirmed = mine[0].label in plan.confirms(comment.stratum, comment.key)
        few += len(mine) < demanded and key_of(comment) in decided
        many += len(mine) > demanded or (len(mine) > 1 and not confirmed)
    if few:
        yield (
            f"lacks further labels of {few} decided comment{'' if few == 1 else 's'} whose label "
            "is confirmed according to the plan: confirmations were left out"
        )
    if many:
        yield (
            f"contains further labels of {many} comment{'' if many == 1 else 's'} whose label is "
            "not confirmed according to the plan: the confirmations were chosen"
        )


def _comment_problems(plan: AuditPlan, drawn: Sequence[DrawnComment], seed: str) -> Iterator[str]:
    """Yield the days with a comment whose random number or score contradicts the plan."""
    planned = {day.day for day in plan.population if day.comments}
    for day in sorted({comment.day for comment in drawn}):
        mine = [comment for comment in drawn if comment.day == day]
        if day not in planned:
            yield f"contains a comment of {day}, which is not in the plan"
        if keys_of(plan, day, [comment.comment_id for comment in mine], seed).tolist() != [
            comment.key for comment in mine
        ]:
            yield f"contains a comment of {day} with another random number than the plan gives it"
        if not all(_within(plan, comment) for comment in mine):
            yield f"contains a comment of {day} whose score is outside its stratum"


def _within(plan: AuditPlan, comment: DrawnComment) -> bool:
    stratum = plan.strata[comment.stratum]
    lower = 0 if stratum.lower is None else stratum.lower
    upper = np.inf if stratum.upper is None else stratum.upper
    threshold, flagged = plan.threshold, stratum.side == "flagged"
    decided = threshold is None or is_flagged(comment.score, threshold) == flagged
    return decided and comment.score <= 1 and lower <= comment.score < upper


def _too_rare(chances: Floats) -> bool:
    """Return whether p-values are too small together, by Fisher's method."""
    statistic = -2 * np.log(np.maximum(chances, np.finfo(float).tiny)).sum()
    return bool(stats.chi2.sf(statistic, 2 * chances.size) < _TOO_RARE)
