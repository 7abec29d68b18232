"""The demo's audit: through Airflow, as an auditor does it, with simulated people."""

import time

from modwatch.demo.airflow import AirflowClient
from modwatch.demo.people import hire_auditors, label_audit
from modwatch.demo.setup import Demo
from modwatch.resources import open_resources

AUDIT = "demo"
DAG = "audit_recall"

#: Comments that people label, and how many people know the drawn ones twice.
_LABELS, _SEVERAL = 600, 0.1

#: Seconds that a step of the audit may take.
_PATIENCE = 180

#: Seconds that Airflow needs to see that a process has ended.
_SETTLE = 3


def make_audit(demo: Demo, client: AirflowClient) -> str:
    """Audit all days of the demo; return the state of the run, `success` or `failed`."""
    data = demo.data
    form = {
        "audit": AUDIT,
        "first": data.first_day.isoformat(),
        "last": data.last_day.isoformat(),
        "labels": _LABELS,
        "several_labels_share": _SEVERAL,
        "service": f"Modwatch demo ({data.name})",
        "seed": "published before the draw",
    }
    demo.narrator.say(f"Airflow runs {DAG} on {data.first_day} to {data.last_day}")
    client.unpause(DAG)
    run = client.trigger(DAG, form)
    _answer(client, run, "approve", "Approve", "The hours are there.")
    client.wait_for_task(DAG, run, "label", {"deferred"}, timeout=_PATIENCE)
    with open_resources() as at:
        decisions = label_audit(at, hire_auditors(at.database))
    demo.narrator.say(f"simulated auditors gave {decisions:,} labels, blind")
    _answer(client, run, "sign_off", "Sign", "The labels agree.")
    return client.wait_for_task(DAG, run, "track", {"success", "failed"}, timeout=_PATIENCE)


def _answer(client: AirflowClient, run: str, task: str, option: str, note: str) -> None:
    """Answer what a task asks, and once more should it ask again.

    Nobody answers as fast as a program: Airflow takes a task for lost whose answer comes before it
    has seen that the process which asked has ended.
    """
    while True:
        states = {"awaiting_input", "success"}
        if client.wait_for_task(DAG, run, task, states, timeout=_PATIENCE) == "success":
            return
        time.sleep(_SETTLE)
        client.answer(DAG, run, task, option, note)
