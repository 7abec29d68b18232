"""The words of an alert: figures, names and links, never the text of a comment."""

import datetime
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from modwatch.alerts.incidents import Figure, News
from modwatch.alerts.rules import SEVERITIES, Rule, Severity

#: Names listed in the tag of a run; MLflow refuses tags of several thousand characters.
_TAG_NAMES = 30

_KINDS = {
    "opened": "opened",
    "recovered": "recovered",
    "withdrawn": "withdrawn: in hindsight it never was",
}


@dataclass(frozen=True, kw_only=True)
class Alert:
    """One message to people, the same on every channel."""

    #: The same whenever the message is sent again; receivers drop what they have seen.
    key: str
    #: One line.
    title: str
    #: Plain text of a few lines.
    text: str
    #: The same for machines: names, days, numbers.
    facts: Mapping[str, Any]
    #: Pages to open, by name.
    links: Mapping[str, str] = field(default_factory=dict)

    @property
    def payload(self) -> dict[str, Any]:
        """The alert as one JSON object."""
        own = {"key": self.key, "title": self.title, "text": self.text, "links": dict(self.links)}
        return {**self.facts, **own}


@dataclass(frozen=True, kw_only=True)
class StandingAlert:
    """An incident that stands at the end of a day, for the day's page."""

    rule: str
    #: Feature and reference; empty when the metric has none.
    subject: str
    severity: Severity
    #: The first bad day.
    since: datetime.date
    #: The day's figure beside its bound.
    words: str

    @property
    def line(self) -> str:
        """The incident in one line of Markdown.

        >>> StandingAlert(rule="scores_shifted", subject="prob,fixed", severity="warning",
        ...               since=datetime.date(2026, 1, 5), words="psi 0.31, not above 0.2").line
        '**warning**: `scores_shifted` (prob,fixed) since 2026-01-05: psi 0.31, not above 0.2'
        """
        said = f": {self.words}" if self.words else ""
        return f"**{self.severity}**: `{self.rule}`{_of(self.subject)} since {self.since}{said}"


def most_severe_first(standing: Iterable[StandingAlert]) -> tuple[StandingAlert, ...]:
    """Return the incidents ordered by severity, then by name."""
    return tuple(sorted(standing, key=lambda s: (-SEVERITIES.index(s.severity), s.rule, s.subject)))


def alert_tag(standing: Sequence[StandingAlert]) -> str:
    """Return the value of the tag `alerts` of a day's run, to sort and filter the runs by.

    >>> day = datetime.date(2026, 1, 5)
    >>> one = StandingAlert(rule="queue_old", subject="", severity="warning", since=day, words="")
    >>> alert_tag([one]), alert_tag([])
    ('warning: queue_old', 'none')
    """
    by_severity: dict[str, dict[str, None]] = {}
    for each in most_severe_first(standing)[:_TAG_NAMES]:
        by_severity.setdefault(each.severity, {})[each.rule] = None
    return "; ".join(f"{name}: {', '.join(rules)}" for name, rules in by_severity.items()) or "none"


def incident_alert(rule: Rule, subject: str, told: News, sequence: int) -> Alert:
    """Return the alert for a piece of news; `sequence` counts those of the rule and subject."""
    facts = {
        "event": told.kind,
        "severity": rule.severity,
        "rule": rule.name,
        "subject": subject,
        "metric": rule.metric,
        "since": told.since.isoformat(),
        "day": told.day.isoformat(),
        "figure": _figure_facts(told.figure),
        "bound": rule.open.bound,
        "direction": rule.direction,
        "look_at": rule.look_at,
    }
    lines = [
        f"{_sentence(described(rule, told.figure))}" if told.figure else "",
        f"Since {told.since}; {_KINDS[told.kind]} ({told.day}).",
        f"Look at: {rule.look_at}" if told.kind == "opened" else "",
    ]
    return Alert(
        key=f"{series_of(rule.name, subject)}/{told.since}/{sequence}-{told.kind}",
        title=f"{rule.severity}: {rule.name}{_of(subject)} {told.kind}, since {told.since}",
        text="\n".join(line for line in lines if line),
        facts=facts,
    )


def retired_alert(rule: str, subject: str, since: datetime.date, sequence: int) -> Alert:
    """Return the alert that closes an incident which no rule, or no figure, speaks of any more."""
    facts = {"event": "withdrawn", "rule": rule, "subject": subject, "since": since.isoformat()}
    return Alert(
        key=f"{series_of(rule, subject)}/{since}/{sequence}-withdrawn",
        title=f"{rule}{_of(subject)} withdrawn, since {since}",
        text=f"Since {since}; withdrawn: the rule is no longer in force, or has no figure.",
        facts=facts,
    )


def failure_alert(
    *, dag: str, task: str, run: str, day: datetime.date | None, error: str, log_url: str
) -> Alert:
    """Return the alert for a task that failed for good; `error` is the name of a class.

    Mapped instances of a task share the key: one alert a run and task.
    """
    of = f" of {day}" if day else ""
    facts = {"event": "failed", "severity": "critical", "dag": dag, "task": task, "run": run}
    return Alert(
        key=header_safe(f"task/{dag}/{task}/{run}"),
        title=f"critical: {dag}.{task}{of} failed",
        text=f"The task {task} of {dag}{of} failed with {error}. Its log says why, the page of the "
        "DAG what to do (Triage).",
        facts={**facts, "day": day and day.isoformat(), "error": error},
        links={"log": log_url},
    )


def question_alert(audit: str, action: str, page: str) -> Alert:
    """Return what is told when an audit waits to be approved or signed off, on a page of Airflow.

    >>> question_alert("2026-01", "signed_off", "http://airflow").title
    'info: audit 2026-01 waits to be signed off'
    """
    words = action.replace("_", " ")
    return Alert(
        key=header_safe(f"audit/{audit}/{action}"),
        title=f"info: audit {audit} waits to be {words}",
        text=f"Nothing happens until somebody has it {words}, or gives it up.",
        facts={"event": "question", "severity": "info", "audit": audit, "action": action},
        links={"answer": page},
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
    """Return what is told, while the labels of an audit are waited for."""
    facts = {"event": "reminder", "severity": "info", "audit": audit, "decided": decided}
    until = f"{deadline:%Y-%m-%d %H:%M} UTC"
    lead = f" {escalated:,} of them wait for a lead." if escalated else ""
    return Alert(
        key=header_safe(key),
        title=f"info: audit {audit} waits for {items - decided:,} labels until {until}",
        text=f"{decided:,} of {items:,} comments of the audit {audit} are decided.{lead} What is "
        f"not decided by {until} is left out, and the intervals are wider for it.",
        facts={**facts, "items": items, "escalated": escalated, "deadline": deadline.isoformat()},
        links=links,
    )


def described(rule: Rule, figure: Figure) -> str:
    """Return a figure beside the bound of its rule, in words.

    >>> rule = Rule(name="r", severity="info", metric="psi", direction="above", look_at="it",
    ...             open={"bound": 0.2, "compare": "low"}, close={"bound": 0.1})
    >>> day = datetime.date(2026, 1, 5)
    >>> described(rule, Figure(day=day, metric="psi", value=0.31, low=0.28, high=0.35, n=2000))
    'psi 0.31 (0.28 to 0.35, n = 2,000); the lower end must not be above 0.2'
    """
    compared = {"low": "the lower end", "high": "the upper end", "value": "it"}
    what = figure.metric + _of(figure.subject)
    if figure.value is None:
        return f"{what} could not be estimated (n = {figure.n:,})"
    interval = ""
    if figure.low is not None and figure.high is not None:
        interval = f"{figure.low:.4g} to {figure.high:.4g}, "
    said = f"{what} {figure.value:.4g} ({interval}n = {figure.n:,})"
    if rule.open.compare == "insufficient":
        return said
    return f"{said}; {compared[rule.open.compare]} must not be {rule.direction} {rule.open.bound:g}"


def series_of(rule: str, subject: str) -> str:
    """Return the name of what one rule watches of one subject.

    >>> series_of("scores_shifted", "prob,fixed"), series_of("queue_old", "")
    ('scores_shifted[prob,fixed]', 'queue_old')
    """
    return header_safe(f"{rule}[{subject}]" if subject else rule)


def header_safe(text: str) -> str:
    r"""Return `text` with whatever may not stand in a header as `_`.

    >>> header_safe("a b\r\nBcc: c")
    'a_b__Bcc:_c'
    """
    return re.sub(r"[^\x21-\x7e]", "_", text)


def _of(subject: str) -> str:
    return f" ({subject})" if subject else ""


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}."


def _figure_facts(figure: Figure | None) -> dict[str, Any] | None:
    if figure is None:
        return None
    names = ("metric", "feature", "reference", "value", "low", "high", "n", "status")
    return {"day": figure.day.isoformat(), **{name: getattr(figure, name) for name in names}}
