"""What an auditor may ask for, and the plan that follows from it."""

import datetime
from dataclasses import asdict, fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from installation import MONDAY, TUESDAY
from modwatch.audits.request import AuditRequest, requested
from modwatch.common.errors import AuditError, DesignError
from modwatch.statistics.audit.plan import AuditPlan, PopulationDay
from modwatch.statistics.audit.sample_design import DesignOptions, ScoreCounts, design
from modwatch.statistics.audit.share_interval import IntervalOptions

FORM = {"audit": "a", "first": "2026-01-05", "last": "2026-01-06"}
ASKED = AuditRequest(audit="a", first=MONDAY, last=TUESDAY, labels=100)

#: What a form may say, and what becomes of it: in the request, its options or its rule.
SAID = {
    "labels": 500,
    "second_stage_share": 0.4,
    "confirmed_share": 0.1,
    "deadline_days": 7,
    "four_eyes": False,
    "public_value": "a lottery",
    "origin": "run 1",
    "bins": 6,
    "worst_case": 1.5,
    "flagged_share": 0.3,
    "expected_prevalence": 0.01,
    "level": 0.9,
    "sides": "lower",
    "hidden_share": 0.2,
}


def plan_of(asked: AuditRequest, comments: int = 400) -> AuditPlan:
    """Return the plan of a request, on days of so many comments, a tenth of them flagged."""
    scores = (
        0.5 + 0.4 * ((n % 97) / 97) if n % 10 == 0 else 0.4 * ((n % 89) / 89) ** 2
        for n in range(comments)
    )
    known = list(scores)
    flagged = [score for score in known if score >= 0.5]
    rest = [score for score in known if score < 0.5]
    days = (asked.last - asked.first).days + 1
    made = design(
        ScoreCounts.from_scores(flagged * days),
        ScoreCounts.from_scores(rest * days),
        asked.first_stage_labels,
        asked.options,
    )
    counts = {"comments": comments, "flagged": len(flagged)}
    known = {"model_version": "3", "threshold": 0.5, "digest": "00", "texts": "11"}
    population = tuple(
        PopulationDay(day=asked.first + datetime.timedelta(days=number), **counts, **known)
        for number in range(days)
    )
    return asked.planned(population, made)


def test_what_is_not_stated_is_as_by_default():
    plain = AuditRequest(audit="a", first=MONDAY, last=TUESDAY)
    assert requested(FORM) == plain
    assert requested({**FORM, **dict.fromkeys(SAID)}) == plain
    assert (plain.options, plain.rule) == (DesignOptions(), IntervalOptions())


def test_every_field_goes_where_it_belongs():
    asked = requested({**FORM, **SAID})
    result = {
        **{field.name: getattr(asked, field.name) for field in fields(asked)},
        **asdict(asked.options),
        **asdict(asked.rule),
    }
    assert {name: result[name] for name in SAID} == SAID


def test_what_is_no_field_is_left_out():
    assert requested({**FORM, "service": "Forum", "remind_days": 3, "by": "eva"}) == requested(FORM)


def test_a_whole_number_may_be_written_as_json_may_and_days_may_be_days():
    whole, written = (
        requested({**FORM, "labels": item, "bins": item, "deadline_days": item})
        for item in (5, 5.0)
    )
    assert whole == written
    for value in (written.labels, written.options.bins, written.deadline_days):
        assert type(value) is int
    assert requested({**FORM, "first": MONDAY, "last": TUESDAY}) == requested(FORM)


@pytest.mark.parametrize("name", ["first", "last"])
def test_what_is_no_day_is_named(name):
    for day in (None, "", "tomorrow", "2026-02-30", "05.01.2026", "20260105", "2026-W02-1", 5):
        with pytest.raises(AuditError, match=f"the {name} day must be a date in the form YYYY-MM"):
            requested({**FORM, name: day})


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"second_stage_share": 1.0}, AuditError, r"in \[0, 1\), got 1.0"),
        ({"second_stage_share": -0.1}, AuditError, r"in \[0, 1\), got -0.1"),
        ({"second_stage_share": float("nan")}, AuditError, r"in \[0, 1\), got nan"),
        ({"confirmed_share": 1.1}, AuditError, r"in \[0, 1\], got 1.1"),
        ({"confirmed_share": float("nan")}, AuditError, r"in \[0, 1\], got nan"),
        ({"first": "2016-01-06"}, AuditError, "is longer than ten years; audit a part of it"),
        ({"bins": 0}, DesignError, "Number of strata must be at least 1, got 0"),
        ({"level": 0.5}, DesignError, r"Confidence level must be in .*got 0\.5"),
        ({"flagged_share": 0}, DesignError, r"flagged_share must be in \(0, 1\), got 0"),
        ({"seed": "s"}, AuditError, "the seed of a draw cannot be chosen"),
    ],
)
def test_what_is_impossible_is_named(changes, error, words):
    with pytest.raises(error, match=words):
        requested({**FORM, **changes})


def test_the_second_stage_gets_its_part_of_the_labels():
    assert ASKED.second_stage_labels == 0
    assert replace(ASKED, labels=161, second_stage_share=0.4).second_stage_labels == 64


@given(
    labels=st.integers(50, 3_000),
    bins=st.integers(1, 12),
    flagged_share=st.none() | st.floats(0.01, 0.99),
)
def test_the_plan_of_a_request_is_what_it_asks_for(labels, **given):
    options = DesignOptions(**given)
    asked = replace(ASKED, labels=labels, options=options)
    plan = plan_of(asked)
    assert sum(item.labels for item in plan.strata) == min(labels, 800)
    assert (plan.first, plan.last, plan.rule) == (asked.first, asked.last, asked.rule)
    assert plan.options == asdict(options)
    assert AuditPlan.from_json(plan.to_json()) == plan


@pytest.mark.parametrize(
    "changes",
    [
        {"first": TUESDAY},
        {"last": MONDAY},
        {"labels": 101},
        {"options": DesignOptions(bins=7)},
        {"rule": IntervalOptions(level=0.9)},
        {"second_stage_share": 0.1},
        {"confirmed_share": 0.0},
        {"deadline_days": 15},
        {"four_eyes": False},
        {"public_value": "a lottery"},
        {"allow_missing_days": True},
        {"origin": "another run"},
        {"audit": "b"},
    ],
)
def test_a_request_that_differs_in_anything_has_another_digest(changes):
    assert replace(ASKED).digest == ASKED.digest
    assert replace(ASKED, **changes).digest != ASKED.digest


def test_ten_years_are_not_too_long():
    assert requested({**FORM, "first": "2016-01-07"}).first == datetime.date(2016, 1, 7)


def test_a_second_stage_is_part_of_the_plan():
    plan = plan_of(replace(ASKED, labels=300, second_stage_share=0.4))
    assert (plan.second_stage_labels, plan.first_stage_share) == (120, 0.6)
    assert sum(item.labels for item in plan.strata) == 180
