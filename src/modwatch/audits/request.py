"""The request for an audit, from the form of the DAG or the command line."""

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from modwatch.common.errors import AuditError
from modwatch.statistics.audit.confirmation_rules import planned_rules
from modwatch.statistics.audit.plan import (
    SIDES,
    AuditPlan,
    PopulationDay,
    planned_calibrations,
    planned_confirmations,
    planned_strata,
    raise_on_invalid_name,
)
from modwatch.statistics.audit.sample_design import Design, DesignOptions
from modwatch.statistics.audit.share_interval import IntervalOptions

_NOT_RULE = ("method", "seed")

#: Longest period; a longer one is probably a mistyped year.
_MOST_DAYS = 3653


@dataclass(frozen=True, kw_only=True)
class AuditRequest:
    """An audit to be planned; AuditError for invalid values."""

    #: Name of the audit.
    audit: str
    first: datetime.date
    #: Included.
    last: datetime.date
    #: Labels of all stages together.
    labels: int = 1000
    options: DesignOptions = field(default_factory=DesignOptions)
    rule: IntervalOptions = field(default_factory=IntervalOptions)
    #: Share in [0, 1) of the labels for a second stage, allocated by the results of the first.
    second_stage_share: float = 0.0
    #: Expected second and third labels over first ones, in [0, 1]; 0: no label is confirmed, and
    #: intervals do not allow for errors of the annotators.
    confirmed_share: float = 0.2
    deadline_days: int = 14
    #: Whether planner, approver and signer must be different people.
    four_eyes: bool = True
    #: Name of a public random value of the future that the seed depends on, too; empty for none.
    public_value: str = ""
    #: Plan although days of the period have no scores; the plan and the report name them.
    allow_missing_days: bool = False
    #: Where the request comes from, such as a DAG run; only the same origin may plan it again.
    origin: str = ""

    def __post_init__(self) -> None:
        raise_on_invalid_name(self.audit)
        if self.last < self.first:
            raise AuditError(f"the period ends on {self.last}, before it begins on {self.first}")
        if (self.last - self.first).days >= _MOST_DAYS:
            raise AuditError(
                f"the period from {self.first} to {self.last} is longer than ten years; audit a "
                "part of it"
            )
        if not 0 <= self.second_stage_share < 1:
            raise AuditError(
                f"the second stage's share of the labels must be in [0, 1), got "
                f"{self.second_stage_share}"
            )
        if not 0 <= self.confirmed_share <= 1:
            raise AuditError(
                f"the share of confirmations must be in [0, 1], got {self.confirmed_share}"
            )

    @property
    def second_stage_labels(self) -> int:
        """Labels of the second stage."""
        return round(self.second_stage_share * self.labels)

    @property
    def first_stage_labels(self) -> int:
        """Labels of the first stage, or of the only one."""
        return self.labels - self.second_stage_labels

    def planned(self, population: Sequence[PopulationDay], made: Design) -> AuditPlan:
        """Return the plan, of the days of the period and the design of the first stage."""
        return AuditPlan(
            audit=self.audit,
            population=tuple(population),
            strata=planned_strata(made),
            rule=self.rule,
            second_stage_labels=self.second_stage_labels,
            first_stage_share=1 - self.second_stage_labels / self.labels,
            confirmations=planned_confirmations(made, self.confirmed_share),
            deadline_days=self.deadline_days,
            options=asdict(self.options),
            four_eyes=self.four_eyes,
            public_value=self.public_value,
            calibrations=planned_calibrations(made),
        )

    def fits(self, plan: AuditPlan) -> bool:
        """Return whether `plan` is the plan of this request."""
        drawn, whole = (
            sum(getattr(each, name) for each in plan.strata) for name in ("labels", "population")
        )
        columns = [
            {
                side: [getattr(plan.strata[n], name) for n in plan.of_side(side)]
                for side in SIDES
                if plan.of_side(side)
            }
            for name in ("labels", "score")
        ]
        rules = planned_rules(columns[0], columns[1], self.confirmed_share)
        mine = {
            "first": self.first,
            "last": self.last,
            "rule": self.rule,
            "second_stage_labels": self.second_stage_labels,
            "confirmations": rules,
            "deadline_days": self.deadline_days,
            "options": asdict(self.options),
            "four_eyes": self.four_eyes,
            "public_value": self.public_value,
        }
        enough = drawn == min(self.first_stage_labels, whole)
        return enough and all(getattr(plan, name) == value for name, value in mine.items())


def requested(form: Mapping[str, Any]) -> AuditRequest:
    """Return the request of a form: fields of AuditRequest, of its options and of its rule by name.

    The method of the interval is called `interval`, since `method` is that of the strata. Days may
    be text, YYYY-MM-DD; what is missing or None is as by default.

    >>> form = {"audit": "a", "first": "2026-01-05", "last": "2026-01-06", "labels": 500, "bins": 6}
    >>> asked = requested(form)
    >>> asked.last, asked.options.bins, asked.rule.level
    (datetime.date(2026, 1, 6), 6, 0.95)
    """
    given = {name: value for name, value in form.items() if value is not None}
    if given.get("seed"):
        raise AuditError(
            "nobody chooses the seed of a draw: it is made when the plan is approved; to bind it "
            "to a source of randomness outside, name a public value of the future"
        )
    own = _of(AuditRequest, given)
    days = {name: _day(name, own.get(name)) for name in ("first", "last")}
    options, rule = DesignOptions(**_of(DesignOptions, given)), IntervalOptions(**_of_rule(given))
    return AuditRequest(**{**own, **days, "options": options, "rule": rule})


def _of(kind: type, given: Mapping[str, Any]) -> dict[str, Any]:
    return {
        each.name: _whole(given[each.name]) if each.type is int else given[each.name]
        for each in fields(kind)
        if each.name in given
    }


def _whole(number: object) -> object:
    """Return 5 for 5.0, which a form in JSON may hold for a whole number."""
    return int(number) if isinstance(number, float) and number.is_integer() else number


def _of_rule(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of the rule; `method` and `seed` of a form are those of the design."""
    own = _of(
        IntervalOptions, {name: each for name, each in given.items() if name not in _NOT_RULE}
    )
    return own | ({"method": given["interval"]} if "interval" in given else {})


def _day(name: str, given: object) -> datetime.date:
    if isinstance(given, datetime.date):
        return given
    text = str(given)
    try:
        day = datetime.date.fromisoformat(text)
    except ValueError:
        day = None
    if day is None or day.isoformat() != text:  # Python takes other forms, too
        raise AuditError(f"the {name} day must be a date in the form YYYY-MM-DD")
    return day
