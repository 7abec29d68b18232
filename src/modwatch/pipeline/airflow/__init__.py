"""Shared by the DAG files: schedules, the day of a run, retries and failure alerts."""

import datetime
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from airflow.sdk import (
    Asset,
    BaseNotifier,
    BaseOperatorLink,
    ExceptionRetryPolicy,
    PartitionedAssetTimetable,
    RetryAction,
    RetryRule,
    StartOfDayMapper,
    task,
)

from modwatch.common.errors import ModwatchError, SettingsError
from modwatch.common.installed import MEASURING, SCORING
from modwatch.installation import open_resources
from modwatch.pipeline.airflow.timetables import DayTimetable, EveryDayTimetable
from modwatch.settings import load_settings

_log = logging.getLogger(__name__)

#: Errors that pass by themselves although their base class does not.
_RETRIED = ["modwatch.common.errors.RoutingOutdatedError"]
#: Errors that a retry cannot fix.
_NOT_RETRIED = [
    "modwatch.common.errors.AuditError",
    "modwatch.common.errors.DayRejectedError",
    "modwatch.common.errors.DesignError",
    "modwatch.common.errors.DsaReportError",
    "modwatch.common.errors.ModelError",
    "modwatch.common.errors.SettingsError",
    "modwatch.common.errors.SourceError",
]


class TaskFailureNotifier(BaseNotifier):  # type: ignore[misc]
    """Sends an alert when a task has failed after its retries: once per task and day.

    It has the message of an error of Modwatch, which never contains the text of a comment; of any
    other error only the class, since its message may quote data.
    """

    def notify(self, context: Mapping[str, Any]) -> None:
        """Send the alert; AlertError if a channel failed."""
        from modwatch.monitoring.incidents.messages.alert import failure_alert
        from modwatch.monitoring.incidents.operations import pages_of, report_failure

        task, error, day = context["ti"], context.get("exception"), _day_in(context)
        # It is a text when the process was killed.
        name = type(error).__name__ if isinstance(error, BaseException) else "an unknown error"
        with open_resources() as resources:
            of_day = pages_of(resources.checks, resources.settings.airflow_url, day)
            failure = failure_alert(
                dag=task.dag_id,
                task=task.task_id,
                run=task.run_id,
                day=_repairable(task, day),
                error=name,
                cause=str(error) if isinstance(error, ModwatchError) else f"{name}, see the log",
                links={**of_day, "log": task.log_url},
            )
            report_failure(lambda: resources.database, resources.alert_channels, failure, day)


class TaskRepairNotifier(BaseNotifier):  # type: ignore[misc]
    """Ends the alert of a failed task when the task has succeeded after all, in every shard.

    Also when another run of the day did it.
    """

    def notify(self, context: Mapping[str, Any]) -> None:
        """Send the alert if a failure was sent before; AlertError if a channel failed."""
        task, day = context["ti"], _day_in(context)
        if self._others_failed(task):
            return
        from modwatch.monitoring.incidents.messages.alert import repair_alert
        from modwatch.monitoring.incidents.operations import report_repair

        repair = repair_alert(
            dag=task.dag_id, task=task.task_id, run=task.run_id, day=_repairable(task, day)
        )
        with open_resources() as resources:
            report_repair(resources.database, resources.alert_channels, repair, day)

    @staticmethod
    def _others_failed(task: Any) -> bool:
        """Return whether another mapped instance of the task is failed, or will be run again."""
        waiting = ["failed", "up_for_retry", "upstream_failed"]
        found: int = task.get_ti_count(
            dag_id=task.dag_id, task_ids=[task.task_id], run_ids=[task.run_id], states=waiting
        )
        return found > 0


#: Defaults of every task; `tests/dags/test_policy.py` checks that no DAG overrides them.
TASK_DEFAULTS: dict[str, Any] = {
    "owner": "modwatch",
    # 30 s, doubling up to a quarter of an hour: what passes by itself has half an hour or more.
    "retries": 6,
    "retry_delay": datetime.timedelta(seconds=30),
    "retry_exponential_backoff": 2.0,
    "max_retry_delay": datetime.timedelta(minutes=15),
    "execution_timeout": datetime.timedelta(hours=2),
    "retry_policy": ExceptionRetryPolicy(
        rules=[
            RetryRule(exception=list(_RETRIED), action=RetryAction.DEFAULT),
            RetryRule(exception=list(_NOT_RETRIED), action=RetryAction.FAIL),
        ]
    ),
    "on_failure_callback": [TaskFailureNotifier()],
    "on_success_callback": [TaskRepairNotifier()],
}


#: A day that `score_comments` has scored or rejected; its partitions are days, YYYY-MM-DD.
SCORED_DAY = Asset("modwatch_scored_day")


def daily_schedule(cron: str) -> dict[str, Any]:
    """Return the schedule arguments of a DAG that covers one UTC day a run.

    The run of day D starts after D has ended; `data_interval_start` lies in D. Days that end while
    Airflow is down are caught up on, in order.
    """
    settings = load_settings()
    return {
        "schedule": EveryDayTimetable(cron, timezone="UTC"),
        "start_date": _midnight(settings.first_day),
        "end_date": _last_second(settings.last_day) if settings.last_day else None,
        "catchup": False,
        "max_active_runs": 1,
        "default_args": TASK_DEFAULTS,
    }


def after_scoring() -> dict[str, Any]:
    """Return the schedule arguments of a DAG that runs whenever a day has been scored.

    The partition key of a run is the day, whenever that was scored. There is no end date: after it,
    Airflow creates runs without tasks.
    """
    by_day = StartOfDayMapper(input_format="%Y-%m-%d")
    return {
        **daily_schedule("@daily"),
        "schedule": PartitionedAssetTimetable(assets=SCORED_DAY, default_partition_mapper=by_day),
        "end_date": None,
    }


def monthly_schedule(cron: str) -> dict[str, Any]:
    """Return the schedule arguments of a DAG that covers one month a run, or the form's period.

    Runs can overlap, because an audit takes days. If the schedules have a last day, this one has no
    schedule: after the end date of a DAG, Airflow creates runs without tasks.
    """
    given = daily_schedule(cron)
    schedule = None if given["end_date"] else DayTimetable(cron, timezone="UTC")
    return {**given, "schedule": schedule, "end_date": None, "max_active_runs": 16}


def single_schedule(cron: str) -> dict[str, Any]:
    """Return the schedule arguments of a DAG that runs one at a time, on whatever there is."""
    return {**monthly_schedule(cron), "max_active_runs": 1}


def task_of(
    step: Callable[..., Any], *, links: Sequence[BaseOperatorLink] = (), **options: Any
) -> Any:
    """Return the task that runs a step of `modwatch.pipeline` for the run's day.

    A mapped task passes the step's further arguments in `part`. The return value (a count, ids)
    goes to XCom. The log has the rows of each table that were read and written, and the time.
    `links` are the buttons of the task in Airflow, `options` those of the operator, such as its
    pool.
    """

    @task(task_id=step.__name__, **options)  # type: ignore[untyped-decorator]
    def run(
        part: dict[str, Any] | None = None, dag_run: Any = None, data_interval_start: Any = None
    ) -> Any:
        day, begun = day_of(dag_run, data_interval_start), time.monotonic()
        with open_resources() as resources:
            try:
                return step(resources, day, **(part or {}))
            finally:  # also for a step that failed
                seconds = time.monotonic() - begun
                rows = resources.lake.traffic
                _log.info("%s of %s took %.1f s; rows %s", step.__name__, day, seconds, rows)

    # The class decides the buttons: a decorated function has no argument for them.
    operator = run.operator_class
    members = {"__module__": operator.__module__, "operator_extra_links": tuple(links)}
    run.operator_class = type(operator.__name__, (operator,), members)
    return run


def scoring_pool() -> str:
    """Return the pool of tasks that apply a model."""
    return load_settings().scorer_pool


@task(outlets=[SCORED_DAY])  # type: ignore[untyped-decorator]
def hand_over(
    dag_run: Any = None, data_interval_start: Any = None, outlet_events: Any = None
) -> str:
    """Announce that the day of the run has ended; return it."""
    day = day_of(dag_run, data_interval_start).isoformat()
    outlet_events[SCORED_DAY].add_partitions(day)
    return day


def day_of(dag_run: Any, data_interval_start: datetime.datetime | None) -> datetime.date:
    """Return the UTC day that a run covers: its partition, or where its data interval starts.

    >>> from types import SimpleNamespace
    >>> day_of(SimpleNamespace(partition_key="2026-01-05"), None)
    datetime.date(2026, 1, 5)
    >>> moment = datetime.datetime(2026, 1, 6, tzinfo=datetime.UTC)
    >>> day_of(SimpleNamespace(partition_key=None), moment)
    datetime.date(2026, 1, 6)

    Raises:
        SettingsError: the run has neither, or the partition is not a day that has ended.
    """
    key = getattr(dag_run, "partition_key", None)
    if not key and data_interval_start is not None:
        return _utc_day(data_interval_start)
    try:
        day = datetime.date.fromisoformat(key or "")
    except ValueError:
        raise SettingsError(
            "the run has no day; trigger it with a day, YYYY-MM-DD, as its partition key"
        ) from None
    if day >= _utc_day(datetime.datetime.now(datetime.UTC)):
        raise SettingsError(f"{day} has not ended; trigger a run with an earlier day")
    return day


def _utc_day(moment: datetime.datetime) -> datetime.date:
    return moment.astimezone(datetime.UTC).date()


def _day_in(context: Mapping[str, Any]) -> datetime.date:
    """Return the day that a run covers, or without one the day on which it was due."""
    try:
        return day_of(context.get("dag_run"), context.get("data_interval_start"))
    except SettingsError:
        return _utc_day(context.get("logical_date") or context["ti"].start_date)


def _repairable(task: Any, day: datetime.date) -> datetime.date | None:
    """Return the day of a run that `modwatch repair` can run again; None of another DAG."""
    return day if task.dag_id in (SCORING, MEASURING) else None


def _midnight(day: datetime.date) -> datetime.datetime:
    return datetime.datetime.combine(day, datetime.time(), tzinfo=datetime.UTC)


def _last_second(day: datetime.date) -> datetime.datetime:
    return _midnight(day) + datetime.timedelta(days=1, seconds=-1)
