"""The text of alerts: metric values, names and links, never the text of a comment."""

import datetime
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from modwatch.alerts.incidents import MetricValue, Transition
from modwatch.alerts.rules import SEVERITIES, AlertRule, Severity

_TRANSITIONS = {
    "opened": "Incident opened on {day}; first day beyond the threshold: {since}.",
    "recovered": "Incident recovered on {day}; active since {since}.",
    "withdrawn": "Incident withdrawn on {day}: with the labels received since, the values of "
    "{since} no longer meet the condition.",
}


@dataclass(frozen=True, kw_only=True)
class Alert:
    """A notification, the same on every channel."""

    #: Idempotency key: the same whenever the alert is sent again.
    key: str
    #: One line.
    title: str
    #: Plain text of a few lines.
    text: str
    #: The content as data: names, days, numbers.
    facts: Mapping[str, Any]
    #: Pages to open, by name.
    links: Mapping[str, str] = field(default_factory=dict)

    @property
    def payload(self) -> dict[str, Any]:
        """The alert as one JSON object."""
        own = {"key": self.key, "title": self.title, "text": self.text, "links": dict(self.links)}
        return {**self.facts, **own}


@dataclass(frozen=True, kw_only=True)
class ActiveAlert:
    """An incident that was active at the end of a day, for the day's page."""

    rule: str
    #: Feature and reference; empty when the metric has none.
    subject: str
    severity: Severity
    #: The first day beyond the threshold.
    since: datetime.date
    #: The day's value and the threshold; empty on a day without a value.
    description: str

    @property
    def line(self) -> str:
        """The alert in one line of Markdown.

        >>> ActiveAlert(rule="scores_shifted", subject="prob,fixed", severity="warning",
        ...             since=datetime.date(2026, 1, 5), description="psi 0.31").line
        '**warning**: `scores_shifted` (prob,fixed) since 2026-01-05: psi 0.31'
        """
        value = f": {self.description}" if self.description else ""
        return f"**{self.severity}**: `{self.rule}`{_of(self.subject)} since {self.since}{value}"


def most_severe_first(alerts: Iterable[ActiveAlert]) -> tuple[ActiveAlert, ...]:
    """Return the alerts ordered by severity, then by rule and subject."""
    return tuple(sorted(alerts, key=lambda a: (-SEVERITIES.index(a.severity), a.rule, a.subject)))


def incident_alert(rule: AlertRule, subject: str, transition: Transition, sequence: int) -> Alert:
    """Return the alert for a transition; `sequence` numbers those of the rule and subject."""
    value, kind, since = transition.value, transition.kind, transition.since
    facts = {
        "event": kind,
        "severity": rule.severity,
        "rule": rule.name,
        "subject": subject,
        "metric": rule.metric,
        "since": since.isoformat(),
        "day": transition.day.isoformat(),
        "figure": _value_facts(value),
        "bound": rule.open.bound,
        "direction": rule.direction,
        "look_at": rule.look_at,
    }
    lines = [
        f"{describe_value(rule, value)}." if value else "",
        _TRANSITIONS[kind].format(day=transition.day, since=since),
        f"Look at: {rule.look_at}" if kind == "opened" else "",
    ]
    number = f": {value.metric} {value.value:.4g}" if value and value.value is not None else ""
    return Alert(
        key=_incident_key(rule.name, subject, since, sequence, kind),
        title=f"[{rule.severity}] {rule.name}{_of(subject)} {kind}{number}, since {since}",
        text="\n".join(line for line in lines if line),
        facts=facts,
    )


def unwatched_alert(rule: str, subject: str, since: datetime.date, sequence: int) -> Alert:
    """Return the alert that withdraws an incident whose rule was removed or has no data."""
    facts = {"event": "withdrawn", "rule": rule, "subject": subject, "since": since.isoformat()}
    return Alert(
        key=_incident_key(rule, subject, since, sequence, "withdrawn"),
        title=f"{rule}{_of(subject)} withdrawn, since {since}",
        text=f"Incident withdrawn; active since {since}. The rule was removed or has no data.",
        facts=facts,
    )


def failure_alert(
    *, dag: str, task: str, run: str, day: datetime.date | None, error: str, log_url: str
) -> Alert:
    """Return the alert for a task that failed after all retries; `error` is the name of a class.

    Mapped instances of a task share the key: one alert per run and task.
    """
    day_text = f" for {day}" if day else ""
    facts = {"event": "failed", "severity": "critical", "dag": dag, "task": task, "run": run}
    return Alert(
        key=header_safe(f"task/{dag}/{task}/{run}"),
        title=f"[critical] {dag}.{task} failed{day_text}",
        text=f"Task {task} of DAG {dag} failed{day_text} with {error}. See the task log for the "
        "cause, and the Triage section of the DAG's documentation for what to do.",
        facts={**facts, "day": day and day.isoformat(), "error": error},
        links={"log": log_url},
    )


def approval_alert(audit: str, action: str, page: str) -> Alert:
    """Return the alert for an audit that waits for an action: `approved` or `signed_off`.

    `page` is the Airflow page on which to answer.

    >>> approval_alert("2026-01", "signed_off", "http://airflow").title
    '[info] Audit 2026-01 is waiting for sign-off'
    """
    need = {"approved": "approval", "signed_off": "sign-off"}[action]
    return Alert(
        key=header_safe(f"audit/{audit}/{action}"),
        title=f"[info] Audit {audit} is waiting for {need}",
        text=f"The audit is paused until somebody gives {need} or cancels it.",
        facts={"event": "question", "severity": "info", "audit": audit, "action": action},
        links={"answer": page},
    )


def promotion_alert(model: str, version: str, page: str) -> Alert:
    """Return the alert for a version of a model that waits for the decision to promote it.

    `page` is the Airflow page on which to answer.

    >>> promotion_alert("toxicity", "7", "http://airflow").title
    '[info] Version 7 of model toxicity is waiting for approval'
    """
    return Alert(
        key=header_safe(f"model/{model}/{version}"),
        title=f"[info] Version {version} of model {model} is waiting for approval",
        text="It passed its evaluation. The champion scores until somebody decides.",
        facts={"event": "question", "severity": "info", "model": model, "version": version},
        links={"answer": page},
    )


def severe_escalation_alert(
    item_id: int, due: datetime.datetime, overdue: bool, page: str
) -> Alert:
    """Return the alert for a severe escalation that waits for a lead, or is overdue.

    `page` is where leads resolve escalations.

    >>> due = datetime.datetime(2026, 1, 5, 9, 30, tzinfo=datetime.UTC)
    >>> severe_escalation_alert(7, due, False, "http://console/lead").title
    '[critical] A severe escalation waits for a lead until 09:30 UTC: item 7'
    """
    state = "overdue" if overdue else "waiting"
    until = f"{due.astimezone(datetime.UTC):%H:%M} UTC"
    title = (
        f"A severe escalation is overdue since {until}: item {item_id}"
        if overdue
        else f"A severe escalation waits for a lead until {until}: item {item_id}"
    )
    return Alert(
        key=f"escalation/{item_id}/{due.isoformat()}/{state}",
        title=f"[critical] {title}",
        text="A moderator escalated a comment because somebody may be in danger, or for another "
        "reason that your queue rules call severe. It is the first that a lead is served.",
        facts={
            "event": "escalation",
            "severity": "critical",
            "item": item_id,
            "state": state,
            "due": due.isoformat(),
        },
        links={"resolve": page},
    )


def reminder_alert(
    *,
    audit: str,
    key: str,
    decided: int,
    items: int,
    escalated: int,
    deadline: datetime.datetime,
    links: Mapping[str, str],
) -> Alert:
    """Return the reminder that labels of an audit are missing."""
    facts = {"event": "reminder", "severity": "info", "audit": audit, "decided": decided}
    until = f"{deadline:%Y-%m-%d %H:%M} UTC"
    lead = f" {escalated:,} are escalated to a lead." if escalated else ""
    return Alert(
        key=header_safe(key),
        title=f"[info] Audit {audit}: {items - decided:,} labels missing, deadline {until}",
        text=f"{decided:,} of {items:,} comments of audit {audit} are labelled.{lead} Comments "
        f"without a label at {until} are excluded, which widens the confidence intervals.",
        facts={**facts, "items": items, "escalated": escalated, "deadline": deadline.isoformat()},
        links=links,
    )


def describe_value(rule: AlertRule, value: MetricValue) -> str:
    """Return a metric value with its interval and the rule's threshold, in one line.

    >>> rule = AlertRule(name="r", severity="info", metric="psi", direction="above", look_at="it",
    ...                  open={"bound": 0.2, "compare": "low"}, close={"bound": 0.1})
    >>> day = datetime.date(2026, 1, 5)
    >>> describe_value(
    ...     rule, MetricValue(day=day, metric="psi", value=0.31, low=0.28, high=0.35, n=2000))
    'psi is 0.31 (95% CI 0.28 to 0.35, n = 2,000); threshold: lower bound > 0.2'
    """
    name = value.metric + _of(value.subject)
    if value.value is None:
        return f"{name} could not be estimated (n = {value.n:,})"
    interval = ""
    if value.low is not None and value.high is not None:
        interval = f"95% CI {value.low:.4g} to {value.high:.4g}, "
    text = f"{name} is {value.value:.4g} ({interval}n = {value.n:,})"
    if rule.open.compare == "insufficient":
        return text
    compared = {"low": "lower bound ", "high": "upper bound ", "value": ""}[rule.open.compare]
    sign = {"above": ">", "below": "<"}[rule.direction]
    return f"{text}; threshold: {compared}{sign} {rule.open.bound:g}"


def series_name(rule: str, subject: str) -> str:
    """Return the name of the series that one rule watches for one subject.

    >>> series_name("scores_shifted", "prob,fixed"), series_name("queue_old", "")
    ('scores_shifted[prob,fixed]', 'queue_old')
    """
    return header_safe(f"{rule}[{subject}]" if subject else rule)


def header_safe(text: str) -> str:
    r"""Return `text` with each character that is not allowed in a header replaced by `_`.

    >>> header_safe("a b\r\nBcc: c")
    'a_b__Bcc:_c'
    """
    return re.sub(r"[^\x21-\x7e]", "_", text)


def _incident_key(rule: str, subject: str, since: datetime.date, sequence: int, kind: str) -> str:
    return f"{series_name(rule, subject)}/{since}/{sequence}-{kind}"


def _of(subject: str) -> str:
    return f" ({subject})" if subject else ""


def _value_facts(value: MetricValue | None) -> dict[str, Any] | None:
    return {**asdict(value), "day": value.day.isoformat()} if value else None
