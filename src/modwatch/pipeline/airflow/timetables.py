"""The timetable of the DAGs, by which a run is named after the day that it is about.

Airflow stores the import path of a timetable: `plugins/modwatch_plugin.py` registers this one.
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

    With `catchup` no day is left out that ends while Airflow is down or the DAG is paused, up to
    `LONGEST_CATCHUP`; the first run is that of the newest day all the same.
    """

    def next_dagrun_info(
        self, *, last_automated_data_interval: DataInterval | None, restriction: TimeRestriction
    ) -> DagRunInfo | None:
        """Return when the next run begins, and what it covers.

        >>> days = [datetime.datetime(2026, 1, day, tzinfo=datetime.UTC) for day in (5, 6)]
        >>> limits = TimeRestriction(earliest=days[0], latest=None, catchup=False)
        >>> DayTimetable("@daily", timezone="UTC").next_dagrun_info(
        ...     last_automated_data_interval=DataInterval(*days), restriction=limits
        ... ).data_interval.start > days[1]
        True
        """
        if last_automated_data_interval is None:
            restriction = restriction._replace(catchup=False)
        elif restriction.catchup:
            oldest = timezone.coerce_datetime(timezone.utcnow() - LONGEST_CATCHUP)
            earliest = max(restriction.earliest or oldest, oldest)
            restriction = restriction._replace(earliest=earliest)
        return super().next_dagrun_info(
            last_automated_data_interval=last_automated_data_interval, restriction=restriction
        )

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
