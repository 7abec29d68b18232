"""The audit of the demo: carried out in Airflow, with simulated auditors."""

from collections.abc import Mapping

from modwatch.demo.moderators import create_auditors, label_audit
from modwatch.demo.setup import Demo
from modwatch.installation.resources import open_resources
from modwatch.installation.stack.airflow_client import AirflowClient
from modwatch.installation.stack.progress import Wait

AUDIT = "demo"
DAG = "audit_recall"

#: Number of labels, without confirmations.
LABELS = 600

#: Timeout of a step, and what the whole audit usually takes on two cores, in seconds.
_TIMEOUT, _USUAL = 180, 40


def make_audit(demo: Demo, client: AirflowClient) -> str:
    """Audit all days of the demo; return the state of the run, `success` or `failed`."""
    data = demo.data
    form = {
        "audit": AUDIT,
        "first": data.first_day.isoformat(),
        "last": data.last_day.isoformat(),
        "labels": LABELS,
        "service": f"Modwatch demo ({data.name})",
        "four_eyes": False,  # the demo has one user of Airflow
    }
    demo.narrator.say(f"Airflow runs {DAG} on {data.first_day} to {data.last_day}")
    client.unpause(DAG)
    run = client.trigger(DAG, form)
    wait = Wait(demo.narrator.say, usual=_USUAL)

    def tick(states: Mapping[str, str]) -> None:
        wait.show(lambda: f"{DAG}: {_current(states)}")

    note = "Enough labelling hours are available."
    client.answer(DAG, run, "approve", "Approve", note, timeout=_TIMEOUT, tick=tick)
    client.wait_for_task(DAG, run, "label", {"deferred"}, timeout=_TIMEOUT, tick=tick)
    with open_resources() as at:
        decisions = label_audit(at, create_auditors(at.database, at.lanes, data.ratings()))
    demo.narrator.say(f"simulated auditors labelled {decisions:,} comments")
    note = "The labels agree."
    client.answer(DAG, run, "sign_off", "Sign", note, timeout=_TIMEOUT, tick=tick)
    ended = {"success", "failed"}
    return client.wait_for_task(DAG, run, "track", ended, timeout=_TIMEOUT, tick=tick)


def _current(states: Mapping[str, str]) -> str:
    """Return what the run of an audit does, from the state of each task instance.

    >>> _current({"plan[-1]": "success", "approve[-1]": "running"})
    'approve is running'
    """
    running = sorted(name.partition("[")[0] for name, each in states.items() if each == "running")
    return f"{', '.join(running) or 'no task'} {'are' if len(running) > 1 else 'is'} running"
