"""When an incident opens and closes: pure functions from a series of values to incidents.

A series holds the values that one rule watches for one subject, one a day. `incidents` folds it
into incidents, day by day; `transitions` compares them with the incident of which receivers were
notified last, and returns what to notify them of now. Both depend on their arguments alone, so
that evaluating a day again changes nothing.

A value that cannot be evaluated (insufficient, too few comments, no interval) is skipped: it opens
nothing, closes nothing and does not interrupt a streak.
"""

import datetime
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from modwatch.alerts.rules import AlertRule, Condition

Kind = Literal["opened", "recovered", "withdrawn"]


@dataclass(frozen=True, kw_only=True)
class MetricValue:
    """The value of one metric on one day."""

    day: datetime.date
    metric: str
    feature: str | None = None
    #: fixed | trailing | None
    reference: str | None = None
    #: None when the metric is insufficient.
    value: float | None
    #: 95 % interval; None where there is none.
    low: float | None = None
    high: float | None = None
    #: Comments, labels or items that the value is computed from.
    n: int
    #: ok | insufficient
    status: str = "ok"

    @property
    def subject(self) -> str:
        """Feature and reference; empty when there are none.

        >>> day = datetime.date(2026, 1, 5)
        >>> MetricValue(
        ...     day=day, metric="psi", feature="prob", reference="fixed", value=0, n=9).subject
        'prob,fixed'
        """
        return ",".join(part for part in (self.feature, self.reference) if part)


@dataclass(frozen=True, kw_only=True)
class Incident:
    """A period in which a rule's condition was met."""

    #: The first day beyond the threshold.
    since: datetime.date
    #: The day on which enough such days had been seen.
    opened: datetime.date
    #: The day on which enough good days had been seen; None while it is active.
    recovered: datetime.date | None = None
    #: The values that opened and closed it; None if they lie before the days that were read.
    at_opening: MetricValue | None = None
    at_recovery: MetricValue | None = None

    def is_active_on(self, day: datetime.date) -> bool:
        """Return whether the incident was active at the end of `day`."""
        return self.opened <= day and (self.recovered is None or day < self.recovered)


@dataclass(frozen=True, kw_only=True)
class Transition:
    """A change of an incident of which receivers are notified."""

    kind: Kind
    #: First day of the incident, as it was notified when it opened.
    since: datetime.date
    #: The day of the change.
    day: datetime.date
    #: The value that caused it, if there is one.
    value: MetricValue | None


def watched(rule: AlertRule, values: Iterable[MetricValue]) -> dict[str, list[MetricValue]]:
    """Return the series that the rule watches by subject, each ordered by day."""
    series: dict[str, list[MetricValue]] = {}
    for value in sorted(values, key=lambda value: value.day):
        if (
            value.metric == rule.metric
            and rule.feature in (None, value.feature)
            and rule.reference in (None, value.reference)
        ):
            series.setdefault(value.subject, []).append(value)
    return series


def exceeds(rule: AlertRule, condition: Condition, value: MetricValue) -> bool | None:
    """Return whether the value lies beyond the condition's bound; None: cannot be evaluated."""
    if condition.compare == "insufficient":
        return rule.exceeds(float(value.status != "ok"), condition)
    compared: float | None = getattr(value, condition.compare)
    if value.status != "ok" or value.n < rule.minimum_n or compared is None:
        return None
    return rule.exceeds(compared, condition)


def incidents(
    rule: AlertRule, series: Iterable[MetricValue], *, active: Incident | None = None
) -> list[Incident]:
    """Return the incidents of a series, in order; only the last may be active.

    Args:
        rule: what opens and closes an incident.
        series: at most one value a day, ordered by day.
        active: an incident that is active when the series begins.

    >>> rule = AlertRule(name="r", severity="info", metric="m", direction="above", look_at="it",
    ...                  open={"bound": 5}, close={"bound": 3})
    >>> days = [datetime.date(2026, 1, day) for day in range(1, 7)]
    >>> values = [1, 6, 4, 6, 3, 4]
    >>> series = [MetricValue(day=d, metric="m", value=v, n=9) for d, v in zip(days, values)]
    >>> [(found.opened.day, found.recovered.day) for found in incidents(rule, series)]
    [(2, 5)]
    """
    ended: list[Incident] = []
    streak: list[MetricValue] = []
    for value in series:
        condition = rule.close if active else rule.open
        beyond = exceeds(rule, condition, value)
        if beyond is None:
            continue
        streak = [*streak, value] if beyond == (active is None) else []
        if len(streak) < condition.days:
            continue
        if active is None:
            active = Incident(since=streak[0].day, opened=value.day, at_opening=value)
        else:
            ended.append(replace(active, recovered=value.day, at_recovery=value))
            active = None
        streak = []
    return [*ended, active] if active else ended


def reconciled_incidents(
    rule: AlertRule, series: Sequence[MetricValue], notified: Incident | None
) -> list[Incident]:
    """Return the incidents of a series, given the one that receivers see as active.

    Labels come late and values change, so that the series may no longer show that incident. If a
    value now contradicts it, it is dropped. If none does, because the values of its first days
    have become insufficient or lie before the series, it stays active.
    """
    found = incidents(rule, series)
    if notified is None or _same(notified, found) or _is_refuted(rule, series, notified):
        return found
    return incidents(rule, [each for each in series if each.day > notified.opened], active=notified)


def transitions(
    notified: Incident | None,
    found: Sequence[Incident],
    *,
    today: datetime.date,
    current: MetricValue | None,
) -> list[Transition]:
    """Return what to notify receivers of, given the one they see as active.

    Receivers are notified of every active incident once, and once of its end: *recovered*, or
    *withdrawn* if the values no longer support it (on `today`, with the `current` value of the day
    on which it opened). An incident that is already over when it is first found is not notified,
    since nobody can act on it.
    """
    active = found[-1] if found and found[-1].recovered is None else None
    same = _same(notified, found) if notified else None
    if same is not None and same is active:
        return []
    ended: list[Transition] = []
    if notified and same and same.recovered:
        ended = [_transition("recovered", notified.since, same.recovered, same.at_recovery)]
    elif notified:
        ended = [_transition("withdrawn", notified.since, today, current)]
    if active is None:
        return ended
    return [*ended, _transition("opened", active.since, active.opened, active.at_opening)]


def _transition(
    kind: Kind, since: datetime.date, day: datetime.date, value: MetricValue | None
) -> Transition:
    return Transition(kind=kind, since=since, day=day, value=value)


def _same(notified: Incident, found: Sequence[Incident]) -> Incident | None:
    """Return the notified incident as it is now: the first that had not ended by its first day."""
    return next((i for i in found if i.recovered is None or i.recovered > notified.since), None)


def _is_refuted(rule: AlertRule, series: Sequence[MetricValue], notified: Incident) -> bool:
    """Return whether a value of the days that opened the incident no longer meets its condition."""
    first = (each for each in series if notified.since <= each.day <= notified.opened)
    return any(exceeds(rule, rule.open, each) is False for each in first)
