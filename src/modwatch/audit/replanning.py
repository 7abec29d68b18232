"""Whether a plan holds what the scores of its period give when they are looked at anew."""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from modwatch.audit.design import ScoreCounts
from modwatch.audit.plan import AuditPlan, PopulationDay
from modwatch.audit.recalibration import prior_shift, shifted
from modwatch.metrics.inputs import Floats

#: Mean scores differ by no more, absolutely or of their size, because processors round otherwise.
_ROUNDING = 1e-6

_OF_A_DAY = {
    "model_version": "the model",
    "threshold": "the threshold",
    "comments": "the number of comments",
    "flagged": "the number of flagged comments",
}


def plan_problems(
    plan: AuditPlan, days: Sequence[PopulationDay], flagged: ScoreCounts, unflagged: ScoreCounts
) -> Iterator[str]:
    """Yield where a plan differs from its period, one sentence a difference.

    `days` are those of the plan as they are now, `flagged` and `unflagged` their scores. Compared
    are the model, its threshold, the numbers of comments and the digest of each day, and the mean
    score of each stratum. That each stratum has its comments is known when it is drawn anew.
    """
    for then, now in zip(plan.population, days, strict=True):
        for name, words in _OF_A_DAY.items():
            before, after = getattr(then, name), getattr(now, name)
            if before != after:
                yield f"{then.day}: {words} is {after} now and {before} in the plan"
        if then.digest != now.digest and then.comments == now.comments:
            yield f"{then.day}: ids, scores or decisions are not those of the plan"
    for side, scores in (("flagged", flagged), ("unflagged", unflagged)):
        means = _means(plan, side, scores, unflagged)
        for number, mean in zip(plan.of_side(side), means.tolist(), strict=True):
            told = plan.strata[number].score
            if not math.isclose(mean, told, rel_tol=_ROUNDING, abs_tol=_ROUNDING**2):
                yield (
                    f"stratum {number}: the mean score is {mean:.6g} now and {told:.6g} in the plan"
                )


def _means(plan: AuditPlan, side: str, scores: ScoreCounts, unflagged: ScoreCounts) -> Floats:
    """Return the mean score (H,) of each stratum of a side, 0 of one without a comment now."""
    numbers = plan.of_side(side)
    if not numbers:
        return np.empty(0)
    expected = (plan.options or {}).get("expected_prevalence")
    shift = 0.0
    if isinstance(expected, float) and unflagged.comments:
        shift = prior_shift(unflagged.score, expected, counts=unflagged.count)
    stratum = plan.edges(side).assign(scores.score)
    size = np.bincount(stratum, weights=scores.count, minlength=len(numbers))
    whole = np.bincount(
        stratum, weights=scores.count * shifted(scores.score, shift), minlength=len(numbers)
    )
    return np.asarray(whole / np.maximum(size, 1))
