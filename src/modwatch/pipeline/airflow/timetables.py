"""The timetables of the DAGs, by which a run is named after the day that it is about.

Airflow stores the import path of a timetable: `plugins/modwatch_plugin.py` registers these.
"""

import datetime
from typing import Any

from airflow.sdk import timezone
from airflow.timetables.base import DagRunInfo, DataInterval, TimeRestriction
from airflow.timetables.interval import CronDataIntervalTimetable
from airflow.utils.types import DagRunType

#: Days that ended longer ago are run by a backfill.
LONGEST_CATCHUP = datetime.timedelta(days=31)


class DayTimetable(CronDataIntervalTimetable):  # type: ignore[misc]
    """A cron schedule whose runs are named after the first day of their interval.

    Airflow names them after the time at which they start, on the next day. It does so in a backfill
    all the same, and names runs that follow an asset after the time at which they are made.
    """

    def generate_run_id(
        self,
        *,
        run_type: DagRunType,
        run_after: datetime.datetime,
        data_interval: DataInterval | None,
        **extra: Any,
    ) -> str:
        """Return the id of a new run; of one that a person triggers, with the time.

        >>> days = [datetime.datetime(2026, 1, day, tzinfo=datetime.UTC) for day in (5, 6)]
        >>> interval = DataInterval(*days)
        >>> DayTimetable("@daily", timezone="UTC").generate_run_id(
        ...     run_type=DagRunType.SCHEDULED, run_after=interval.end, data_interval=interval)
        'scheduled__2026-01-05'
        """
        if data_interval is None or run_type == DagRunType.MANUAL:
            name: str = super().generate_run_id(
                run_type=run_type, run_after=run_after, data_interval=data_interval, **extra
            )
        else:
            name = run_type.generate_run_id(suffix=data_interval.start.date().isoformat())
        return name


class EveryDayTimetable(DayTimetable):
    """One that leaves out no day which ended while Airflow was down, or the DAG paused.

    For at most `LONGEST_CATCHUP`, and in order; the first run of all is that of the newest day.
    Airflow's own `catchup` would begin with the start date of the DAG.
    """

    def next_dagrun_info(
        self, *, last_automated_data_interval: DataInterval | None, restriction: TimeRestriction
    ) -> DagRunInfo | None:
        """Return when the next run begins, and what it covers.

        >>> one_day = datetime.timedelta(days=1)
        >>> ended = datetime.datetime.now(datetime.UTC) - 3 * one_day
        >>> limits = TimeRestriction(earliest=None, latest=None, catchup=False)
        >>> following = EveryDayTimetable("@daily", timezone="UTC").next_dagrun_info(
        ...     last_automated_data_interval=DataInterval(ended - one_day, ended),
        ...     restriction=limits)
        >>> following.data_interval.start.date() == ended.date()
        True
        """
        if last_automated_data_interval is not None and not restriction.catchup:
            oldest = timezone.coerce_datetime(timezone.utcnow() - LONGEST_CATCHUP)
            earliest = max(restriction.earliest or oldest, oldest)
            restriction = restriction._replace(earliest=earliest, catchup=True)
        return super().next_dagrun_info(
            last_automated_data_interval=last_automated_data_interval, restriction=restriction
        )
