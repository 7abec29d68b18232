"""What Airflow hands to the tasks of an audit, answers of people among it."""

import datetime
from types import SimpleNamespace
from typing import Any

from modwatch.audits.evidence import Event
from modwatch.installation.resources import Resources
from modwatch.pipeline.airflow.audits import AuditLabels

TI_ID = "01977d0c-0000-7000-8000-000000000000"


def context(task: Any = None, remind_days: int = 3) -> dict[str, Any]:
    """Return what Airflow hands to a task, as far as it is read."""
    instance = SimpleNamespace(
        id=TI_ID, dag_id="audit_recall", run_id="run-1", task_id="approve", map_index=-1
    )
    params = {"remind_days": remind_days}
    return {"task": task, "task_instance": instance, "ti": instance, "params": params}


def answer(*options: str, **changes: Any) -> dict[str, Any]:
    """Return the event that wakes a task when someone has answered."""
    plain = {
        "chosen_options": list(options),
        "params_input": {"note": "as agreed"},
        "responded_at": datetime.datetime(2026, 1, 7, 12, tzinfo=datetime.UTC),
        "responded_by_user": {"id": "7", "name": "eve"},
    }
    return {**plain, **changes}


def wait(stage: int = 1) -> AuditLabels:
    return AuditLabels(task_id="label", audit="small", stage=stage, poll_seconds=0.01)


def last(resources: Resources) -> Event:
    return resources.audit_store.chain("small")[-1]


def did(resources: Resources) -> tuple[str, str, str]:
    """Return what was done last, by whom, and why."""
    return last(resources).action, last(resources).actor, last(resources).note
