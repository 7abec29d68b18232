"""What people read before they approve a plan or sign a result."""

import re
from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from modwatch.audits.descriptions import describe_forecast, describe_plan, describe_result
from modwatch.common.errors import AuditError
from modwatch.statistics.audit.confirmation_rules import ConfirmationRule
from modwatch.statistics.audit.plan import AuditPlan, PlannedStratum, PopulationDay
from modwatch.statistics.audit.share_interval import IntervalOptions


def plan(**changes: Any) -> AuditPlan:
    """Return a plan of two days, with strata on both sides."""
    counts = {"comments": 50_000, "flagged": 1_000}
    known = {"model_version": "3", "threshold": 0.35, "digest": "00", "texts": "11"}
    days = tuple(PopulationDay(day=date(2026, 1, n), **counts, **known) for n in (30, 31))
    strata = (
        stratum("flagged", None, None, 2_000, 200),
        stratum("unflagged", None, 0.0123456, 90_000, 400),
        stratum("unflagged", 0.0123456, None, 8_000, 600),
    )
    plain = {"audit": "2026-01", "population": days, "strata": strata}
    return AuditPlan(**{**plain, **changes})


def stratum(
    side: str, lower: float | None, upper: float | None, population: int, labels: int
) -> PlannedStratum:
    return PlannedStratum(
        side=side, lower=lower, upper=upper, population=population, labels=labels, score=0.1
    )


def test_the_words_of_a_plan():
    asked = plan()
    assert describe_plan(asked) == (
        "**2026-01-30 to 2026-01-31**: 100,000 comments, 2,000 flagged by model 3 (score above "
        "0.35).\n\n"
        "| decided | score | comments | to label |\n"
        "|---|---|---:|---:|\n"
        "| flagged | 0.35 to 1 | 2,000 | 200 |\n"
        "| unflagged | 0 to 0.01235 | 90,000 | 400 |\n"
        "| unflagged | 0.01235 to 0.35 | 8,000 | 600 |\n\n"
        "1,200 comments to label, each by one person (no label is confirmed, so that the intervals "
        "do not include errors of the annotators): about 1,200 decisions, 2.0 hours at 600 per "
        "hour. Deadline: 14 days. Confidence level: 95 %.\n\n"
        f"**Forecast**, {describe_forecast(asked)}\n\n"
        "The sample is not fixed yet. Its seed is made of this plan, of the decision log, of a "
        "random number when the plan is approved: no one can choose it.\n\n"
        "The planner cannot approve the audit; neither planner nor approver can sign the "
        "result.\n\n"
        f"Plan `{asked.digest}`"
    )
    assert re.fullmatch(
        r"by the scores alone: recall about 0\.\d+ \(interval 0\.\d+ to 0\.\d+\); precision "
        r"about .*; share of positives among the unflagged about 0\.0\d+ \(interval .*\)\.",
        describe_forecast(asked),
    )


def test_a_plan_of_two_stages_tells_the_labels_of_both():
    words = describe_plan(
        plan(
            second_stage_labels=800,
            first_stage_share=0.6,
            confirmations={"unflagged": ConfirmationRule(negative=0.125, positive=1.0)},
            deadline_days=7,
            rule=IntervalOptions(level=0.995),
        )
    )
    assert words.split("\n\n")[2] == (
        "1,200 comments to label, and 800 more in a second stage, and about 249 confirmations by "
        "further people, who see no other label (unflagged: 100 % of the labels against the rules, "
        "12.5 % of the others): about 2,416 decisions, 4.0 hours at 600 per hour. Deadline: 7 days "
        "per stage. Confidence level: 99.5 %."
    )


def test_a_forecast_says_how_often_there_are_too_few_positives():
    few = (stratum("flagged", None, None, 2_000, 20), stratum("unflagged", None, None, 98_000, 30))
    assert re.search(
        r"recall about 0\.\d+ \(interval .*\), with too few positives to estimate it in \d+ % of",
        describe_forecast(plan(strata=few)),
    )


def figure(metric: str, **changes: Any) -> dict[str, Any]:
    result = {"status": "ok", "value": 0.81239, "low": 0.7, "high": 0.9, "labels": 1_200}
    return {"metric": metric, **result, "reason": "", **changes}


def test_the_words_of_a_result():
    missing = figure(
        "recall",
        **{"status": "insufficient", "value": None, "low": None, "high": None, "labels": 3},
        reason="2 positives among 3 labels; 10 are needed",
    )
    figures = [figure("prevalence_unflagged"), missing, figure("precision"), figure("prevalence")]
    result = {"labelled": 1_190, "drawn": 1_200, "figures": figures, "four_eyes": True}
    assert describe_result(result, "s3://lake/_audits/a") == (
        "1,190 of 1,200 drawn comments are labelled.\n\n"
        "| metric | value | confidence interval | labels |\n"
        "|---|---:|---|---:|\n"
        "| precision | 0.8124 | 0.7000 to 0.9000 | 1,200 |\n"
        "| recall | insufficient | 2 positives among 3 labels; 10 are needed | 3 |\n"
        "| prevalence unflagged | 0.8124 | 0.7000 to 0.9000 | 1,200 |\n\n"
        "All files are in `s3://lake/_audits/a`."
    )


def test_decisions_of_the_source_are_not_stated_to_follow_from_a_threshold():
    days = tuple(replace(day, threshold=None) for day in plan().population)
    message = describe_plan(plan(population=days))
    assert "flagged by model 3 (as the source decided, whatever the score)." in message
    assert "| flagged | 0 to 1 | 2,000 | 200 |" in message
    assert "| unflagged | 0.01235 to 1 | 8,000 | 600 |" in message
    with pytest.raises(AuditError, match="the model or its threshold changed within the period"):
        plan(population=(days[0], plan().population[1]))
