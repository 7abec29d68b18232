"""The form of an audit: what becomes of empty fields; its limits are those of the code."""

import calendar
import copy
import datetime
from collections.abc import Callable
from typing import Any

import pytest
from airflow.sdk.exceptions import ParamValidationError
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from small_audits import plan_audit

from installation import MONDAY, TUESDAY
from modwatch.audits.request import AuditRequest, filled_in, month_of, requested
from modwatch.common.errors import AuditError, DesignError, DsaReportError
from modwatch.pipeline.airflow.audit_form import FORM

#: Of the form, and handed to other steps than the plan.
ELSEWHERE = {"service", "remind_days"}
DAYS = {"first": str(MONDAY), "last": str(TUESDAY)}
ASKED = datetime.datetime(2026, 11, 1, 7, 30, 5, tzinfo=datetime.UTC)


def midnight(year: int, month: int, day: int) -> datetime.datetime:
    return datetime.datetime(year, month, day, tzinfo=datetime.UTC)


def filled(form: dict[str, Any], **changes: Any) -> dict[str, Any]:
    plain = {"covers": None, "run": "manual__x", "asked": ASKED}
    return filled_in(form, **{**plain, **changes})


@pytest.mark.parametrize(
    ("covers", "first", "last"),
    [
        (midnight(2025, 12, 1), "2025-12-01", "2025-12-31"),
        (midnight(2026, 1, 1), "2026-01-01", "2026-01-31"),
        (midnight(2026, 2, 1), "2026-02-01", "2026-02-28"),
        (midnight(2028, 2, 29), "2028-02-01", "2028-02-29"),
        (midnight(2026, 4, 30), "2026-04-01", "2026-04-30"),
    ],
)
def test_a_scheduled_run_is_of_the_month_that_it_covers(covers, first, last):
    asked = covers + datetime.timedelta(days=400)  # long after: a run that was held up
    made = filled({}, covers=covers, run="scheduled__x", asked=asked)
    assert made == {
        "first": first,
        "last": last,
        "audit": f"{first}_{last}",
        "origin": "scheduled__x",
    }


@pytest.mark.parametrize(
    ("asked", "first", "last"),
    [
        (midnight(2026, 1, 1), "2025-12-01", "2025-12-31"),
        (midnight(2026, 1, 31), "2025-12-01", "2025-12-31"),
        (midnight(2026, 3, 31), "2026-02-01", "2026-02-28"),
        (midnight(2028, 3, 1), "2028-02-01", "2028-02-29"),
        (midnight(2026, 12, 31), "2026-11-01", "2026-11-30"),
    ],
)
def test_a_run_by_hand_is_of_the_month_before_and_named_by_its_time(asked, first, last):
    made = filled({}, asked=asked)
    assert (made["first"], made["last"]) == (first, last)
    assert made["audit"] == f"{first}_{last}_{asked:%Y%m%d}t000000"
    assert filled({}, asked=asked) == made


def test_empty_fields_are_as_if_they_were_not_there():
    assert filled(dict.fromkeys(FORM)) == filled({}) == filled(dict.fromkeys(FORM, ""))


def test_what_is_filled_in_stays():
    form = {**DAYS, "audit": "mine", "labels": 500, "worst_case": 2, "service": "Forum"}
    assert filled(form, covers=midnight(2025, 1, 1)) == {**form, "origin": "manual__x"}


@pytest.mark.parametrize("only", ["first", "last"])
def test_one_day_alone_is_no_period(only):
    with pytest.raises(AuditError, match="day must be a date in the form YYYY-MM-DD"):
        requested(filled({only: "2026-01-05"}))


@given(day=st.dates(max_value=datetime.date(9999, 11, 30)))
def test_a_month_is_whole_and_holds_the_day(day):
    first, last = month_of(day)
    assert first <= day <= last
    assert (first.year, first.month, first.day) == (day.year, day.month, 1)
    assert last.day == calendar.monthrange(day.year, day.month)[1]


def defaults() -> dict[str, Any]:
    return {name: param.value for name, param in FORM.items()}


def test_every_default_of_the_form_is_the_default_of_the_request():
    assert requested(filled(defaults())) == requested(filled({}))


def test_every_field_of_the_form_reaches_the_request_or_another_step():
    base = requested(filled(DAYS))
    for name in FORM.keys() - ELSEWHERE - DAYS.keys():
        assert requested(filled({**DAYS, name: other_than_default(name)})) != base, name


def other_than_default(name: str) -> Any:
    """Return a value of a field that it does not have by itself."""
    schema, value = FORM[name].schema, FORM[name].value
    if "enum" in schema:
        return schema["enum"][-1]
    if "string" in schema["type"]:
        return "x"
    return value + 1 if schema["type"] == "integer" else (value or 0.5) - 0.01


#: What a field needs in others, so that its end can be carried out on 800 comments.
BESIDE: dict[tuple[str, str], dict[str, Any]] = {
    ("labels", "minimum"): {"bins": 1},
    ("second_stage_share", "exclusiveMaximum"): {"labels": 300_000},
}
ENDS = [
    (name, end)
    for name, param in FORM.items()
    for end in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
    if end in param.schema and name not in ELSEWHERE
]


@pytest.mark.parametrize(("name", "end"), ENDS, ids=lambda item: item)
def test_the_ends_of_the_limits_can_be_carried_out(small, name, end):
    value = FORM[name].schema[end]
    if end.startswith("exclusive"):
        value += 1e-3 if end.endswith("Minimum") else -1e-3
    field(name).resolve(value)
    form = {**defaults(), **DAYS, "labels": 300, **BESIDE.get((name, end), {}), name: value}
    made = plan_audit(small, requested(filled(form)), actor="eva")
    assert (made.first, made.last) == (MONDAY, TUESDAY)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("bins", 0),
        ("worst_case", 0.99),
        ("flagged_share", 0),
        ("flagged_share", 1),
        ("expected_prevalence", 0),
        ("expected_prevalence", 1),
        ("second_stage_share", -0.01),
        ("second_stage_share", 1),
        ("confirmed_share", -0.01),
        ("confirmed_share", 1.01),
        ("level", 0.5),
        ("level", 1),
        ("deadline_days", 0),
        ("sides", "none"),
        ("audit", "../elsewhere"),
        ("audit", "Grand"),
        ("first", "5 January 2026"),
    ],
)
def test_what_the_code_refuses_the_form_refuses_first(small, name, value):
    with pytest.raises(ParamValidationError):
        field(name).resolve(value)
    with pytest.raises((AuditError, DesignError)):
        plan_audit(small, requested(filled({**DAYS, "labels": 300, name: value})), actor="eva")


def field(name: str) -> Any:
    """Return a field that may be tried out: it keeps what it is given."""
    return copy.copy(FORM[name])


def values(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Return what a field takes, whole numbers as JSON may write them, too."""
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    made: dict[str, Callable[[], st.SearchStrategy[Any]]] = {
        "boolean": st.booleans,
        "null": st.none,
        "integer": lambda: _whole(schema["minimum"], schema["maximum"]),
        "number": lambda: _number(schema),
        "string": lambda: _text(schema),
    }
    return st.one_of(*(made[kind]() for kind in kinds))


def _whole(least: int, most: int) -> st.SearchStrategy[Any]:
    near = st.one_of(st.integers(least, most), st.integers(least, min(most, 8 * least)))
    return st.one_of(near, near.map(float))


def _number(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    least = schema.get("minimum", schema.get("exclusiveMinimum"))
    most = schema.get("maximum", schema.get("exclusiveMaximum"))
    inside = st.floats(
        least,
        most,
        exclude_min="exclusiveMinimum" in schema,
        exclude_max="exclusiveMaximum" in schema,
    )
    ends = [schema[end] for end in ("minimum", "maximum") if end in schema]
    return st.one_of(inside, st.sampled_from(ends)) if ends else inside


def _text(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if "pattern" in schema:
        return st.from_regex(schema["pattern"])
    if schema.get("format") == "date":
        near = st.sampled_from([MONDAY, TUESDAY])
        return st.one_of(near, near, near, st.dates()).map(str)
    return st.text(max_size=schema["maxLength"])


FORMS = st.fixed_dictionaries({}, optional={name: values(p.schema) for name, p in FORM.items()})


def test_a_period_without_end_is_refused_at_once():
    with pytest.raises(AuditError, match="from 0026-01-05 to 2026-01-06 is longer than ten years"):
        requested(filled({**DAYS, "first": "0026-01-05"}))


# The lake is the same for all examples; a plan leaves nothing there but its own folder.
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(form=FORMS)
@example(form={"labels": 300.0, "bins": 4.0, "deadline_days": 1.0})
@example(form={"labels": 300, "confirmed_share": 1, "worst_case": 1, "second_stage_share": 0})
@example(form={"labels": 300, "audit": "a\n"})
@example(form={"labels": 300, "four_eyes": False})
@example(form={"first": "0001-01-01", "last": "9999-12-31"})
def test_whatever_airflow_takes_makes_a_plan_or_a_named_refusal(small, form):
    for name, value in form.items():
        field(name).resolve(value)
    given_days = {} if {"first", "last"} & form.keys() else DAYS
    try:
        request = requested(filled({**defaults(), **given_days, **form}))
        assert isinstance(request, AuditRequest)
        made = plan_audit(small, request, actor="eva")
    except (AuditError, DesignError, DsaReportError):
        return
    assert (made.first, made.last, made.rule) == (request.first, request.last, request.rule)
    assert plan_audit(small, request, actor="eva") == made  # the same request again
    assert sum(item.labels for item in made.strata) <= request.labels
