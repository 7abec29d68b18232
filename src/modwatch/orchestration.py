"""What the DAG files share: the schedule, the day of a run, what is worth a retry."""

import datetime
from typing import Any

from airflow.sdk import (
    CronDataIntervalTimetable,
    ExceptionRetryPolicy,
    RetryAction,
    RetryRule,
    task,
)

from modwatch.settings import load_settings

#: Errors that trying again cannot mend: somebody must act first.
_NEEDS_A_PERSON = [
    "modwatch.errors.DayRejectedError",
    "modwatch.errors.DesignError",
    "modwatch.errors.ModelError",
    "modwatch.errors.SettingsError",
    "modwatch.errors.SourceError",
]

#: What every task of every DAG has; `tests/dags/test_policy.py` holds them to it.
TASK_DEFAULTS: dict[str, Any] = {
    "owner": "modwatch",
    "retries": 2,
    "retry_delay": datetime.timedelta(seconds=30),
    "execution_timeout": datetime.timedelta(hours=2),
    "retry_policy": ExceptionRetryPolicy(
        rules=[RetryRule(exception=list(_NEEDS_A_PERSON), action=RetryAction.FAIL)]
    ),
}


def daily(cron: str) -> dict[str, Any]:
    """Return the schedule arguments of a DAG that covers one UTC day a run.

    The run of day D starts after D has ended; `data_interval_start` lies in D.
    """
    settings = load_settings()
    return {
        "schedule": CronDataIntervalTimetable(cron, timezone="UTC"),
        "start_date": _midnight(settings.first_day),
        "end_date": _last_second(settings.last_day) if settings.last_day else None,
        "catchup": False,
        "max_active_runs": 1,
        "default_args": TASK_DEFAULTS,
    }


def stop(name: str) -> Any:
    """Return the task `name`, which runs `modwatch.pipeline.<name>` for the run's day.

    A mapped task hands the function's further arguments over in `part`. What the function returns
    (a count, ids) goes to XCom.
    """

    @task(task_id=name)  # type: ignore[untyped-decorator]
    def run(part: dict[str, Any] | None = None, data_interval_start: Any = None) -> Any:
        from modwatch import pipeline
        from modwatch.wiring import open_wiring

        with open_wiring() as at:
            return getattr(pipeline, name)(at, day_of(data_interval_start), **(part or {}))

    return run


def day_of(data_interval_start: datetime.datetime) -> datetime.date:
    """Return the UTC day that a run covers.

    >>> day_of(datetime.datetime(2026, 1, 5, tzinfo=datetime.UTC))
    datetime.date(2026, 1, 5)
    """
    return data_interval_start.astimezone(datetime.UTC).date()


def _midnight(day: datetime.date) -> datetime.datetime:
    return datetime.datetime.combine(day, datetime.time(), tzinfo=datetime.UTC)


def _last_second(day: datetime.date) -> datetime.datetime:
    return _midnight(day) + datetime.timedelta(days=1, seconds=-1)
