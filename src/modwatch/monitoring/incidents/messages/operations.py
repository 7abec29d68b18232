"""The alerts that something did not run: a task failed, or a day is not measured."""

import datetime
from collections.abc import Mapping

from modwatch.monitoring.incidents.messages.alert import Alert, header_safe, written


def failure_alert(
    *, dag: str, task: str, run: str, day: datetime.date | None, error: str, log_url: str
) -> Alert:
    """Return the alert for a task that failed after all retries; `error` is the name of a class.

    Mapped instances of a task share the key: one alert per run and task.
    """
    day_text = f" for {day}" if day else ""
    headline = f"{dag}.{task} failed{day_text}"
    facts = {"event": "failed", "severity": "critical", "dag": dag, "task": task, "run": run}
    return Alert(
        key=failure_key(dag, task, run),
        title=f"[critical] {headline}",
        text=f"Task {task} of DAG {dag} failed{day_text} with {error}. See the task log for the "
        "cause, and the Triage section of the DAG's documentation for what to do.",
        facts={
            **facts,
            "headline": headline,
            "day": day and day.isoformat(),
            "error": error,
        },
        links={"log": log_url},
    )


def failure_key(dag: str, task: str, run: str) -> str:
    """Return the key of the alert for a failed task.

    >>> failure_key("score_comments", "route", "manual__1")
    'task/score_comments/route/manual__1'
    """
    return header_safe(f"task/{dag}/{task}/{run}")


def repair_alert(*, dag: str, task: str, run: str, day: datetime.date | None) -> Alert:
    """Return the alert that a task has succeeded whose failure was sent."""
    day_text = f" for {day}" if day else ""
    facts = {"event": "recovered", "severity": "critical", "dag": dag, "task": task, "run": run}
    return Alert(
        key=failure_key(dag, task, run),
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
) -> Alert:
    """Return the alert that the days `since` … `due` are not measured.

    `measured` is the last measured day before them.

    >>> measured, since, due = (datetime.date(2026, 3, day) for day in (10, 11, 12))
    >>> heartbeat_alert(due, since, measured, 12, 1, {}).title
    '[critical] 2 days are not measured; the last measured day is 10 March 2026'
    """
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
        text=f"{written(due)} is measured. Days were missing since {written(since)}: run "
        "score_comments for those that still are.",
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
