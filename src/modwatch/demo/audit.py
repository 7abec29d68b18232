"""The audit of the demo: carried out in Airflow, with simulated auditors."""

from modwatch.demo.moderators import create_auditors, label_audit
from modwatch.demo.setup import Demo
from modwatch.resources import open_resources
from modwatch.stack.airflow_client import AirflowClient

AUDIT = "demo"
DAG = "audit_recall"

#: Number of labels, without confirmations.
_LABELS = 600

#: Timeout of a step, in seconds.
_TIMEOUT = 180


def make_audit(demo: Demo, client: AirflowClient) -> str:
    """Audit all days of the demo; return the state of the run, `success` or `failed`."""
    data = demo.data
    form = {
        "audit": AUDIT,
        "first": data.first_day.isoformat(),
        "last": data.last_day.isoformat(),
        "labels": _LABELS,
        "service": f"Modwatch demo ({data.name})",
        "four_eyes": False,  # the demo has one user of Airflow
    }
    demo.narrator.say(f"Airflow runs {DAG} on {data.first_day} to {data.last_day}")
    client.unpause(DAG)
    run = client.trigger(DAG, form)
    client.answer(
        DAG, run, "approve", "Approve", "Enough labelling hours are available.", timeout=_TIMEOUT
    )
    client.wait_for_task(DAG, run, "label", {"deferred"}, timeout=_TIMEOUT)
    with open_resources() as at:
        decisions = label_audit(at, create_auditors(at.database, at.lanes, data.ratings()))
    demo.narrator.say(f"simulated auditors labelled {decisions:,} comments")
    client.answer(DAG, run, "sign_off", "Sign", "The labels agree.", timeout=_TIMEOUT)
    return client.wait_for_task(DAG, run, "track", {"success", "failed"}, timeout=_TIMEOUT)
