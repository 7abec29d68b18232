"""A plan is held against the scores of its period: every difference has its sentence."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace

import numpy as np
import pytest
from audit_making import Comments, days_of, make_comments

from modwatch.audits.consistency import plan_problems
from modwatch.statistics.audit.draw import Scored
from modwatch.statistics.audit.plan import (
    AuditPlan,
    PlannedStratum,
    planned_calibrations,
    planned_strata,
)
from modwatch.statistics.audit.sample_design import DesignOptions, ScoreCounts, design


@pytest.fixture(scope="module")
def comments():
    return make_comments(1500)


def counts(parts: Sequence[Scored]) -> tuple[ScoreCounts, ScoreCounts]:
    prob = np.concatenate([part.prob for part in parts]).astype(np.float64)
    flagged = np.concatenate([part.flagged for part in parts])
    return ScoreCounts.from_scores(prob[flagged]), ScoreCounts.from_scores(prob[~flagged])


def planned(comments: Comments, **options: float) -> AuditPlan:
    made = design(*counts(comments.parts), 300, DesignOptions(**options))  # type: ignore[arg-type]
    return AuditPlan(
        audit="2026-01",
        population=days_of(comments.parts, comments.threshold),
        strata=planned_strata(made),
        calibrations=planned_calibrations(made),
        options=asdict(DesignOptions(**options)),  # type: ignore[arg-type]
    )


def problems(
    plan: AuditPlan, comments: Comments, parts: Sequence[Scored] | None = None
) -> list[str]:
    there = comments.parts if parts is None else parts
    return list(plan_problems(plan, days_of(there, comments.threshold), *counts(there)))


@pytest.mark.parametrize("options", [{}, {"expected_prevalence": 0.03}, {"bins": 3}])
def test_a_plan_of_these_scores_is_right(comments, options):
    plan = planned(comments, **options)
    for same in (plan, AuditPlan.from_json(plan.to_json()), replace(plan, options=None)):
        assert problems(same, comments) == []


def test_a_stratum_whose_mean_score_is_another_is_named(comments):
    plan = planned(comments)

    def forged(change: Callable[[PlannedStratum], float], *numbers: int) -> list[str]:
        strata = tuple(
            replace(item, score=change(item)) if number in numbers else item
            for number, item in enumerate(plan.strata)
        )
        return problems(replace(plan, strata=strata), comments)

    first = plan.of_side("unflagged")[0]
    assert forged(lambda row: row.score * (1 + 1e-9), 0, first) == []
    for number in (0, first):
        result = plan.strata[number].score
        assert forged(lambda item: item.score / 2, number) == [
            f"stratum {number}: the mean score is {result:.6g}, but {result / 2:.6g} in the plan"
        ]
    assert len(forged(lambda entry: entry.score * 0.999, 0, first)) == 2


def test_a_recalibration_that_was_not_planned_with_is_found(comments):
    plan = planned(comments, expected_prevalence=0.03)
    other = replace(plan, calibrations=planned(comments, expected_prevalence=0.3).calibrations)
    found = problems(other, comments)
    assert len(found) > len(plan.strata) / 2
    assert all("the mean score is" in match for match in found)


def test_each_difference_of_a_day_has_its_sentence(comments):
    plan = planned(comments)
    others = [replace(day, model_version="9", threshold=0.5) for day in plan.population]
    others[1] = replace(others[1], digest="00")
    result, first = comments.threshold, plan.first
    found = problems(replace(plan, population=tuple(others)), comments)
    assert found[:2] == [
        f"{first}: the model is 7, but 9 in the plan",
        f"{first}: the threshold is {result}, but 0.5 in the plan",
    ]
    assert len(found) == 2 * len(others) + 1
    assert found[4] == f"{others[1].day}: ids, scores or decisions differ from the plan"


def test_a_score_that_changed_is_found_by_the_digest_of_its_day(comments):
    part = comments.parts[0]
    prob = part.prob.copy()
    prob[0] = np.nextafter(prob[0], np.float32(1))
    assert problems(
        planned(comments), comments, [replace(part, prob=prob), *comments.parts[1:]]
    ) == [f"{part.day}: ids, scores or decisions differ from the plan"]


def test_comments_that_are_gone_are_counted_once(comments):
    part = comments.parts[0]
    keep = np.flatnonzero(~part.flagged)[1:]
    fewer = Scored(
        day=part.day,
        comment_id=[part.comment_id[row] for row in keep],
        prob=part.prob[keep],
        flagged=part.flagged[keep],
        traits={"language": [part.traits["language"][row] for row in keep]},
    )
    plan = planned(comments)
    found = problems(plan, comments, [fewer, *comments.parts[1:]])
    then, gone = plan.population[0], part.prob.size - keep.size
    assert found[:2] == [
        f"{part.day}: the number of comments is {then.comments - gone}, but {then.comments} in the "
        "plan",
        f"{part.day}: the number of flagged comments is {then.flagged - gone + 1}, but "
        f"{then.flagged} in the plan",
    ]
    assert all(match.startswith("stratum ") for match in found[2:])


def test_a_period_that_lost_a_side_has_no_mean_score_of_it(comments):
    none = ScoreCounts(score=np.empty(0), count=np.empty(0, dtype=np.int64))
    plan = planned(comments, expected_prevalence=0.03)
    now = days_of(comments.parts, comments.threshold)
    flagged, _ = counts(comments.parts)
    found = list(plan_problems(plan, now, flagged, none))
    assert {number for number in range(len(plan.strata)) if any(
        match.startswith(f"stratum {number}: the mean score is 0, but") for match in found
    )} == {*plan.of_side("unflagged")}  # fmt: skip
