"""The plan: one canonical form, and every reason for which one is refused."""

import contextlib
import datetime
import hashlib
import itertools
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from audit_making import FIRST, make_comments, make_plan
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from modwatch.common.errors import AuditError
from modwatch.statistics.audit.confirmation_rules import ConfirmationRule
from modwatch.statistics.audit.plan import SIDES, AuditPlan, PlannedStratum, PopulationDay
from modwatch.statistics.audit.share_interval import IntervalOptions
from modwatch.statistics.recalibration import Calibration

SHARES = st.floats(0, 1)
RULES = st.builds(ConfirmationRule, negative=SHARES, positive=SHARES)
OPTIONS = st.dictionaries(
    st.text(max_size=5), st.none() | st.booleans() | st.integers() | SHARES | st.text(max_size=5)
)


def a_day(number: int = 0, **changes: Any) -> PopulationDay:
    fields: dict[str, Any] = {
        "day": FIRST + datetime.timedelta(days=number),
        "comments": 100,
        "flagged": 10,
        "model_version": "7",
        "threshold": 0.5,
        "digest": "00",
        "texts": "11",
    }
    return PopulationDay(**(fields | changes))


def a_stratum(side: str = "unflagged", **changes: Any) -> PlannedStratum:
    fields: dict[str, Any] = {
        "side": side,
        "lower": None,
        "upper": None,
        "population": 10 if side == "flagged" else 90,
        "labels": 5,
        "score": 0.25,
    }
    return PlannedStratum(**(fields | changes))


def a_plan(**changes: Any) -> AuditPlan:
    fields: dict[str, Any] = {
        "audit": "2026-01",
        "population": (a_day(),),
        "strata": (a_stratum("flagged"), a_stratum()),
    }
    return AuditPlan(**(fields | changes))


@st.composite
def sides(draw: st.DrawFn, side: str) -> list[PlannedStratum]:
    edges = sorted(draw(st.sets(SHARES, max_size=4)))
    made = []
    for lower, upper in itertools.pairwise([None, *edges, None]):
        size = draw(st.integers(1, 10**6))
        made.append(
            PlannedStratum(
                side=side,
                lower=lower,
                upper=upper,
                population=size,
                labels=draw(st.integers(1, size)),
                score=draw(SHARES),
            )
        )
    return made


@st.composite
def plans(draw: st.DrawFn) -> AuditPlan:
    flagged = draw(st.just([]) | sides("flagged"))
    unflagged = draw(sides("unflagged"))
    parts = [sum(item.population for item in side) for side in (flagged, unflagged)]
    cut = [draw(st.integers(0, size)) for size in parts]
    two_days = [a_day(0, comments=sum(cut), flagged=cut[0])]
    two_days.append(a_day(1, comments=sum(parts) - sum(cut), flagged=parts[0] - cut[0]))
    second = draw(st.just(0) | st.integers(50, 500))
    return AuditPlan(
        audit=draw(st.from_regex("[a-z0-9][a-z0-9_-]{0,99}", fullmatch=True)),
        population=tuple(two_days),
        strata=(*flagged, *unflagged),
        public_value=draw(st.text(st.characters(exclude_categories=["Cs"]), max_size=20)),
        four_eyes=draw(st.booleans()),
        rule=IntervalOptions(
            level=draw(st.floats(0.6, 0.99)), hidden_share=draw(st.floats(0, 0.9))
        ),
        second_stage_labels=second,
        first_stage_share=draw(st.floats(0.01, 0.99)) if second else 1.0,
        confirmations=draw(st.dictionaries(st.sampled_from(SIDES), RULES)),
        deadline_days=draw(st.integers(1, 100)),
        options=draw(st.none() | OPTIONS),
    )


@given(plans())
def test_every_plan_is_read_as_it_was_written(plan):
    text = plan.to_json()
    again = AuditPlan.from_json(text)
    assert (again, again.digest, again.to_json()) == (plan, plan.digest, text)
    json.loads(text, parse_constant=pytest.fail)  # no NaN


def test_days_and_sides_are_reported():
    plan = a_plan(population=(a_day(0, comments=0, flagged=0, model_version=""), a_day(3)))
    assert (plan.first, plan.last) == (FIRST, FIRST + datetime.timedelta(days=3))
    assert (plan.model_version, plan.threshold, plan.stages) == ("7", 0.5, 1)
    assert (plan.of_side("flagged"), plan.of_side("unflagged")) == ([0], [1])
    assert plan.edges("flagged").edges == ()


#: Another value of each field.
OTHERS: dict[str, Callable[[AuditPlan], Any]] = {
    "audit": lambda plan: "other",
    "population": lambda plan: (replace(plan.population[0], digest="01"),),
    "strata": lambda plan: (replace(plan.strata[0], score=0.5), plan.strata[1]),
    "four_eyes": lambda plan: False,
    "public_value": lambda plan: "a lottery",
    "rule": lambda plan: IntervalOptions(level=0.9),
    "second_stage_labels": lambda plan: 61,
    "first_stage_share": lambda plan: 0.4,
    "confirmations": lambda plan: {"flagged": ConfirmationRule(negative=1.0, positive=0.5)},
    "shared_false_positive": lambda plan: 0.5,
    "shared_false_negative": lambda plan: 0.5,
    "deadline_days": lambda plan: 15,
    "options": lambda plan: {"bins": 9},
    "calibrations": lambda plan: {"unflagged": Calibration(slope=0.5)},
}


def test_the_digest_changes_with_each_field():
    plan = a_plan(second_stage_labels=60, first_stage_share=0.5)
    digests = {replace(plan, **{name: other(plan)}).digest for name, other in OTHERS.items()}
    assert len(digests | {plan.digest}) == len(OTHERS) + 1
    assert OTHERS.keys() == plan.__dataclass_fields__.keys()


def test_the_digest_is_of_a_document_that_holds_every_field():
    plan = a_plan()
    fields = json.loads(plan.to_json())
    assert fields.pop("format") == 1
    for record, there in (
        (plan, fields),
        (plan.population[0], fields["population"][0]),
        (plan.strata[1], fields["strata"][1]),
        (plan.rule, fields["rule"]),
    ):
        assert there.keys() == record.__dataclass_fields__.keys()
    assert plan.digest == hashlib.sha256(plan.to_json().encode()).hexdigest()


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        *(({"audit": name}, "the name of the audit may only contain")
          for name in ("", "A", "ä", "a b", "../x", "-a", "_", "a" * 101, "a\n", "a\u0660")),
        ({"population": (a_day(1), a_day(0))}, "the days are not in order"),
        ({"population": (a_day(0), a_day(0))}, "the days are not in order"),
        ({"population": ()}, "the period has no comments"),
        ({"population": (a_day(comments=0, flagged=0),)}, "the period has no comments"),
        ({"population": (a_day(flagged=101),)}, "flagged comments of a day is out"),
        ({"population": (a_day(comments=-100, flagged=-10),)}, "flagged comments of a day is out"),
        ({"population": (a_day(comments=10**400),)}, "flagged comments of a day is out"),
        ({"population": (a_day(), a_day(1, model_version="8"))}, "the model or its threshold"),
        ({"population": (a_day(), a_day(1, threshold=0.6))}, "audit each part separately"),
        ({"population": (a_day(threshold=1.5),)}, "the threshold must be in"),
        ({"strata": (a_stratum(), a_stratum("flagged"))}, "the flagged ones first"),
        ({"strata": (a_stratum("flagged"), a_stratum("both"))}, "must be flagged or unflagged"),
        *(({"strata": (a_stratum("flagged"), *(
            a_stratum(population=30, lower=lower, upper=upper) for lower, upper in ranges))},
           "the unflagged strata are not contiguous ranges")
          for ranges in (
              [(None, 0.1), (0.1, 0.2), (0.2, 0.3)], [(0.0, 0.1), (0.1, 0.2), (0.2, None)],
              [(None, 0.2), (0.2, 0.1), (0.1, None)], [(None, 0.1), (0.1, 0.1), (0.1, None)],
              [(None, 0.1), (0.15, 0.2), (0.2, None)], [(None, None)] * 3)),
        ({"strata": (a_stratum("flagged"), a_stratum(score=1.1))}, "a mean score is outside"),
        ({"strata": (a_stratum("flagged"), a_stratum(score=-0.1))}, "a mean score is outside"),
        ({"strata": (a_stratum("flagged", labels=11), a_stratum())}, "more labels than comments"),
        ({"strata": (a_stratum("flagged", labels=-1), a_stratum())}, "more labels than comments"),
        ({"strata": (a_stratum("flagged", population=0, labels=0), a_stratum(population=100))},
         "a stratum is empty"),
        ({"strata": (a_stratum("flagged", population=9), a_stratum())},
         "do not add up to the comments"),
        ({"strata": (a_stratum("flagged", population=9), a_stratum(population=91))},
         "do not add up to the comments of the period"),
        ({"strata": ()}, "do not add up to the comments of the period"),
        ({"strata": (a_stratum("flagged", labels=0), a_stratum(labels=0))},
         "no comments would be drawn"),
        ({"population": (a_day(texts=""),)}, "a day has no digest of its texts"),
        ({"public_value": "\ud800"}, "not valid Unicode"),
        ({"options": {"\ud800": 1}}, "not valid Unicode"),
        ({"options": {"a": "\ud800"}}, "not valid Unicode"),
        ({"population": (a_day(model_version="\ud800"),)}, "not valid Unicode"),
        ({"first_stage_share": 0.5}, "or 1 without a second stage"),
        *(({"second_stage_labels": 50, "first_stage_share": share}, "must be in")
          for share in (0.0, 1.0, -0.1, 1.1)),
        *(({"second_stage_labels": labels, "first_stage_share": 0.5}, "at least 50 labels")
          for labels in (-1, 1, 49)),
        ({"second_stage_labels": 50, "first_stage_share": 0.5,
          "population": (a_day(flagged=100),), "strata": (a_stratum("flagged", population=100),)},
         "a second stage needs unflagged comments"),
        ({"confirmations": {"all": ConfirmationRule(negative=0.1, positive=1.0)}},
         "only labels of flagged and unflagged"),
        ({"deadline_days": 0}, "the deadline must be at least 1 day"),
    ],
)  # fmt: skip
def test_an_impossible_plan_is_refused_with_the_reason(changes, why):
    with pytest.raises(AuditError, match=f"^audit .*{why}"):
        a_plan(**changes)


def test_a_second_stage_has_labels_for_each_stratum():
    edges = [None, *(number / 40 for number in range(1, 40)), None]
    many = tuple(
        a_stratum(population=2, labels=1, lower=lower, upper=upper)
        for lower, upper in itertools.pairwise(edges)
    )
    fields = {"population": (a_day(comments=80, flagged=0),), "strata": many}
    with pytest.raises(AuditError, match="at least 80 labels"):
        a_plan(**fields, second_stage_labels=79, first_stage_share=0.5)
    assert a_plan(**fields, second_stage_labels=80, first_stage_share=0.5).stages == 2


@pytest.mark.parametrize(
    "changes",
    [{"more": 1}, {"deadline_days": "14"}, {"deadline_days": 2.0}, {"seed": "s"},
     {"deadline_days": np.int64(2)}, {"public_value": b"s"}, {"public_value": 5},
     {"confirmations": None}, {"first_stage_share": "1.0"},
     {"options": {"bins": float("nan")}}, {"options": {"bins": [8]}}, {"population": [a_day()]}],
)  # fmt: skip
def test_a_plan_of_other_types_cannot_be_made(changes):
    """They would be written otherwise, or not at all."""
    with pytest.raises((ValidationError, TypeError)):
        a_plan(**changes)


def edited(change: Callable[[dict[str, Any]], object], **how: Any) -> str:
    fields = json.loads(a_plan(options={"bins": 8}).to_json())
    change(fields)
    return json.dumps(fields, **({"sort_keys": True, "separators": (",", ":")} | how))


def test_an_edited_plan_is_refused():
    plan = a_plan(options={"bins": 8})
    assert AuditPlan.from_json(edited(lambda fields: None)) == plan
    for text in (
        edited(lambda fields: None, separators=(", ", ":")),
        edited(lambda fields: None, indent=1),
        edited(lambda fields: fields.update(audit=fields.pop("audit")), sort_keys=False),
        edited(lambda fields: fields.pop("options")),  # has a default
        edited(lambda fields: fields.update(first_stage_share=1)),  # is written 1.0
        edited(lambda fields: fields.update(format=1.0)),
        edited(lambda fields: fields["rule"].update(level=0.950)).replace("0.95", "0.950"),
        plan.to_json() + "\n",
        " " + plan.to_json(),
        plan.to_json().replace('"audit":', '"audit":"x","audit":'),
        plan.to_json().replace('"7"', '"\\u0037"'),
    ):
        with pytest.raises(AuditError, match="not in canonical form"):
            AuditPlan.from_json(text)
    assert AuditPlan.from_json(plan.to_json().replace('"11"', '"12"')).digest != plan.digest


#: What a document may hold instead of anything else.
HOSTILE = [None, True, 3, 1.5, "x", "\ud800", [], [[]], {}, {"day": {}}, 10**400, float("nan"),
           float("inf"), -1, 1e300]  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner: dict[Any, Any] = value if isinstance(value, dict) else {}
    if isinstance(value, list):
        inner = dict(enumerate(value))
    return [path, *(place for key in inner for place in places(inner[key], (*path, key)))]


def test_hostile_types_are_refused_wherever_they_stand():
    original = a_plan(options={"bins": 8}).to_json()
    for path, value in itertools.product(places(json.loads(original))[1:], HOSTILE):
        fields = json.loads(original)
        inner = fields
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = value
        text = json.dumps(fields, sort_keys=True, separators=(",", ":"))
        with contextlib.suppress(AuditError):
            # A value of the right type and range is none of an edited plan.
            assert AuditPlan.from_json(text).to_json() == text
            json.loads(text, parse_constant=pytest.fail)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "[1]", "3", "null", '"format"', "NaN", "{}", '{"format":1}', "[" * 100_000,
     '{"format":1,"audit":' + "[" * 100_000, "\ud800", '"\ud800"', "\0", '{"format":[]}',
     '{"format":{}}', '{"format":1,"audit":' + "9" * 5000 + "}"],
)  # fmt: skip
def test_garbage_is_no_plan(text):
    with pytest.raises(AuditError, match=r"not an audit plan|format of the plan is not 1"):
        AuditPlan.from_json(text)


def test_another_format_or_rule_is_refused():
    for other in (0, 2, None, "1"):
        with pytest.raises(AuditError, match="The format of the plan is not 1"):
            AuditPlan.from_json(edited(lambda fields, other=other: fields.update(format=other)))
    with pytest.raises(AuditError, match="not an audit plan: Sides of the interval must"):
        AuditPlan.from_json(edited(lambda fields: fields["rule"].update(sides="left")))


def test_strata_of_a_design_are_planned_as_they_were_made():
    comments = make_comments(3000)
    plan = make_plan(comments, 200)
    assert sum(item.labels for item in plan.strata) == 200
    assert sum(item.population for item in plan.strata) == 3000
    assert plan.edges("unflagged").edges == tuple(
        plan.strata[number].lower for number in plan.of_side("unflagged")[1:]
    )
