"""What is new in an incident that receivers know of, and is worth a message of its own.

Rules with one cause have one incident, and one fault makes several of them speak. Something else
has happened when, more than `SETTLING` after the last message,

- a level falls (again) by as much as opens an incident: the interval of the day of the fall begins
  later than that;
- another rule of the cause opens an incident at once: its last value before met the condition that
  closes one. A fault that grows from day to day passes between the bounds, and is no news;
- a value moves at once by as much as opens an incident, beyond its interval and the last one.
"""

import datetime
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from modwatch.monitoring.incidents.incidents import (
    Incident,
    LevelChange,
    MetricValue,
    exceeds,
)
from modwatch.monitoring.incidents.rules import AlertRule

#: After a message: the evenings on which the labels of its days arrive, and the other rules of the
#: same fault speak.
SETTLING = datetime.timedelta(days=2)


@dataclass(frozen=True, kw_only=True)
class News:
    """Something that has happened in an open incident."""

    #: worse: of a rule that has an incident; also: another rule has one.
    kind: Literal["worse", "also"]
    #: The day on which it began.
    since: datetime.date
    #: The value to show.
    value: MetricValue | None


def news(
    rule: AlertRule,
    values: Sequence[MetricValue],
    incident: Incident,
    *,
    notified_on: datetime.date,
    today: datetime.date,
) -> News | None:
    """Return what has happened since the last message, as one rule sees it; None: nothing.

    Args:
        rule: of any severity; what is `info` is no news.
        values: of the rule and one subject, ordered by day.
        incident: that of the rule which is active.
        notified_on: the day of the last message on the cause.
        today: the last day.

    >>> rule = AlertRule(name="r", severity="warning", metric="m", direction="above", look_at="it",
    ...                  open={"bound": 5}, close={"bound": 3})
    >>> days = [datetime.date(2026, 1, day) for day in range(1, 7)]
    >>> values = [MetricValue(day=d, metric="m", value=v, n=9)
    ...           for d, v in zip(days, [1, 1, 1, 1, 6, 6])]
    >>> opened = Incident(since=days[4], opened=days[4])
    >>> news(rule, values, opened, notified_on=days[0], today=days[5]).kind
    'also'
    >>> news(rule, values, opened, notified_on=days[3], today=days[5])
    """
    if rule.severity == "info":
        return None
    known = [each for each in values if each.day <= today]
    if rule.watches_changes:
        return _fall(rule, known, notified_on + SETTLING, today)
    return _opening(rule, known, incident, notified_on + SETTLING) or _jump(
        rule, known, incident, notified_on + SETTLING
    )


def _fall(
    rule: AlertRule, values: Sequence[MetricValue], after: datetime.date, today: datetime.date
) -> News | None:
    value = values[-1] if values and values[-1].day == today else None
    if value is None or value.change is None or value.change.latest.day_low <= after:
        return None
    if value.change.further:
        value = _step(value, value.change.further)
    if exceeds(rule, rule.open, value) is not True or value.change is None:
        return None
    return News(kind="worse", since=value.change.day, value=value)


def _step(value: MetricValue, further: LevelChange) -> MetricValue:
    """Return the size of the further fall alone."""
    before, after = further.before, further.after
    size = after.value - before.value
    margin = math.hypot(before.high - before.low, after.high - after.low) / 2
    return replace(
        value,
        value=size,
        low=max(size - margin, -1.0),
        high=min(size + margin, 1.0),
        change=further,
    )


def _opening(
    rule: AlertRule, values: Sequence[MetricValue], incident: Incident, after: datetime.date
) -> News | None:
    if rule.open.bound == rule.close.bound:
        return None  # there is nothing between the bounds
    before = [
        beyond
        for each in values
        if each.day < incident.since and (beyond := exceeds(rule, rule.close, each)) is not None
    ]
    if incident.opened <= after or not before or before[-1]:
        return None
    return News(kind="also", since=incident.since, value=incident.at_opening)


def _jump(
    rule: AlertRule, values: Sequence[MetricValue], incident: Incident, after: datetime.date
) -> News | None:
    sign = {"above": 1.0, "below": -1.0}[rule.direction]
    known = [
        (each.day, each, sorted((sign * each.low, sign * each.high)))
        for each in values
        if each.low is not None
        and each.high is not None
        and exceeds(rule, rule.open, each) is not None
    ]
    for (day, _, (_, far)), (later, value, (near, _)) in pairwise(known):
        lasts = known[-1][2][0] > far
        if day >= incident.opened and later > after and lasts and near - far > abs(rule.open.bound):
            return News(kind="worse", since=later, value=value)
    return None
