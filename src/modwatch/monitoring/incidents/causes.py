"""Incidents of rules that share a cause, and the changes to notify receivers of.

Pure functions from values and what receivers know to what to notify them of. A *cause* is what the
field `cause` of a rule names; a rule without one is a cause of its own for each of its subjects.
"""

import datetime
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

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
from modwatch.monitoring.incidents.messages.alert import Alert
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
from modwatch.monitoring.incidents.rules import SEVERITIES, AlertRule
from modwatch.monitoring.incidents.store import IncidentChange, IncidentRecord, Outcome

_ONE_DAY = datetime.timedelta(days=1)

#: By cause: the first day on which an accepted level is the reference, and its own first day.
Acceptances = Mapping[str, Sequence[tuple[datetime.date, datetime.date]]]

#: The last incident of each cause as receivers know it, by its name.
Known = Mapping[str, IncidentRecord]


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
            value
            for value in self.values
            if incident and incident.opened <= value.day <= day and self._is_shown(value)
        ]
        value = known[-1] if known else self.on(day)
        return describe_finding(self.rule, self.subject, value)

    def _is_shown(self, value: MetricValue) -> bool:
        return value.change is not None if self.rule.watches_changes else value.value is not None

    def unrepaired(self, change: Transition, today: datetime.date) -> list[datetime.date]:
        """Return the days that data validation rejected, and that have not passed by its recovery.

        There are none with other metrics, or other changes.
        """
        if self.rule.metric != "checks_rejected" or change.kind != "recovered":
            return []
        days = (value for value in self.values if change.since <= value.day <= today)
        return [value.day for value in days if exceeds(self.rule, self.rule.open, value)]

    def active_on(self, day: datetime.date) -> Incident | None:
        """Return the incident that was active at the end of `day`."""
        return next((incident for incident in self.incidents if incident.is_active_on(day)), None)


@dataclass(frozen=True, kw_only=True)
class Cause:
    """The series of the rules with one cause, in the order of the rules, and its incidents."""

    name: str
    series: Sequence[Series]
    incidents: Sequence[Incident]

    def active_on(self, day: datetime.date) -> list[Series]:
        """Return the series with an incident at the end of `day`, most severe first."""
        active = [series for series in self.series if series.active_on(day)]
        return sorted(active, key=lambda series: -SEVERITIES.index(series.rule.severity))

    def alert_on(
        self, day: datetime.date, told: IncidentRecord | None = None
    ) -> ActiveAlert | None:
        """Return what was active at the end of `day`, for the day's page.

        `told` is the last incident of the cause as receivers know it: it is dated as they were
        told, although later labels may move its first day.
        """
        incident = next(
            (incident for incident in self.incidents if incident.is_active_on(day)), None
        )
        if incident is None:
            return None
        leading = self.active_on(day)[0]
        value = leading.on(day)
        dated = value.change if value else None
        since = dated.day if dated else incident.since
        if told and told.overlaps(incident):
            since = told.since
        return ActiveAlert(
            rule=leading.rule.name,
            subject=leading.subject,
            severity=leading.rule.severity,
            since=min(since, day),
            description=describe_value(leading.rule, value) if value else "",
            headline=leading.headline_on(day),
        )


def evaluate_rules(
    rules: Sequence[AlertRule],
    values: Sequence[MetricValue],
    known: Known,
    today: datetime.date,
    *,
    window_days: int = 1,
    accepted: Acceptances | None = None,
    routed: Mapping[datetime.date, int] | None = None,
) -> tuple[list[Cause], list[IncidentChange]]:
    """Return every cause that has values, and the changes since what receivers know.

    Args:
        rules: what to watch.
        values: values of any days and metrics, without those of `LEVEL_CHANGES`, which are
            computed.
        known: the last incident of each cause.
        today: the last day to look at.
        window_days: days of the trailing window, for rules with `unless`.
        accepted: what people have accepted as the new normal, by cause.
        routed: how many days ago each day was routed; absent ones when they ended.
    """
    accepted, routed = accepted or {}, routed or {}
    following = {rule.cause or rule.name for rule in rules if rule.watches_changes}
    levels = level_changes(
        values,
        reported=_reported_changes(rules, known),
        accepted=[level for name in following for level in accepted.get(name, ())],
    )
    by_metric: dict[str, list[MetricValue]] = {}
    for value in (*values, *levels):
        by_metric.setdefault(value.metric, []).append(value)
    notified = {name: one for record in known.values() for name, one in record.member_incidents()}
    found: dict[str, list[Series]] = {}
    for rule in sorted(rules, key=lambda rule: bool(rule.unless)):  # what explains comes first
        settled = (
            value
            for value in by_metric.get(rule.metric, ())
            if _is_settled(rule, value, today, routed)
        )
        explaining = [series for name in rule.unless for series in found.get(name, ())]
        lag = window_days if rule.metric.startswith("window_") else 1
        for subject, series in watched(rule, settled).items():
            now = reconciled_incidents(
                rule,
                _unexplained(series, explaining, lag),
                notified.get(series_name(rule.name, subject)),
                [day for day, _ in accepted.get(cause_name(rule, subject), ())],
            )
            found.setdefault(rule.name, []).append(
                Series(rule=rule, subject=subject, values=series, incidents=now)
            )
    causes = _by_cause(series for group in found.values() for series in group)
    return causes, _all_changes(causes, known, today)


def _is_settled(
    rule: AlertRule, value: MetricValue, today: datetime.date, routed: Mapping[datetime.date, int]
) -> bool:
    """Return whether the labels of a day have had the time that the rule gives them."""
    ended = (today - value.day).days
    return rule.settle_days <= min(ended, routed.get(value.day, ended))


def _reported_changes(rules: Iterable[AlertRule], known: Known) -> dict[str, Incident]:
    """Return the changes of level that receivers see as active, by metric."""
    metrics = {rule.name: rule.metric for rule in rules if rule.watches_changes}
    return {
        metrics[name]: member
        for record in known.values()
        for name, member in record.member_incidents()
        if name in metrics
    }


def _all_changes(
    causes: Sequence[Cause], known: Known, today: datetime.date
) -> list[IncidentChange]:
    changes = [
        change for cause in causes for change in _changes(cause, known.get(cause.name), today)
    ]
    names = {cause.name for cause in causes}
    moved = {series.name: cause.name for cause in causes for series in cause.series}
    for name in sorted(known.keys() - names):
        if known[name].is_active:  # its rule was removed, moved, or has no data
            alert = unwatched_alert(known[name], moved.get(name))
            ended = known[name].ended_by("withdrawn", alert, today)
            changes.append(IncidentChange(alert=alert, record=ended))
    return changes


def _by_cause(series: Iterable[Series]) -> list[Cause]:
    groups: dict[str, list[Series]] = {}
    for one in series:
        groups.setdefault(cause_name(one.rule, one.subject), []).append(one)
    return [
        Cause(
            name=name,
            series=group,
            incidents=merged(incident for member in group for incident in member.incidents),
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
        (incident.since, (incident.recovered or datetime.date.max - window_days * _ONE_DAY))
        for other in explaining
        for incident in other.incidents
    ]
    return [
        value
        for value in series
        if not any(since <= value.day < end + (window_days - 1) * _ONE_DAY for since, end in spans)
    ]


def _changes(
    cause: Cause, known: IncidentRecord | None, today: datetime.date
) -> Iterator[IncidentChange]:
    """Yield a change for each transition of a cause since what receivers know."""
    notified = known.incident if known else None
    led = [series for series in cause.series if known and series.rule.name == known.rule]
    state = any(series.rule.watches_state for series in led)
    found = transitions(
        notified,
        cause.incidents,
        today=today,
        unsupported="recovered" if state else "withdrawn",
    )
    for sequence, change in enumerate(found, known.sequence + 1 if known else 1):
        day = today if change.kind == "escalated" else change.day
        active = cause.active_on(today) or cause.active_on(day)
        series = active or led or list(cause.series)
        value = series[0].on(day)
        if change.kind == "escalated" and value and value.change:
            change = replace(change, since=value.change.day)  # what is worse may have begun later
        ends = known if change.kind in ("recovered", "withdrawn") else None
        alert = incident_alert(
            cause.name,
            [(one.rule, one.subject, one.on(day)) for one in series],
            replace(change, day=day),
            sequence,
            headline=(ends and ends.headline) or series[0].headline_on(day),
            unrepaired=series[0].unrepaired(change, today),
        )
        if known and ends:
            outcome: Outcome = "recovered" if change.kind == "recovered" else "withdrawn"
            yield IncidentChange(alert=alert, record=known.ended_by(outcome, alert, day))
        else:
            same = known if change.kind == "escalated" else None
            yield _notified(same, alert, active, series[0], day, sequence)


def _notified(
    known: IncidentRecord | None,
    alert: Alert,
    active: Iterable[Series],
    leading: Series,
    day: datetime.date,
    sequence: int,
) -> IncidentChange:
    """Return an incident that opens, or `known` as it continues, after a message on a day."""
    opened, headline = known.opened if known else day, alert.facts["headline"]
    record = IncidentRecord(
        id=known.id if known else None,
        name=alert.facts["incident"],
        severity=alert.facts["severity"],
        since=datetime.date.fromisoformat(alert.facts["since"]),
        opened=opened,
        members={series.name: _member(series, day) for series in active},
        rule=leading.rule.name,
        subject=leading.subject,
        notified_on=day,
        sequence=sequence,
        headline=headline,
        first_headline=known.first_headline if known else headline,
        text=alert.text,
    )
    extended = replace(alert, facts={**alert.facts, "opened": opened.isoformat()})
    return IncidentChange(alert=extended, record=record)


def _member(series: Series, day: datetime.date) -> dict[str, str]:
    """Return the incident of one rule as the table keeps it."""
    incident = series.active_on(day) or series.incidents[-1]
    return {
        "since": incident.since.isoformat(),
        "opened": incident.opened.isoformat(),
    }
