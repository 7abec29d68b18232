"""The runs of a day in Airflow: which there are, and their repair.

Reads and writes Airflow's database: import it where Airflow is configured.
"""

import datetime
from typing import Any

from airflow.api.common.trigger_dag import trigger_dag
from airflow.exceptions import DagRunAlreadyExists
from airflow.models import DagModel, DagRun
from airflow.models.dagbag import DBDagBag
from airflow.utils.session import create_session
from airflow.utils.state import State
from airflow.utils.types import DagRunTriggeredByType
from sqlalchemy import and_, or_, select

from modwatch.common.errors import IncidentError
from modwatch.common.installed import MEASURING, SCORING

_ONE_DAY = datetime.timedelta(days=1)


def run_path(day: datetime.date) -> str | None:
    """Return the path of Airflow's page of the newest run that scored `day`, or else measured it.

    None: there is no run of either.
    """
    with create_session() as session:
        runs = (session.scalar(_newest(dag, day)) for dag in (SCORING, MEASURING))
        return next((f"dags/{run.dag_id}/runs/{run.run_id}" for run in runs if run), None)


def repair_day(day: datetime.date, person: str) -> str:
    """Run a day again, from its source on, in both DAGs; return what was done, as a sentence.

    The run that scored it is cleared, with the name of the `person` as its note; without one, one
    is made. At its end it hands the day over to the DAG that measures.

    Raises:
        IncidentError: the day has not ended, or is being scored, or Airflow does not know the DAG.
    """
    if day >= datetime.datetime.now(datetime.UTC).date():
        raise IncidentError(f"{day} has not ended; repair it on the next day")
    note = f"Repaired by {person}"
    with create_session() as session:
        dag = DBDagBag().get_latest_version_of_dag(SCORING, session=session)
        model = session.scalar(select(DagModel).where(DagModel.dag_id == SCORING))
        if dag is None or model is None:
            raise IncidentError(
                f"Airflow has not parsed {SCORING}; see the log of its DAG processor"
            )
        # Whoever comes second waits here, and finds the run queued.
        run = session.scalar(_newest(SCORING, day).with_for_update())
        if run is None:
            _make_run(day, note)
        elif run.state in State.finished_dr_states:
            dag.clear(run_id=run.run_id, session=session)
            run.note = note
        else:
            raise IncidentError(f"{day} is {run.state} already; wait until its run has ended")
        waits = f" as soon as {SCORING} is unpaused in Airflow" if model.is_paused else ""
    return f"{day} is run again from its source on{waits}"


def _newest(dag: str, day: datetime.date) -> Any:
    """Return the query of the newest run of a DAG that covers a day."""
    first = _midnight(day)
    covers = or_(
        DagRun.partition_key == day.isoformat(),
        and_(
            DagRun.partition_key.is_(None),
            DagRun.data_interval_start >= first,
            DagRun.data_interval_start < first + _ONE_DAY,
        ),
    )
    return select(DagRun).where(DagRun.dag_id == dag, covers).order_by(DagRun.id.desc()).limit(1)


def _make_run(day: datetime.date, note: str) -> None:
    try:
        # Of the same date as a run by schedule, so that there is one or the other.
        trigger_dag(
            SCORING,
            triggered_by=DagRunTriggeredByType.CLI,
            run_id=f"manual__{day}",
            logical_date=_midnight(day),
            run_after=_midnight(day) + _ONE_DAY,
            note=note,
        )
    except DagRunAlreadyExists:  # somebody else was faster
        raise IncidentError(f"{day} is queued already; wait until its run has ended") from None


def _midnight(day: datetime.date) -> datetime.datetime:
    return datetime.datetime.combine(day, datetime.time(), tzinfo=datetime.UTC)
