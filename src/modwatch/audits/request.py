"""The request for an audit, from the form of the DAG or of the command line."""

import datetime
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from modwatch.audits.dsa.cells import refuse_unusable
from modwatch.common.errors import AuditError
from modwatch.statistics.audit.confirmation_rules import planned_rules
from modwatch.statistics.audit.plan import (
    AuditPlan,
    PopulationDay,
    planned_calibrations,
    planned_strata,
    raise_on_invalid_name,
)
from modwatch.statistics.audit.sample_design import Design, DesignOptions
from modwatch.statistics.audit.share_interval import IntervalOptions
from modwatch.statistics.label_truth import SHARED

#: Longest period; a longer one is probably a mistyped year.
_MOST_DAYS = 3653

_ONE_DAY = datetime.timedelta(days=1)


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
    #: Largest probability, in [0, 1), that a second person makes an error of a first one, which the
    #: intervals of an audit with confirmations allow for.
    shared_false_positive: float = SHARED[0]
    shared_false_negative: float = SHARED[1]
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
        for share in (self.shared_false_positive, self.shared_false_negative):
            if not 0 <= share < 1:
                raise AuditError(f"a share of shared errors must be in [0, 1), got {share}")

    @property
    def days(self) -> list[datetime.date]:
        """The days of the period."""
        return [self.first + n * _ONE_DAY for n in range((self.last - self.first).days + 1)]

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
        strata = planned_strata(made)
        return AuditPlan(
            audit=self.audit,
            population=tuple(population),
            strata=strata,
            rule=self.rule,
            second_stage_labels=self.second_stage_labels,
            first_stage_share=1 - self.second_stage_labels / self.labels,
            confirmations=planned_rules(
                [(stratum.side, stratum.labels, stratum.score) for stratum in strata],
                self.confirmed_share,
            ),
            shared_false_positive=self.shared_false_positive,
            shared_false_negative=self.shared_false_negative,
            deadline_days=self.deadline_days,
            options=asdict(self.options),
            four_eyes=self.four_eyes,
            public_value=self.public_value,
            calibrations=planned_calibrations(made),
        )

    @property
    def digest(self) -> str:
        """SHA-256 of the request, in hexadecimal: the same request has the same plan."""
        return hashlib.sha256(json.dumps(asdict(self), default=str).encode()).hexdigest()


def requested(form: Mapping[str, Any]) -> AuditRequest:
    """Return the request of a form: fields of AuditRequest, of its options and of its rule by name.

    Days may be text, YYYY-MM-DD; what is missing or None is as by default.

    >>> form = {"audit": "a", "first": "2026-01-05", "last": "2026-01-06", "labels": 500, "bins": 6}
    >>> asked = requested(form)
    >>> asked.last, asked.options.bins, asked.rule.level
    (datetime.date(2026, 1, 6), 6, 0.95)
    """
    given = {name: value for name, value in form.items() if value is not None}
    if given.get("service"):
        refuse_unusable("service", given["service"])  # now, not weeks later
    if given.get("seed"):
        raise AuditError(
            "the seed of a draw cannot be chosen: it is made when the plan is approved; to bind it "
            "to an external source of randomness, name a public value of the future"
        )
    own = _of(AuditRequest, given)
    days = {name: _day(name, own.get(name)) for name in ("first", "last")}
    options = DesignOptions(**_of(DesignOptions, given))
    rule = IntervalOptions(**_of(IntervalOptions, given))
    return AuditRequest(**{**own, **days, "options": options, "rule": rule})


def _of(kind: type, given: Mapping[str, Any]) -> dict[str, Any]:
    return {
        known.name: _whole(given[known.name]) if known.type is int else given[known.name]
        for known in fields(kind)
        if known.name in given
    }


def _whole(number: object) -> object:
    """Return 5 for 5.0, which a form in JSON may hold for a whole number."""
    return int(number) if isinstance(number, float) and number.is_integer() else number


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


def filled_in(
    form: Mapping[str, Any], *, covers: datetime.datetime | None, run: str, asked: datetime.datetime
) -> dict[str, Any]:
    """Return the form with the default period and name where they are empty.

    `covers` is a moment of the month that a scheduled run covers; a run by hand covers the month
    before `asked`. The name is the same whenever the run asks again.

    >>> asked = datetime.datetime(2026, 11, 1, 7, tzinfo=datetime.UTC)
    >>> october = datetime.datetime(2026, 10, 1, 7, tzinfo=datetime.UTC)
    >>> filled_in({"labels": 500}, covers=october, run="scheduled__x", asked=asked)
    {'labels': 500, 'first': '2026-10-01', 'last': '2026-10-31', 'audit': '2026-10-01_2026-10-31', \
'origin': 'scheduled__x'}
    >>> filled_in({"first": "2026-10-05", "last": "2026-10-06"}, covers=None, run="manual__x",
    ...           asked=asked)["audit"]
    '2026-10-05_2026-10-06_20261101t070000'
    """
    given = {name: value for name, value in form.items() if value not in (None, "")}
    scheduled = covers is not None and run.startswith("scheduled")
    # A run by hand: Airflow would have it cover the last interval that its schedule has ended.
    day = covers.date() if covers and scheduled else asked.date().replace(day=1) - _ONE_DAY
    if "first" not in given and "last" not in given:
        first, last = month_of(day)
        given |= {"first": first.isoformat(), "last": last.isoformat()}
    name = f"{given.get('first')}_{given.get('last')}"
    by_hand = f"_{asked:%Y%m%dt%H%M%S}"
    return {**given, "audit": given.get("audit", name + by_hand * (not scheduled)), "origin": run}


def month_of(day: datetime.date) -> tuple[datetime.date, datetime.date]:
    """Return the first and the last day of the month in which `day` lies.

    >>> month_of(datetime.date(2026, 2, 14))
    (datetime.date(2026, 2, 1), datetime.date(2026, 2, 28))
    """
    first = day.replace(day=1)
    return first, (first + 31 * _ONE_DAY).replace(day=1) - _ONE_DAY
