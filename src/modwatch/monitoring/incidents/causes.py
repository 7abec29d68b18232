"""What the rules say together: rules with one cause have one incident, and one message each way.

Pure functions from values and the last messages to the next messages. A *cause* is what the field
`cause` of a rule names; a rule without one is a cause of its own for each of its subjects.
"""

import datetime
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from modwatch.monitoring.incidents.delivery import outbox_message
from modwatch.monitoring.incidents.incidents import (
    Incident,
    MetricValue,
    Transition,
    exceeds,
    merged,
    reconciled_incidents,
    transitions,
    watched,
)
from modwatch.monitoring.incidents.level_changes import level_changes
from modwatch.monitoring.incidents.messages.findings import (
    describe_finding,
    describe_value,
    series_name,
)
from modwatch.monitoring.incidents.messages.incidents import (
    ActiveAlert,
    incident_alert,
    unwatched_alert,
)
from modwatch.monitoring.incidents.news import News, news
from modwatch.monitoring.incidents.rules import SEVERITIES, AlertRule, most_severe
from modwatch.monitoring.incidents.volume import without_seasons
from modwatch.review.outbox.messages import OutboxMessage
from modwatch.statistics.drift.seasons import Volume

_ONE_DAY = datetime.timedelta(days=1)
_ACTIVE = ("opened", "escalated")

#: Before the headline of what has happened in an open incident.
_NEWS_PREFIXES = {"worse": "Worse: ", "also": "Also: "}

#: By cause: the first day on which an accepted level is the reference, and its own first day.
Acceptances = Mapping[str, Sequence[tuple[datetime.date, datetime.date]]]

#: The last message of each cause, by its name.
LastMessages = Mapping[str, OutboxMessage]


@dataclass(frozen=True, kw_only=True)
class Series:
    """The values that one rule watches for one subject, and the incidents in them."""

    rule: AlertRule
    subject: str
    values: Sequence[MetricValue]
    incidents: Sequence[Incident]

    @property
    def name(self) -> str:
        """Rule and subject; a key of `members` in the facts of a message."""
        return series_name(self.rule.name, self.subject)

    def on(self, day: datetime.date) -> MetricValue | None:
        """Return the value of a day, if it has one."""
        return next((value for value in self.values if value.day == day), None)

    def headline_on(self, day: datetime.date) -> str:
        """Return what was found up to a day; one without a value of its own has the last one's.

        What a rule on changes of level says is that of the last day with a change.
        """
        incident = self.active_on(day)
        known = [
            each
            for each in self.values
            if incident and incident.opened <= each.day <= day and self._is_told(each)
        ]
        value = known[-1] if known else self.on(day)
        return describe_finding(self.rule, self.subject, value)

    def _is_told(self, value: MetricValue) -> bool:
        return value.change is not None if self.rule.watches_changes else value.value is not None

    def unrepaired(self, change: Transition, today: datetime.date) -> list[datetime.date]:
        """Return the days that data validation rejected, and that have not passed by its recovery.

        There are none with other metrics, or other changes.
        """
        if self.rule.metric != "checks_rejected" or change.kind != "recovered":
            return []
        days = (each for each in self.values if change.since <= each.day <= today)
        return [each.day for each in days if exceeds(self.rule, self.rule.open, each)]

    def news(self, told_on: datetime.date, today: datetime.date) -> News | None:
        """Return what has happened in its active incident since the day of the last message."""
        active = self.active_on(today)
        if active is None:
            return None
        return news(self.rule, self.values, active, told_on=told_on, today=today)

    def active_on(self, day: datetime.date) -> Incident | None:
        """Return the incident that was active at the end of `day`."""
        return next((each for each in self.incidents if each.is_active_on(day)), None)


@dataclass(frozen=True, kw_only=True)
class Cause:
    """The series of the rules with one cause, in the order of the rules, and its incidents."""

    name: str
    series: Sequence[Series]
    incidents: Sequence[Incident]

    def active_on(self, day: datetime.date) -> list[Series]:
        """Return the series with an incident at the end of `day`, most severe first."""
        active = [each for each in self.series if each.active_on(day)]
        return sorted(active, key=lambda each: -SEVERITIES.index(each.rule.severity))

    def alert_on(self, day: datetime.date) -> ActiveAlert | None:
        """Return what was active at the end of `day`, for the day's page."""
        incident = next((each for each in self.incidents if each.is_active_on(day)), None)
        if incident is None:
            return None
        leading = self.active_on(day)[0]
        value = leading.on(day)
        dated = value.change if value else None
        return ActiveAlert(
            rule=leading.rule.name,
            subject=leading.subject,
            severity=leading.rule.severity,
            since=min(dated.day if dated else incident.since, day),
            description=describe_value(leading.rule, value) if value else "",
            headline=leading.headline_on(day),
        )


def evaluate_rules(
    rules: Sequence[AlertRule],
    values: Sequence[MetricValue],
    last: LastMessages,
    today: datetime.date,
    *,
    topic: str,
    window_days: int = 1,
    accepted: Acceptances | None = None,
    volumes: Mapping[datetime.date, Volume] | None = None,
    routed: Mapping[datetime.date, int] | None = None,
) -> tuple[list[Cause], list[OutboxMessage]]:
    """Return every cause that has values, and the messages that follow the `last` ones.

    Arguments as for `watch`; `values` are without those of `LEVEL_CHANGES`, which are computed;
    `volumes` are those of days without values, such as the year before.
    """
    accepted, values = accepted or {}, without_seasons(values, volumes)
    following = {rule.cause or rule.name for rule in rules if rule.watches_changes}
    changes = level_changes(
        values,
        reported=reported_changes(rules, last),
        accepted=[each for name in following for each in accepted.get(name, ())],
    )
    causes = watch(
        rules,
        [*values, *changes],
        last,
        today,
        window_days=window_days,
        accepted=accepted,
        routed=routed,
    )
    return causes, new_messages(causes, last, today, topic=topic)


def watch(
    rules: Iterable[AlertRule],
    values: Sequence[MetricValue],
    last: LastMessages,
    today: datetime.date,
    *,
    window_days: int = 1,
    accepted: Acceptances | None = None,
    routed: Mapping[datetime.date, int] | None = None,
) -> list[Cause]:
    """Return every cause that has values, with its incidents up to `today`.

    Args:
        rules: what to watch.
        values: values of any days and metrics.
        last: the last message of each cause.
        today: the last day to look at.
        window_days: days of the trailing window, for rules with `unless`.
        accepted: what people have accepted as the new normal, by cause.
        routed: how many days ago each day was routed; absent ones when they ended.
    """

    def is_settled(rule: AlertRule, day: datetime.date) -> bool:
        ended = (today - day).days
        return rule.settle_days <= min(ended, (routed or {}).get(day, ended))

    known: dict[str, list[Series]] = {}
    by_metric: dict[str, list[MetricValue]] = {}
    for value in values:
        by_metric.setdefault(value.metric, []).append(value)
    notified = {name: member for each in last.values() for name, member in _members(each)}
    for rule in sorted(rules, key=lambda rule: bool(rule.unless)):  # what explains comes first
        of_metric = by_metric.get(rule.metric, [])
        seen = watched(rule, (each for each in of_metric if is_settled(rule, each.day)))
        for subject, series in seen.items():
            told = notified.get(series_name(rule.name, subject))
            explaining = [each for name in rule.unless for each in known.get(name, [])]
            lag = window_days if rule.metric.startswith("window_") else 1
            unexplained = _unexplained(series, explaining, lag)
            ends = [day for day, _ in (accepted or {}).get(cause_name(rule, subject), ())]
            found = reconciled_incidents(rule, unexplained, told, ends)
            known.setdefault(rule.name, []).append(
                Series(rule=rule, subject=subject, values=series, incidents=found)
            )
    return _by_cause(each for series in known.values() for each in series)


def active_incident(last: OutboxMessage | None) -> Incident | None:
    """Return the incident that receivers see as active, from the last message to them."""
    if last is None or last.payload["facts"]["event"] not in _ACTIVE:
        return None
    return _incident(last.payload["facts"], last.dt)


def reported_changes(rules: Iterable[AlertRule], last: LastMessages) -> dict[str, Incident]:
    """Return the changes of level that receivers see as active, by metric."""
    metrics = {rule.name: rule.metric for rule in rules if rule.watches_changes}
    return {
        metrics[name]: member
        for message in last.values()
        for name, member in _members(message)
        if name in metrics
    }


def new_messages(
    causes: Sequence[Cause], last: LastMessages, today: datetime.date, *, topic: str
) -> list[OutboxMessage]:
    """Return the messages of a topic that follow its `last` ones."""
    new = [
        message
        for cause in causes
        for message in _messages(cause, last.get(cause.name), today, topic)
    ]
    names = {cause.name for cause in causes}
    moved = {series.name: cause.name for cause in causes for series in cause.series}
    return new + [
        message
        for name in sorted(last.keys() - names)
        for message in _withdrawn(last[name], today, moved.get(name))
    ]


def _by_cause(series: Iterable[Series]) -> list[Cause]:
    groups: dict[str, list[Series]] = {}
    for each in series:
        groups.setdefault(cause_name(each.rule, each.subject), []).append(each)
    return [
        Cause(
            name=name,
            series=group,
            incidents=merged(incident for each in group for incident in each.incidents),
        )
        for name, group in groups.items()
    ]


def cause_name(rule: AlertRule, subject: str) -> str:
    """Return the cause of a rule; what is watched for every feature is one a feature."""
    if rule.cause is None:
        return series_name(rule.name, subject)
    return series_name(rule.cause, "" if rule.feature else subject)


def _unexplained(
    series: Sequence[MetricValue], explaining: Iterable[Series], window_days: int
) -> list[MetricValue]:
    """Return the values whose window has no day of an incident that explains them."""
    spans = [
        (each.since, (each.recovered or datetime.date.max - window_days * _ONE_DAY))
        for other in explaining
        for each in other.incidents
    ]
    return [
        value
        for value in series
        if not any(since <= value.day < end + (window_days - 1) * _ONE_DAY for since, end in spans)
    ]


def _messages(
    cause: Cause, last: OutboxMessage | None, today: datetime.date, topic: str
) -> Iterator[OutboxMessage]:
    """Yield a message for each transition of a cause after the message `last`."""
    notified = active_incident(last)
    facts = last.payload["facts"] if last else {}
    state = any(each.rule.watches_state for each in _named(cause, facts))
    unsupported: Literal["recovered", "withdrawn"] = "recovered" if state else "withdrawn"
    changes = transitions(
        notified, cause.incidents, today=today, current=None, unsupported=unsupported
    )
    if notified and last and not changes:
        yield from _news(cause, notified, last, today)
    for sequence, change in enumerate(changes, last.sequence + 1 if last else 1):
        day = today if change.kind == "escalated" else change.day
        active = cause.active_on(today) or cause.active_on(day)
        series = active or _named(cause, facts) or list(cause.series)
        value = series[0].on(day)
        if change.kind == "escalated" and value and value.change:
            change = replace(change, since=value.change.day)  # what is worse may have begun later
        ended = change.kind in ("recovered", "withdrawn")
        alert = incident_alert(
            cause.name,
            [(each.rule, each.subject, each.on(day)) for each in series],
            replace(change, day=day),
            sequence,
            headline=(ended and facts.get("headline")) or series[0].headline_on(day),
            unrepaired=series[0].unrepaired(change, today),
        )
        members = {each.name: _member(each, day) for each in active}
        opened = notified.opened if change.kind == "escalated" and notified else day
        extended = {**alert.facts, "members": members, "opened": opened.isoformat()}
        yield outbox_message(
            replace(alert, facts=extended), day, topic=topic, series=cause.name, sequence=sequence
        )


def _news(
    cause: Cause, notified: Incident, last: OutboxMessage, today: datetime.date
) -> Iterator[OutboxMessage]:
    """Yield a message if something has happened in an incident since its last message."""
    active = cause.active_on(today)
    known = ((each, each.news(last.dt, today)) for each in active)
    series, found = next(((each, found) for each, found in known if found), (None, None))
    if series is None or found is None:
        return
    others = [(each.rule, each.subject, each.on(today)) for each in active if each is not series]
    alert = incident_alert(
        cause.name,
        [(series.rule, series.subject, found.value), *others],
        Transition(
            kind="escalated",
            since=notified.since,
            day=today,
            value=found.value,
            severity=most_severe([notified.severity, *(each.rule.severity for each in active)]),
            news_since=found.since,
        ),
        last.sequence + 1,
        prefix=_NEWS_PREFIXES[found.kind],
    )
    extended = {
        **alert.facts,
        "headline": active[0].headline_on(today),
        "news_since": found.since.isoformat(),
        "members": {each.name: _member(each, today) for each in active},
        "opened": notified.opened.isoformat(),
    }
    yield outbox_message(
        replace(alert, facts=extended),
        today,
        topic=last.topic,
        series=cause.name,
        sequence=last.sequence + 1,
    )


def _named(cause: Cause, facts: Mapping[str, object]) -> list[Series]:
    """Return the series that the last message was about."""
    return [each for each in cause.series if each.rule.name == facts.get("rule")]


def _member(series: Series, today: datetime.date) -> dict[str, str]:
    incident = series.active_on(today) or series.incidents[-1]
    return {"since": incident.since.isoformat(), "opened": incident.opened.isoformat()}


def _members(last: OutboxMessage) -> Iterator[tuple[str, Incident]]:
    """Yield the incidents of rules that receivers see as active, by the name of the series."""
    facts = last.payload["facts"]
    if facts["event"] not in _ACTIVE:
        return
    if "members" not in facts:  # written before rules had causes
        yield last.series, _incident(facts, last.dt)
    for name, member in facts.get("members", {}).items():
        yield name, _incident({**facts, **member}, last.dt)


def _incident(facts: Mapping[str, str], day: datetime.date) -> Incident:
    opened = facts.get("opened")
    return Incident(
        since=datetime.date.fromisoformat(facts["since"]),
        opened=datetime.date.fromisoformat(opened) if opened else day,
        severity=facts.get("severity", "critical"),  # type: ignore[arg-type]
    )


def _withdrawn(
    last: OutboxMessage, today: datetime.date, moved: str | None
) -> Iterator[OutboxMessage]:
    """Yield a message if an incident is active whose rule was removed, moved, or has no data."""
    if active := active_incident(last):
        facts, sequence = last.payload["facts"], last.sequence + 1
        alert = unwatched_alert(facts, active.since, sequence, series=last.series, moved=moved)
        yield outbox_message(alert, today, topic=last.topic, series=last.series, sequence=sequence)
