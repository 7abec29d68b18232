"""The alerts that something did not run: a task failed, or a day is not measured."""

import datetime
from collections.abc import Mapping
from typing import Any

from modwatch.monitoring.incidents.messages.alert import Alert, header_safe, written

_ONE_DAY = datetime.timedelta(days=1)


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
    """Return the alert that the day `due` is not measured; `measured` is the last one before it.

    It begins on the day after the last measured one; if there is none, on `due`.

    >>> due, measured = datetime.date(2026, 3, 12), datetime.date(2026, 3, 10)
    >>> alert = heartbeat_alert(due, measured, 12, 1, {})
    >>> alert.title
    '[critical] 2 days are not measured; the last measured day is 10 March 2026'
    >>> alert.facts["since"]
    '2026-03-11'
    """
    since = measured + _ONE_DAY if measured else due
    number = (due - since).days + 1
    missing = written(due) if number == 1 else f"{number:,} days"
    verb = "is" if number == 1 else "are"
    last = f"the last measured day is {written(measured)}" if measured else "no day is"
    return Alert(
        key=f"heartbeat/{due}/{sequence}-opened",
        title=f"[critical] {missing} {verb} not measured; {last}",
        text=f"{written(due)} should have been measured by {hour:02}:00 UTC of the next day. "
        f"Nothing is measured since {written(since)}. Look at: the scheduler of Airflow, and the "
        "runs of score_comments and monitor_collaboration since that day. Without them no other "
        "alert is raised.",
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
    facts: Mapping[str, Any], due: datetime.date, sequence: int, links: Mapping[str, str]
) -> Alert:
    """Return the alert that the day `due` is measured; `facts` are those of the last alert."""
    since = datetime.date.fromisoformat(facts["since"])
    return Alert(
        key=f"heartbeat/{facts['since']}/{sequence}-recovered",
        title=f"[critical] Recovered: {written(due)} is measured",
        text=f"{written(due)} is measured. Days were missing since {written(since)}: run "
        "score_comments for those that are still.",
        facts={**facts, "event": "recovered", "day": due.isoformat()},
        links=links,
    )
