"""An audit of the small lake, step by step, as the DAG takes it."""

import datetime
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from installation import MONDAY, TUESDAY, queue_rows
from small_audits import label_everything

from modwatch.audit.evidence import Event
from modwatch.audits import auditing
from modwatch.pipeline import audit as path
from modwatch.resources import Resources

FORM = {
    "audit": "small",
    "first": str(MONDAY),
    "last": str(TUESDAY),
    "labels": 120,
    "several_labels_share": 0.1,
    "seed": "s",
    "origin": "run 1",
}
ADAPTIVE = {**FORM, "labels": 160, "second_stage_share": 0.4}


Step = Callable[[Resources], Any]


#: An audit of one stage, step by step; people label between `draw` and `seal`.
STEPS: dict[str, Step] = {
    "plan": lambda at: path.plan(at, FORM, actor="eva"),
    "approve": lambda at: path.approve(at, "small", actor="eve", note="as agreed"),
    "draw": lambda at: path.draw(at, "small", 1),
    "seal": lambda at: path.seal(at, "small", 1),
    "estimate": lambda at: path.estimate(at, "small"),
    "sign_off": lambda at: path.sign_off(at, "small", actor="eva"),
    "publish": lambda at: path.publish(at, "small", service="Example Forum"),
}
AGAIN: dict[str, Step] = {
    "draw_again": lambda at: path.draw(at, "small", 2),
    "seal_again": lambda at: path.seal(at, "small", 2),
}


def go_to(at: Resources, last: str) -> None:
    """Carry the audit out up to a step, that one included."""
    for name, step in STEPS.items():
        step(at)
        if name == "draw" and last != "draw":
            label_everything(at)
        if name == last:
            return


def adaptive() -> dict[str, Step]:
    """Return the steps of an audit of two stages; people label as soon as something is drawn."""

    def drawn(step: Step) -> Step:
        return lambda at: (step(at), label_everything(at))[0]

    steps = {**STEPS, "plan": lambda at: path.plan(at, ADAPTIVE, actor="eva")}
    names = ["plan", "approve", "draw", "seal", "draw_again", "seal_again"]
    names += ["estimate", "sign_off", "publish"]
    both = {**steps, **AGAIN}
    return {name: drawn(both[name]) if "draw" in name else both[name] for name in names}


def picture(at: Resources) -> tuple[dict[str, bytes], list[dict[str, object]]]:
    """Return the evidence and the queue."""
    return auditing.store(at).read("small"), queue_rows(at.database)


def chain(at: Resources) -> list[Event]:
    return auditing.store(at).chain("small")


def actions(at: Resources) -> list[str]:
    return [event.action for event in chain(at)]


def behind(hours: float) -> type[datetime.datetime]:
    """Return a clock that is late."""

    class Behind(datetime.datetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> datetime.datetime:
            return datetime.datetime.now(tz) - datetime.timedelta(hours=hours)

    return Behind


@contextmanager
def killed_in(function: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let what the block does die, as a process that is killed, in a function of `auditing`."""

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(auditing, function, die)
        with pytest.raises(KeyboardInterrupt):
            yield
