"""When an incident opens and closes: pure functions from a series of values to incidents.

A series holds the values that one rule watches for one subject, one a day. `incidents` folds it
into incidents, day by day; `merged` joins those of several rules with one cause; `transitions`
compares them with the incident that receivers were notified of last, and returns what to notify
them of now. All depend on their arguments alone, so that evaluating a day again changes nothing.

A value that cannot be evaluated (insufficient, too few comments, no interval) is skipped: it opens
nothing, closes nothing and does not interrupt a streak.
"""

import datetime
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from modwatch.monitoring.incidents.rules import AlertRule, Condition, Severity, most_severe
from modwatch.statistics.drift.daily_levels import Level

Kind = Literal["opened", "escalated", "recovered", "withdrawn"]


@dataclass(frozen=True, kw_only=True)
class LevelChange:
    """When the level of a metric changed, from which level to which."""

    #: First day at the new level, and the ends of its 95 % interval.
    day: datetime.date
    day_low: datetime.date
    day_high: datetime.date
    before: Level
    after: Level
    #: Mean days, at least, to such evidence without a change.
    evidence: float


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
    #: Labels of equal weight with the same information; None where that is not known.
    effective_n: float | None = None
    #: ok | insufficient
    status: str = "ok"
    #: The reason in `drift`: of a mix, which category grew most; may be empty.
    remark: str = ""
    #: Of a metric that follows the level of another: the change whose size is `value`.
    change: LevelChange | None = None

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
    """A period in which the condition of a rule was met, or those of rules with one cause."""

    #: The first day beyond the threshold; the day of the change where one was dated.
    since: datetime.date
    #: The day on which enough such days had been seen.
    opened: datetime.date
    #: The day on which enough good days had been seen; None while it is active.
    recovered: datetime.date | None = None
    #: The value that opened it; None if it lies before the days that were read.
    at_opening: MetricValue | None = None
    #: The highest that it reached.
    severity: Severity = "critical"

    def is_active_on(self, day: datetime.date) -> bool:
        """Return whether the incident was active at the end of `day`."""
        return self.opened <= day and (self.recovered is None or day < self.recovered)


@dataclass(frozen=True, kw_only=True)
class Transition:
    """A change of an incident that receivers are notified of."""

    kind: Kind
    #: First day of the incident, as it was notified when it opened.
    since: datetime.date
    #: The day of the change.
    day: datetime.date
    #: The highest severity of the incident; None: that of the rule.
    severity: Severity | None = None


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
    rule: AlertRule,
    series: Iterable[MetricValue],
    *,
    active: Incident | None = None,
    accepted: Sequence[datetime.date] = (),
) -> list[Incident]:
    """Return the incidents of a series, in order; only the last may be active.

    Args:
        rule: what opens and closes an incident.
        series: at most one value a day, ordered by day.
        active: an incident that is active when the series begins.
        accepted: days on which a person's acceptance of the new normal takes effect: it ends the
            incident that is active. A rule on a level opens the next one only after a good value;
            a rule on changes of level compares with the accepted level from then on.

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
    waits = False
    for value in series:
        if active and (day := _accepted_on(active, accepted, value.day)):
            ended.append(replace(active, recovered=day))
            active, streak, waits = None, [], not rule.watches_changes
        waits = waits and exceeds(rule, rule.close, value) is not False
        condition = rule.close if active else rule.open
        beyond = exceeds(rule, condition, value)
        if beyond is None or waits:
            continue
        streak = [*streak, value] if beyond == (active is None) else []
        if len(streak) < condition.days:
            continue
        if active is None:
            active = _opened(rule, streak)
        else:
            ended.append(replace(active, recovered=value.day))
            active = None
        streak = []
    if active and (day := _accepted_on(active, accepted, datetime.date.max)):
        return [*ended, replace(active, recovered=day)]
    return [*ended, active] if active else ended


def _accepted_on(
    active: Incident, accepted: Sequence[datetime.date], until: datetime.date
) -> datetime.date | None:
    """Return the first day up to `until` on which a person's acceptance ends the incident."""
    return min((day for day in accepted if active.opened < day <= until), default=None)


def _opened(rule: AlertRule, streak: Sequence[MetricValue]) -> Incident:
    value = streak[-1]
    return Incident(
        since=value.change.day if value.change else streak[0].day,
        opened=value.day,
        at_opening=value,
        severity=rule.severity,
    )


def merged(of_rules: Iterable[Incident]) -> list[Incident]:
    """Return the incidents of rules with one cause as those of the cause, in order.

    Incidents that overlap, or that open on the day on which another ends, are one.

    >>> days = [datetime.date(2026, 1, day) for day in range(1, 9)]
    >>> one = Incident(since=days[0], opened=days[1], recovered=days[4], severity="warning")
    >>> two = Incident(since=days[2], opened=days[3], recovered=days[6], severity="critical")
    >>> [(one.since.day, one.recovered.day, one.severity) for one in merged([two, one])]
    [(1, 7, 'critical')]
    """
    found: list[Incident] = []
    for incident in sorted(of_rules, key=lambda incident: (incident.opened, incident.since)):
        last = found[-1] if found else None
        if last and (last.recovered is None or incident.opened <= last.recovered):
            found[-1] = _joined(last, incident)
        else:
            found.append(incident)
    return found


def _joined(first: Incident, second: Incident) -> Incident:
    """Return two incidents as one; an estimated day of the change is preferred to a crossing."""
    both = (first, second)
    dated = [one for one in both if one.at_opening and one.at_opening.change] or both
    ends = [one.recovered for one in both if one.recovered]
    return replace(
        first,
        since=min(incident.since for incident in dated),
        at_opening=dated[0].at_opening,
        recovered=max(ends) if len(ends) == 2 else None,
        severity=most_severe([first.severity, second.severity]),
    )


def reconciled_incidents(
    rule: AlertRule,
    series: Sequence[MetricValue],
    notified: Incident | None,
    accepted: Sequence[datetime.date] = (),
) -> list[Incident]:
    """Return the incidents of a series, given the one that receivers see as active.

    Labels come late and values change, so that the series may no longer show that incident. If a
    value now contradicts it, which takes the condition that closes an incident, it is dropped. If
    none does, because the values of its first days lie between the bounds, have become insufficient
    or lie before the series, it stays active. A comparison with other days needs no labels: it
    changes when a day was repaired, and is dropped as soon as it would not open the incident.
    """
    found = incidents(rule, series, accepted=accepted)
    if notified is None or _same(notified, found) or _is_refuted(rule, series, notified):
        return found
    later = [value for value in series if value.day > notified.opened]
    return incidents(rule, later, active=notified, accepted=accepted)


def transitions(
    notified: Incident | None,
    found: Sequence[Incident],
    *,
    today: datetime.date,
    unsupported: Literal["recovered", "withdrawn"] = "withdrawn",
) -> list[Transition]:
    """Return what to notify receivers of, given the one they see as active.

    Receivers are notified of every active incident once, again when its severity rises, and once of
    its end: *recovered*, or `unsupported` (on `today`) if the values no longer support it. That is
    *withdrawn* for estimates, which labels correct, and *recovered* for work that was still to do
    and has been done since. An incident that is already over when it is first found is not
    notified, since no one can act on it.
    """
    active = found[-1] if found and found[-1].recovered is None else None
    same = _same(notified, found) if notified else None
    if notified and same is not None and same is active:
        if most_severe([notified.severity, same.severity]) == notified.severity:
            return []
        return [_transition("escalated", same, notified.since, today)]
    ended: list[Transition] = []
    if notified and same and same.recovered:
        ended = [_transition("recovered", notified, notified.since, same.recovered)]
    elif notified:
        ended = [_transition(unsupported, notified, notified.since, today)]
    if active is None:
        return ended
    return [*ended, _transition("opened", active, active.since, active.opened)]


def _transition(
    kind: Kind, incident: Incident, since: datetime.date, day: datetime.date
) -> Transition:
    return Transition(kind=kind, since=since, day=day, severity=incident.severity)


def _same(notified: Incident, found: Sequence[Incident]) -> Incident | None:
    """Return the notified incident as it is now: the first that had not ended when it opened."""
    return next((i for i in found if i.recovered is None or i.recovered > notified.opened), None)


def _is_refuted(rule: AlertRule, series: Sequence[MetricValue], notified: Incident) -> bool:
    """Return whether a value of the days that opened the incident meets the closing condition.

    The days from a change to the day on which it was detected show no change: they say nothing.
    """
    first = [value for value in series if notified.since <= value.day <= notified.opened]
    if rule.watches_changes:
        first = [value for value in first if value.day == notified.opened]
    return any(
        exceeds(rule, rule.open if value.reference else rule.close, value) is False
        for value in first
    )
