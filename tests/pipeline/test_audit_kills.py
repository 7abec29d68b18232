"""Audits that are killed, and audits that are given up, at every point."""

import json

import pytest
from audit_kills import killed_after
from audit_path import FORM, STEPS, actions, chain, go_to, killed_in

from modwatch.audits.review_items import AuditProgress
from modwatch.audits.workflow import Audit
from modwatch.common.errors import AuditCancelledError, AuditError
from modwatch.installation.resources import Resources
from modwatch.pipeline import audit as path

# MLflow 3.17 uses a loader strategy that SQLAlchemy 2.1 deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")


@pytest.mark.parametrize(
    ("step", "writes", "sealed"),
    [
        ("draw", 1, False),  # the sample is there, not what it stands for
        pytest.param("draw", 3, True, marks=pytest.mark.soak),
        pytest.param("publish", 1, False, marks=pytest.mark.soak),
        pytest.param("publish", 4, True, marks=pytest.mark.soak),
    ],
)
def test_a_step_that_is_killed_is_taken_again(small, small_home, step, writes, sealed):
    names = list(STEPS)
    go_to(small, names[names.index(step) - 1])
    arguments = (1,) if step == "draw" else ()
    before = actions(small)
    assert killed_after(writes, step, *arguments, env=small_home.env)
    assert (actions(small) != before) == sealed
    if step == "publish" and not sealed:
        STEPS["publish"](small)  # with the files for the DSA, of which the killed one knew nothing
    answer = small.audit("small").publish() if step == "publish" else small.audit("small").draw(1)
    assert answer == ("report.html" if step == "publish" else 120)
    assert actions(small) == [*before, "published" if step == "publish" else "drawn"]
    assert small.audit("small").verify() == []
    assert small.audit("small").progress().items == 120


def test_a_draw_that_was_sealed_and_not_queued_is_queued(small, monkeypatch):
    go_to(small, "approve")
    with killed_in("enqueue_audit", monkeypatch):
        small.audit("small").draw(1)
    assert actions(small)[-1] == "drawn"
    assert small.audit("small").progress().items == 0
    assert small.audit("small").draw(1) == 120
    assert small.audit("small").progress() == AuditProgress(waiting=120)


CANCELLED = (
    lambda at: at.audit("small").approve(actor="eve"),
    lambda at: at.audit("small").draw(1),
    lambda at: at.audit("small").labelling(1),
    lambda at: at.audit("small").seal(1),
    lambda at: at.audit("small").draw(2),
    lambda at: at.audit("small").seal(2, stop=True, note="no time"),
    lambda at: path.ask(at, "small", "approved", page="http://airflow"),
    lambda at: path.remind(at, "small", 1, 1),
    lambda at: at.audit("small").estimate(),
    lambda at: at.audit("small").sign_off(actor="eva"),
    lambda at: at.audit("small").publish(),
    lambda at: path.track(at, "small"),
    lambda at: at.audit("small").done("approved"),
)


@pytest.mark.parametrize("last", ["plan", "draw"])
def test_an_audit_that_was_given_up_goes_nowhere_and_its_evidence_stays(small, last):
    go_to(small, last)
    kept = small.audit_store.read("small")
    for actor in ("eve", "another"):
        small.audit("small").cancel(actor=actor, note="not now")
    assert (chain(small)[-1].actor, chain(small)[-1].note) == ("eve", "not now")
    for step in CANCELLED:
        with pytest.raises(AuditCancelledError, match="audit 'small' was cancelled by 'eve'"):
            step(small)
    assert path.plan(small, FORM).name == "small"
    now = small.audit_store.read("small")
    growing = {"chain.jsonl", "notes.json"}
    assert {name: now[name] for name in kept if name not in growing} == {
        name: content for name, content in kept.items() if name not in growing
    }
    assert now["chain.jsonl"].startswith(kept["chain.jsonl"])
    notes = json.loads(kept.get("notes.json", b"{}"))
    assert notes.items() <= json.loads(now["notes.json"]).items()
    assert small.audit("small").progress().left == 0


def test_what_is_published_cannot_be_given_up(small):
    go_to(small, "publish")
    with pytest.raises(AuditError, match="cannot be cancelled after it was published"):
        small.audit("small").cancel(actor="eve")
    assert small.audit("small").publish() == "report.html"


def test_what_is_not_there_is_not_given_up(small):
    with pytest.raises(AuditError, match="has no plan"):
        small.audit("small").cancel(actor="eve")


def kill_after_recording(small: Resources, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cancel in a process that dies after the step is recorded, and before the rest is stored."""

    def die(_: Audit) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(Audit, "stamp", die)
        with pytest.raises(KeyboardInterrupt):
            small.audit("small").cancel(actor="eve")


def test_giving_up_that_was_killed_leaves_nothing_in_the_queue_when_it_comes_again(
    small, monkeypatch
):
    go_to(small, "draw")
    kill_after_recording(small, monkeypatch)
    assert small.audit("small").progress().waiting == 120
    small.audit("small").cancel(actor="eve")
    assert small.audit("small").progress() == AuditProgress(withdrawn=120)
    assert actions(small).count("cancelled") == 1
