"""The text of alerts: metric values, names and links, never the text of a comment."""

import datetime
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from modwatch.alerts.incidents import LevelChange, MetricValue, Transition
from modwatch.alerts.rules import SEVERITIES, AlertRule, Severity, in_words

_TRANSITIONS = {
    "opened": "Opened on {day}; it began on {since}.",
    "escalated": "More severe since {day}; it began on {since}.",
    "recovered": "Recovered on {day}; it began on {since}.",
    "withdrawn": "Withdrawn on {day}: with the labels received since, the values of {since} do not "
    "meet the condition.",
}

_PREFIXES = {
    "opened": "",
    "escalated": "Worse: ",
    "recovered": "Recovered: ",
    "withdrawn": "Withdrawn: ",
}

_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)

_REFERENCES = {"fixed": "the fixed reference", "trailing": "the days before"}

#: Of metrics that follow a level: whose level it is.
_METRIC_NAMES = {"accuracy_change": "Accuracy", "oc_accuracy_change": "Accuracy with review"}

#: A rule, its subject, and its value on the day of the message, if it has one.
Finding = tuple[AlertRule, str, MetricValue | None]


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
    #: What happened, as the alert says it; empty on days that earlier versions evaluated.
    headline: str = ""
    #: Where most of a change of the scores is, as a sentence; empty: nowhere, or no such change.
    segment: str = ""

    @property
    def said(self) -> str:
        """The headline, or the name of the rule in words where there is none.

        >>> ActiveAlert(rule="scores_shifted", subject="prob,fixed", severity="warning",
        ...             since=datetime.date(2026, 1, 5), description="psi 0.31").said
        'Scores shifted (prob, against the fixed reference)'
        """
        return self.headline or _name_in_words(self.rule, self.subject)


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
    prefix: str | None = None,
) -> Alert:
    """Return the alert for a transition of an incident.

    Args:
        series: name of the cause.
        found: what its rules found, the leading one first.
        transition: what to notify of.
        sequence: number of the alert among those of the cause, from 1.
        headline: what happened, as it was said before; default: from the leading rule.
        prefix: what precedes it in the title; default: of the kind of transition.
    """
    (rule, subject, value), *others = found
    kind, since, day = transition.kind, transition.since, transition.day
    severity = transition.severity or rule.severity
    headline = headline or describe_finding(rule, subject, value)
    also = dict.fromkeys(describe_finding(*each) for each in others)
    also.pop(headline, None)
    lines = [
        f"{describe_value(rule, value)}." if value else "",
        _dates(transition),
        f"Also: {'; '.join(also)}." if also and kind in ("opened", "escalated") else "",
        f"Look at: {rule.look_at}" if kind in ("opened", "escalated") else "",
    ]
    return Alert(
        key=f"{series}/{since}/{sequence}-{kind}",
        title=f"[{severity}] {_PREFIXES[kind] if prefix is None else prefix}{headline}, "
        f"since {written(transition.news_since or since)}",
        text="\n".join(line for line in lines if line),
        facts={
            "event": kind,
            "severity": severity,
            "incident": series,
            "headline": headline,
            "rule": rule.name,
            "subject": subject,
            "metric": rule.metric,
            "since": since.isoformat(),
            "day": day.isoformat(),
            "figure": _value_facts(value),
            "bound": rule.open.bound,
            "direction": rule.direction,
            "look_at": rule.look_at,
        },
    )


def _dates(transition: Transition) -> str:
    """Return when the incident, or what is new in it, began and was told."""
    if transition.news_since:
        return f"Since {written(transition.news_since)}; the incident began on " + (
            f"{written(transition.since)}."
        )
    return _TRANSITIONS[transition.kind].format(
        day=written(transition.day), since=written(transition.since)
    )


def unwatched_alert(
    facts: Mapping[str, Any],
    since: datetime.date,
    sequence: int,
    *,
    series: str,
    moved: str | None = None,
) -> Alert:
    """Return the alert that withdraws an incident whose rule was removed or has no data.

    `facts` are those of the last alert; `moved` is the cause that the rule belongs to now.
    """
    why = (
        f"The rule belongs to the incident {moved} now."
        if moved
        else "The rule was removed or has no data."
    )
    kept = {name: facts[name] for name in ("rule", "subject")}
    said = facts.get("headline") or kept["rule"] + _of(kept["subject"])
    return Alert(
        key=f"{series}/{since}/{sequence}-withdrawn",
        title=f"Withdrawn: {said}, since {written(since)}",
        text=f"Incident withdrawn; it began on {written(since)}. {why}",
        facts={"event": "withdrawn", "incident": series, **kept, "since": since.isoformat()},
    )


def accepted_alert(
    facts: Mapping[str, Any],
    series: str,
    since: datetime.date,
    sequence: int,
    person: str,
    links: Mapping[str, str],
) -> Alert:
    """Return the alert that ends an incident because a person accepted the new normal.

    `facts` and `links` are those of the last alert of the incident; `since` is the day from which
    the accepted level holds.
    """
    said = facts.get("headline") or facts["rule"] + _of(facts["subject"])
    kept = {name: facts[name] for name in ("severity", "rule", "subject") if name in facts}
    return Alert(
        key=f"{series}/{since}/{sequence}-accepted",
        title=f"[{facts.get('severity', 'info')}] Accepted as the new normal: {said}",
        text=f"{person} accepted the level since {written(since)} as the new normal. Changes are "
        "measured from it. `modwatch alerts history` has the note.",
        facts={
            "event": "accepted",
            "incident": series,
            "headline": said,
            **kept,
            "since": since.isoformat(),
            "person": person,
        },
        links=links,
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
        key=failure_key(dag, task, run),
        title=f"[critical] {dag}.{task} failed{day_text}",
        text=f"Task {task} of DAG {dag} failed{day_text} with {error}. See the task log for the "
        "cause, and the Triage section of the DAG's documentation for what to do.",
        facts={**facts, "day": day and day.isoformat(), "error": error},
        links={"log": log_url},
    )


def failure_key(dag: str, task: str, run: str) -> str:
    """Return the key of the alert for a failed task.

    >>> failure_key("score_comments", "route", "manual__1")
    'task/score_comments/route/manual__1'
    """
    return header_safe(f"task/{dag}/{task}/{run}")


def repair_alert(key: str, facts: Mapping[str, Any], links: Mapping[str, str]) -> Alert:
    """Return the alert that a task has succeeded whose failure had the key, facts and links."""
    day_text = f" for {facts['day']}" if facts.get("day") else ""
    dag, task = facts["dag"], facts["task"]
    kept = {name: facts.get(name) for name in ("severity", "dag", "task", "run", "day")}
    return Alert(
        key=key,
        title=f"[critical] Recovered: {dag}.{task} failed{day_text}",
        text=f"Task {task} of DAG {dag} has succeeded{day_text}.",
        facts={"event": "recovered", **kept},
        links=links,
    )


def heartbeat_alert(
    due: datetime.date,
    measured: datetime.date | None,
    hour: int,
    sequence: int,
    links: Mapping[str, str],
) -> Alert:
    """Return the alert that a day is not measured although it is due; `measured` is the last one.

    >>> due, measured = datetime.date(2026, 3, 12), datetime.date(2026, 3, 10)
    >>> heartbeat_alert(due, measured, 12, 1, {}).title
    '[critical] 12 March 2026 is not measured; the last measured day is 10 March 2026'
    """
    last = f"the last measured day is {written(measured)}" if measured else "no day is"
    return Alert(
        key=f"heartbeat/{due}/{sequence}-opened",
        title=f"[critical] {written(due)} is not measured; {last}",
        text=f"The day should have been measured by {hour:02}:00 UTC of the next. Look at: the "
        "scheduler of Airflow, and the runs of score_comments and monitor_collaboration for the "
        "day. Without them no other alert is raised.",
        facts={
            "event": "opened",
            "severity": "critical",
            "incident": "heartbeat",
            "headline": f"{written(due)} is not measured",
            "since": due.isoformat(),
            "day": due.isoformat(),
        },
        links=links,
    )


def heartbeat_recovered_alert(
    facts: Mapping[str, Any], due: datetime.date, sequence: int, links: Mapping[str, str]
) -> Alert:
    """Return the alert that days are measured again up to `due`; `facts` are of the last alert."""
    return Alert(
        key=f"heartbeat/{facts['since']}/{sequence}-recovered",
        title=f"[critical] Recovered: {facts['headline']}",
        text=f"The days are measured again, up to {written(due)}.",
        facts={**facts, "event": "recovered", "day": due.isoformat()},
        links=links,
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


def describe_finding(rule: AlertRule, subject: str, value: MetricValue | None) -> str:
    """Return what a rule found, as a headline; the rule's title, or its name where it has none.

    >>> rule = AlertRule(name="scores_shifted", severity="info", metric="psi", direction="above",
    ...                  look_at="it", open={"bound": 0.2}, close={"bound": 0.1})
    >>> describe_finding(rule, "prob,fixed", None)
    'Scores shifted (prob, against the fixed reference)'
    """
    if not rule.title or ("{before}" in rule.title and (value is None or value.change is None)):
        return _name_in_words(rule.name, subject)
    change = value.change if value else None
    number = "" if value is None or value.value is None else f"{value.value:.3g}"
    names = {
        "feature": _feature_and_reference(subject)[0],
        "value": number,
        "before": f"{change.before.value:.3f}" if change else "",
        "after": f"{change.after.value:.3f}" if change else "",
    }
    title = re.sub(r"\{(\w+)\}", lambda found: names[found[1]], rule.title)
    return " ".join(title.split())


def _name_in_words(rule: str, subject: str) -> str:
    feature, reference = _feature_and_reference(subject)
    against = f", against {_REFERENCES[reference]}" if reference else ""
    about = f" ({feature}{against})" if subject else ""
    return in_words(rule).capitalize() + about


def _feature_and_reference(subject: str) -> tuple[str, str]:
    """Return both parts of a subject; the latter is empty if it has none."""
    feature, comma, reference = subject.rpartition(",")
    return (feature, reference) if comma and reference in _REFERENCES else (subject, "")


def written(day: datetime.date) -> str:
    """Return a day in words.

    >>> written(datetime.date(2026, 3, 12))
    '12 March 2026'
    """
    return f"{day.day} {_MONTHS[day.month - 1]} {day.year}"


def describe_value(rule: AlertRule, value: MetricValue) -> str:
    """Return a metric value with its interval and the rule's threshold, in one line.

    >>> rule = AlertRule(name="r", severity="info", metric="psi", direction="above", look_at="it",
    ...                  open={"bound": 0.2, "compare": "low"}, close={"bound": 0.1})
    >>> day = datetime.date(2026, 1, 5)
    >>> describe_value(
    ...     rule, MetricValue(day=day, metric="psi", value=0.31, low=0.28, high=0.35, n=2000))
    'psi is 0.31 (95% CI 0.28 to 0.35, n = 2,000); threshold: lower bound > 0.2'
    """
    if value.change is not None:
        return _describe_change(value, value.change)
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


def _describe_change(value: MetricValue, change: LevelChange) -> str:
    """Return levels, size and day of a change, each with its 95 % interval."""
    name = _METRIC_NAMES.get(value.metric, value.metric)
    size = 100 * (value.value or 0.0)
    ends = ""
    if value.low is not None and value.high is not None:
        ends = f" (95 % interval {_signed(100 * value.low)} to {_signed(100 * value.high)})"
    days = ""
    if change.day_low < change.day_high:
        days = f" ({written(change.day_low)} to {written(change.day_high)})"
    before, after = change.before, change.after
    return (
        f"{name} fell from {before.value:.3f} ({before.low:.3f} to {before.high:.3f}) to "
        f"{after.value:.3f} ({after.low:.3f} to {after.high:.3f}), a change of {_signed(size)} "
        f"points{ends}, since {written(change.day)}{days}"
    )


def _signed(number: float) -> str:
    return f"{number:+.1f}".replace("-", "−")


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


def _of(subject: str) -> str:
    return f" ({subject})" if subject else ""


def _value_facts(value: MetricValue | None) -> dict[str, Any] | None:
    """Return a value as JSON: days as text."""
    if value is None:
        return None
    plain = {**asdict(value), "day": value.day.isoformat()}
    if value.change:
        change = _as_json(plain["change"])
        plain["change"] = {name: each for name, each in change.items() if each is not None}
    return plain


def _as_json(value: Any) -> Any:
    """Return a value with days as text."""
    if isinstance(value, dict):
        return {name: _as_json(each) for name, each in value.items()}
    return value.isoformat() if isinstance(value, datetime.date) else value
