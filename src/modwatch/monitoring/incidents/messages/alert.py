"""A notification, and those of no alert rule: about tasks, missing days, models and escalations."""

import datetime
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


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


def header_safe(text: str) -> str:
    r"""Return `text` with each character that is not allowed in a header replaced by `_`.

    >>> header_safe("a b\r\nBcc: c")
    'a_b__Bcc:_c'
    """
    return re.sub(r"[^\x21-\x7e]", "_", text)


def written(day: datetime.date) -> str:
    """Return a day in words.

    >>> written(datetime.date(2026, 3, 12))
    '12 March 2026'
    """
    return f"{day.day} {_MONTHS[day.month - 1]} {day.year}"


def remedy(day: datetime.date) -> str:
    """Return how a day is repaired, as a sentence.

    >>> remedy(datetime.date(2026, 3, 12))
    'Then repair the day: press *Repair* on the page Modwatch, or run `modwatch repair 2026-03-12`.'
    """
    return (
        f"Then repair the day: press *Repair* on the page Modwatch, or run `modwatch repair {day}`."
    )


def failure_alert(
    *,
    dag: str,
    task: str,
    run: str,
    day: datetime.date | None,
    error: str,
    cause: str,
    links: Mapping[str, str],
) -> Alert:
    """Return the alert for a task that failed after all retries.

    Mapped instances of a task share the key, and so do all runs of a `day`: None for a run that is
    about no day of comments. `error` is the name of a class, `cause` a sentence.

    >>> day = datetime.date(2026, 3, 12)
    >>> alert = failure_alert(dag="score_comments", task="ingest", run="scheduled__2026-03-12",
    ...                       day=day, error="SourceError", cause="there is no file", links={})
    >>> alert.title
    '[critical] score_comments.ingest failed for 2026-03-12: there is no file'
    """
    about = f" for {day}" if day else ""
    headline = shortened(f"{dag}.{task} failed{about}: {cause}")
    then = remedy(day) if day else (
        "Then clear the task in Airflow; the documentation of the DAG has a section Triage."
    )  # fmt: skip
    facts = {
        "event": "failed", "severity": "critical", "headline": headline, "dag": dag, "task": task,
        "run": run, "day": day and day.isoformat(), "error": error, "cause": cause,
    }  # fmt: skip
    return Alert(
        key=failure_key(dag, task, day or run),
        title=f"[critical] {headline}",
        text=f"{_sentence(cause)}\nCorrect the cause. {then}",
        facts=facts,
        links=links,
    )


def shortened(text: str, most: int = 200) -> str:
    """Return `text` with at most `most` characters.

    >>> shortened("a long sentence", 7)
    'a long…'
    """
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


def failure_key(dag: str, task: str, of: datetime.date | str) -> str:
    """Return the key of the alert for a failed task of a day, or of a run that is about none.

    >>> failure_key("score_comments", "route", datetime.date(2026, 3, 12))
    'task/score_comments/route/2026-03-12'
    """
    return header_safe(f"task/{dag}/{task}/{of}")


def repair_alert(*, dag: str, task: str, run: str, day: datetime.date | None) -> Alert:
    """Return the alert that a task has succeeded whose failure was sent."""
    day_text = f" for {day}" if day else ""
    facts = {"event": "recovered", "severity": "critical", "dag": dag, "task": task, "run": run}
    return Alert(
        key=failure_key(dag, task, day or run),
        title=f"[critical] Recovered: {dag}.{task} failed{day_text}",
        text=f"Task {task} of DAG {dag} has succeeded{day_text}.",
        facts={**facts, "day": day and day.isoformat()},
    )


def heartbeat_alert(
    due: datetime.date,
    since: datetime.date,
    measured: datetime.date | None,
    hour: int,
    sequence: int,
    links: Mapping[str, str],
    causes: Sequence[str] = (),
) -> Alert:
    """Return the alert that the days `since` … `due` are not measured.

    `measured` is the last measured day before them; `causes` are the headlines of what failed.

    >>> measured, since, due = (datetime.date(2026, 3, day) for day in (10, 11, 12))
    >>> heartbeat_alert(due, since, measured, 12, 1, {}).title
    '[critical] 2 days are not measured; the last measured day is 10 March 2026'
    """
    number = (due - since).days + 1
    missing = written(due) if number == 1 else f"{number:,} days"
    verb = "is" if number == 1 else "are"
    last = f"the last measured day is {written(measured)}" if measured else "no day is"
    failed = "\n".join(causes) or (
        "No task has failed, so the runs have not started or not ended: look at the scheduler of "
        "Airflow, and at the runs of score_comments and monitor_collaboration."
    )
    return Alert(
        key=f"heartbeat/{due}/{sequence}-opened",
        title=f"[critical] {missing} {verb} not measured; {last}",
        text=f"{written(due)} should have been measured by {hour:02}:00 UTC of the next day. "
        f"Nothing is measured since {written(since)}, and no other alert is raised.\n{failed}\n"
        f"Correct the cause. {remedy(since)}",
        facts={
            "event": "opened",
            "severity": "critical",
            "incident": "heartbeat",
            "headline": f"Days are not measured; {last}" if measured else "No day is measured",
            "since": since.isoformat(),
            "day": due.isoformat(),
        },
        links=links,
    )


def heartbeat_recovered_alert(
    since: datetime.date,
    headline: str,
    due: datetime.date,
    sequence: int,
    links: Mapping[str, str],
) -> Alert:
    """Return the alert that the day `due` is measured; days were missing since `since`."""
    return Alert(
        key=f"heartbeat/{since}/{sequence}-recovered",
        title=f"[critical] Recovered: {written(due)} is measured",
        text=f"{written(due)} is measured. Days were missing since {written(since)}; those that "
        "still are have a button *Repair* on the page Modwatch.",
        facts={
            "event": "recovered",
            "severity": "critical",
            "incident": "heartbeat",
            "headline": headline,
            "since": since.isoformat(),
            "day": due.isoformat(),
        },
        links=links,
    )


def needs_no_action(facts: Mapping[str, Any]) -> bool:
    """Return whether nothing is to be done after an alert: an end, or one of severity info.

    >>> needs_no_action({"event": "recovered", "severity": "critical"})
    True
    """
    ended = facts["event"] in ("recovered", "withdrawn", "accepted") and not facts.get("unrepaired")
    return ended or (facts["event"] in ("opened", "escalated") and facts["severity"] == "info")


def digest_alert(channel: str, day: datetime.date, alerts: Sequence[Alert]) -> Alert:
    """Return one alert, for a channel, in place of those that need no action.

    >>> ended = Alert(key="k", title="Recovered: x", text="", facts={})
    >>> digest_alert("mail", datetime.date(2026, 3, 12), [ended]).title
    '[info] 12 March 2026: nothing to do about 1 message'
    """
    number = f"{len(alerts):,} message{'s' * (len(alerts) != 1)}"
    facts = {"event": "digest", "severity": "info", "day": day.isoformat()}
    pages = [alert.links for alert in alerts if alert.links]
    return Alert(
        key=f"digest/{channel}/{day}",
        title=f"[info] {written(day)}: nothing to do about {number}",
        text="\n".join(alert.title for alert in alerts),
        facts={**facts, "messages": [alert.payload for alert in alerts]},
        links=pages[-1] if pages else {},
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
        text="It passed its evaluation. The champion scores until someone decides.",
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
        text="A moderator escalated a comment because someone may be in danger, or for another "
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
