"""The audit of the demo: carried out in Airflow, with simulated auditors."""

import time

from modwatch.demo.airflow import AirflowClient
from modwatch.demo.moderators import create_auditors, label_audit
from modwatch.demo.setup import Demo
from modwatch.resources import open_resources

AUDIT = "demo"
DAG = "audit_recall"

#: Number of labels, without confirmations.
_LABELS = 600

#: Timeout of a step, in seconds.
_TIMEOUT = 180

#: Seconds that Airflow needs to notice the end of a process.
_SETTLE = 3


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
    _answer(client, run, "approve", "Approve", "Enough labelling hours are available.")
    client.wait_for_task(DAG, run, "label", {"deferred"}, timeout=_TIMEOUT)
    with open_resources() as at:
        decisions = label_audit(at, create_auditors(at.database, at.lanes, data.ratings()))
    demo.narrator.say(f"simulated auditors labelled {decisions:,} comments")
    _answer(client, run, "sign_off", "Sign", "The labels agree.")
    return client.wait_for_task(DAG, run, "track", {"success", "failed"}, timeout=_TIMEOUT)


def _answer(client: AirflowClient, run: str, task: str, option: str, note: str) -> None:
    """Respond to the required action of a task, and again if it is asked again.

    Airflow considers a task lost when the response arrives before it has noticed the end of the
    process that asked, so respond with a delay.
    """
    while True:
        states = {"awaiting_input", "success"}
        if client.wait_for_task(DAG, run, task, states, timeout=_TIMEOUT) == "success":
            return
        time.sleep(_SETTLE)
        client.answer(DAG, run, task, option, note)
