"""The alerts about incidents, and the incidents that are active on a day."""

import datetime
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from modwatch.monitoring.incidents.incidents import MetricValue, Transition
from modwatch.monitoring.incidents.messages.alert import Alert, written
from modwatch.monitoring.incidents.messages.findings import (
    describe_finding,
    describe_value,
    name_in_words,
    what_to_look_at,
)
from modwatch.monitoring.incidents.rules import SEVERITIES, AlertRule, Severity
from modwatch.monitoring.incidents.store import IncidentRecord

_TRANSITIONS = {
    "opened": "Opened on {day}; it began on {since}.",
    "escalated": "More severe since {day}; it began on {since}.",
    "recovered": "Recovered on {day}; it began on {since}.",
    "withdrawn": "Withdrawn on {day}: with the labels or data received since, the values of "
    "{since} do not meet the condition.",
}

_PREFIXES = {
    "opened": "",
    "escalated": "Worse: ",
    "recovered": "Recovered: ",
    "withdrawn": "Withdrawn: ",
}

#: Days that a message names.
_MOST_DAYS = 10

#: A rule, its subject, and its value on the day of the message, if it has one.
Finding = tuple[AlertRule, str, MetricValue | None]


@dataclass(frozen=True, kw_only=True)
class ActiveAlert:
    """An incident that was active at the end of a day, for the day's page."""

    rule: str
    #: Feature and reference; empty when the metric has none.
    subject: str
    severity: Severity
    #: The first day of the incident, as the messages about it say.
    since: datetime.date
    #: The day's value and the threshold; empty on a day without a value.
    description: str
    #: What happened, as the alert says it; empty: the name of the rule stands for it.
    headline: str = ""
    #: Where most of a change of the scores is, as a sentence; empty: nowhere, or no such change.
    segment: str = ""

    @property
    def title(self) -> str:
        """The headline, or the name of the rule in words where there is none.

        >>> ActiveAlert(rule="scores_shifted", subject="prob,fixed", severity="warning",
        ...             since=datetime.date(2026, 1, 5), description="psi 0.31").title
        'Scores shifted (prob, against the fixed reference)'
        """
        return self.headline or name_in_words(self.rule, self.subject)


def most_severe_first(alerts: Iterable[ActiveAlert]) -> tuple[ActiveAlert, ...]:
    """Return the alerts ordered by severity, then by rule and subject."""
    return tuple(sorted(alerts, key=lambda a: (-SEVERITIES.index(a.severity), a.rule, a.subject)))


def incident_alert(
    series: str,
    found: Sequence[Finding],
    transition: Transition,
    sequence: int,
    *,
    headline: str | None = None,
    unrepaired: Sequence[datetime.date] = (),
) -> Alert:
    """Return the alert for a transition of an incident.

    Args:
        series: name of the cause.
        found: what its rules found, the leading one first.
        transition: what to notify of.
        sequence: number of the alert among those of the cause, from 1.
        headline: that of the last message; default: from the leading rule.
        unrepaired: days that were rejected and are not published yet, though a later day is.
    """
    rule, subject, value = found[0]
    kind, since = transition.kind, transition.since
    headline = headline or describe_finding(rule, subject, value)
    prefix = _PREFIXES[kind]
    if unrepaired:
        noun = "day is" if len(unrepaired) == 1 else "days are"
        prefix = f"Recovered, but {len(unrepaired)} {noun} not published: "
    facts = _incident_facts(series, found[0], transition, headline)
    facts["unrepaired"] = [day.isoformat() for day in unrepaired]
    return Alert(
        key=f"{series}/{since}/{sequence}-{kind}",
        title=f"[{facts['severity']}] {prefix}{headline}, since {written(since)}",
        text="\n".join(
            line for line in (*_lines(found, transition, headline), _unrepaired(unrepaired)) if line
        ),
        facts=facts,
    )


def _lines(found: Sequence[Finding], transition: Transition, headline: str) -> list[str]:
    """Return the lines of the text; some may be empty."""
    (rule, subject, value), *others = found
    also = dict.fromkeys(describe_finding(*finding) for finding in others)
    also.pop(headline, None)
    begins = transition.kind in ("opened", "escalated")
    return [
        f"{describe_value(rule, value)}." if value else "",
        _dates(transition),
        f"Also: {'; '.join(also)}." if also and begins else "",
        f"Look at: {what_to_look_at(rule, subject, transition.since)}" if begins else "",
    ]


def _unrepaired(days: Sequence[datetime.date]) -> str:
    """Return which days are still lost, although a later day passes; empty if none is.

    >>> _unrepaired([datetime.date(2026, 10, 24)]).split(". ")[0]
    'Rejected and not published since: 24 October 2026'
    """
    if not days:
        return ""
    named = [written(day) for day in days[:_MOST_DAYS]]
    if more := len(days) - len(named):
        named.append(f"{more} more")
    return (
        f"Rejected and not published since: {', '.join(named)}. "
        "Fix the source or the model, then repair each day."
    )


def _incident_facts(
    series: str, leading: Finding, transition: Transition, headline: str
) -> dict[str, Any]:
    rule, subject, value = leading
    return {
        "event": transition.kind,
        "severity": transition.severity or rule.severity,
        "incident": series,
        "headline": headline,
        "rule": rule.name,
        "subject": subject,
        "metric": rule.metric,
        "since": transition.since.isoformat(),
        "day": transition.day.isoformat(),
        "figure": _value_facts(value),
        "bound": rule.open.bound,
        "direction": rule.direction,
        "look_at": what_to_look_at(rule, subject, transition.since),
    }


def _dates(transition: Transition) -> str:
    """Return when the incident began, and when it was notified."""
    return _TRANSITIONS[transition.kind].format(
        day=written(transition.day), since=written(transition.since)
    )


def unwatched_alert(known: IncidentRecord, moved: str | None) -> Alert:
    """Return the alert that withdraws an incident whose rule was removed or has no data.

    `moved` is the cause that the rule belongs to now.
    """
    since = known.since
    why = (
        f"The rule belongs to the incident {moved} now."
        if moved
        else "The rule was removed or has no data."
    )
    return Alert(
        key=f"{known.name}/{since}/{known.sequence + 1}-withdrawn",
        title=f"Withdrawn: {known.headline}, since {written(since)}",
        text=f"Incident withdrawn; it began on {written(since)}. {why}",
        facts={
            "event": "withdrawn",
            "severity": known.severity,
            "incident": known.name,
            "rule": known.rule,
            "subject": known.subject,
            "since": since.isoformat(),
        },
    )


def accepted_alert(active: IncidentRecord, since: datetime.date, person: str) -> Alert:
    """Return the alert that ends an incident because a person accepted the new normal.

    The accepted level holds from the day `since`.
    """
    return Alert(
        key=f"{active.name}/{since}/{active.sequence + 1}-accepted",
        title=f"[{active.severity}] Accepted as the new normal: {active.headline}",
        text=f"{person} accepted the level since {written(since)} as the new normal. Changes are "
        "measured from it. `modwatch alerts history` has the note.",
        facts={
            "event": "accepted",
            "incident": active.name,
            "headline": active.headline,
            "severity": active.severity,
            "rule": active.rule,
            "subject": active.subject,
            "since": since.isoformat(),
            "person": person,
        },
        links=active.links,
    )


def _value_facts(value: MetricValue | None) -> dict[str, Any] | None:
    """Return a value as JSON: days as text."""
    if value is None:
        return None
    plain: dict[str, Any] = json.loads(json.dumps(asdict(value), default=str))
    return plain
