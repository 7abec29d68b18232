"""An audit of the small lake, step by step, as the DAG takes it."""

import datetime
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from small_audits import label_everything

from installation import MONDAY, TUESDAY, queue_rows
from modwatch.audits import workflow as audit_module
from modwatch.audits.evidence import Event
from modwatch.audits.workflow import Audit
from modwatch.installation.resources import Resources
from modwatch.pipeline import audit as path

FORM = {
    "audit": "small",
    "first": str(MONDAY),
    "last": str(TUESDAY),
    "labels": 120,
    "confirmed_share": 0.1,
    "origin": "run 1",
}
ADAPTIVE = {**FORM, "labels": 160, "second_stage_share": 0.4}


Step = Callable[[Resources], Any]


def recall_status(audit: Audit) -> str:
    """Estimate; return the status of recall."""
    metrics = audit.estimate()["figures"]
    return next(metric["status"] for metric in metrics if metric["metric"] == "recall")


#: An audit of one stage, step by step; people label between `draw` and `seal`.
STEPS: dict[str, Step] = {
    "plan": lambda at: path.plan(at, FORM, actor="eva").name,
    "approve": lambda at: at.audit("small").approve(actor="eve", note="as agreed"),
    "draw": lambda at: at.audit("small").draw(1),
    "seal": lambda at: at.audit("small").seal(1),
    "estimate": lambda at: recall_status(at.audit("small")),
    "sign_off": lambda at: at.audit("small").sign_off(actor="fay"),
    "publish": lambda at: at.audit("small").publish(service="Example Forum"),
}
AGAIN: dict[str, Step] = {
    "draw_again": lambda at: at.audit("small").draw(2),
    "seal_again": lambda at: at.audit("small").seal(2),
}


def go_to(resources: Resources, last: str) -> None:
    """Carry the audit out up to a step, that one included."""
    for name, step in STEPS.items():
        step(resources)
        if name == "draw" and last != "draw":
            label_everything(resources)
        if name == last:
            return


def adaptive() -> dict[str, Step]:
    """Return the steps of an audit of two stages; people label as soon as something is drawn."""

    def drawn(step: Step) -> Step:
        return lambda at: (step(at), label_everything(at))[0]

    steps = {**STEPS, "plan": lambda at: path.plan(at, ADAPTIVE, actor="eva").name}
    names = ["plan", "approve", "draw", "seal", "draw_again", "seal_again"]
    names += ["estimate", "sign_off", "publish"]
    both = {**steps, **AGAIN}
    return {name: drawn(both[name]) if "draw" in name else both[name] for name in names}


def picture(resources: Resources) -> tuple[dict[str, bytes], list[dict[str, object]]]:
    """Return the evidence and the queue."""
    return resources.audit_store.read("small"), queue_rows(resources.database)


def chain(resources: Resources) -> list[Event]:
    return resources.audit_store.chain("small")


def actions(resources: Resources) -> list[str]:
    return [event.action for event in chain(resources)]


def behind(hours: float) -> type[datetime.datetime]:
    """Return a clock that is late."""

    class Behind(datetime.datetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> datetime.datetime:
            return datetime.datetime.now(tz) - datetime.timedelta(hours=hours)

    return Behind


@contextmanager
def killed_in(function: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let what the block does die, as a process that is killed, in what `Audit` calls."""

    def die(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(audit_module, function, die)
        with pytest.raises(KeyboardInterrupt):
            yield
