"""Audits in an installation: from the lake to a signed result, and everything done out of order."""

import datetime
import json
import threading
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace

import pytest
from audit_path import STEPS
from small_audits import ADAPTIVE, REQUEST, begin, correct_some, label_everything, plan_audit
from sqlalchemy import select

from installation import MONDAY, TUESDAY
from modwatch.audits import files
from modwatch.audits import workflow as audit_module
from modwatch.audits.descriptions import describe_plan
from modwatch.audits.review_items import AuditProgress, audit_labels, audit_lock
from modwatch.audits.verify import verify
from modwatch.common.errors import (
    AuditCancelledError,
    AuditError,
    DatabaseError,
    DesignError,
    DsaReportError,
)
from modwatch.data.lake.files import Folder
from modwatch.installation.resources import Resources
from modwatch.pipeline import audit as audit_pipeline
from modwatch.review.people.accounts import create_moderator
from modwatch.review.queue import intake
from modwatch.review.queue.items import NewItem
from modwatch.review.tables import review_item
from modwatch.statistics.audit.plan import AuditPlan
from review.labelling import label_next

# MLflow 3.17 uses a loader strategy that SQLAlchemy 2.1 deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")

After = Callable[[str], Resources]


def test_every_step_may_be_taken_twice_from_the_plan_to_the_report(small):
    done = {}
    for name, step in STEPS.items():
        if name == "publish":
            done["sign_off"] = small.audit("small").chain
        done[name] = step(small)
        if name == "draw":
            label_everything(small)
            assert small.audit("small").progress() == AuditProgress(decided=120)
        if name == "estimate":
            with pytest.raises(AuditError, match="only signed off audits can be"):
                small.audit("small").publish()
        assert step(small) == done[name]
    assert (done["draw"], done["seal"], done["publish"]) == (120, 120, files.REPORT)
    actions = [event.action for event in small.audit_store.chain("small")]
    assert actions == [
        *("planned", "approved", "drawn", "labelled", "estimated", "signed_off", "published"),
    ]
    kept = small.audit_store.read("small")
    assert small.audit("small").verify() == verify(kept) == []
    result = json.loads(kept[files.RESULT])
    assert (result["comments"], result["labellers"]) == (800, 2)
    page = kept[files.REPORT].decode()
    assert "Signed off by fay" in page
    assert "an invented text" not in page


def test_an_adaptive_audit_draws_twice(small):
    begin(small, ADAPTIVE)
    with pytest.raises(AuditError, match="96 items are not decided"):
        small.audit("small").seal()
    label_everything(small)
    small.audit("small").seal()
    with pytest.raises(
        AuditError, match="1 of 2 stages are labelled, and the labelling was not stopped"
    ):
        small.audit("small").estimate()
    assert small.audit("small").draw() == 160
    label_everything(small)
    assert small.audit("small").seal() == 160
    with pytest.raises(AuditError, match="all stages"):
        small.audit("small").draw()
    result = small.audit("small").estimate()
    assert (result["stages"], result["stages_planned"], result["short_of_labels"]) == (2, 2, 0)
    assert small.audit("small").verify() == []


def test_an_adaptive_audit_may_be_stopped_after_its_first_stage(small):
    begin(small, ADAPTIVE)
    label_everything(small)
    assert small.audit("small").seal(stop=True, actor="eve", note="no time") == 96
    result = small.audit("small").estimate()
    assert (result["stages"], result["stages_planned"], result["drawn"]) == (1, 2, 96)
    recall = next(figure for figure in result["figures"] if figure["metric"] == "recall")
    assert recall["status"] == "ok"
    small.audit("small").sign_off(actor="fay")
    small.audit("small").publish()
    assert small.audit("small").verify() == []


def test_an_audit_stopped_halfway_is_reported_with_wider_intervals(after):
    small = after("draw")
    for reason in ("", " "):  # not silently
        with pytest.raises(
            AuditError, match="120 of 120 items are not decided; name the reason why"
        ):
            small.audit("small").seal(stop=True, actor="eve", note=reason)
    ann = create_moderator(small.database, "ann", "moderator")
    for _ in range(60):
        label_next(small.database, ann, 0)
    item = review_item.c
    with small.database.connect() as connection:
        rows = connection.execute(select(item.dt, item.comment_id, item.labels_wanted))
        wanted = {(day, name): number for day, name, number in rows}
    assert small.audit("small").seal(stop=True, note="no time") == 60
    result = small.audit("small").estimate()
    assert (result["labelled"], result["drawn"]) == (60, 120)
    several = [  # of those that one of two people labelled
        label
        for label in files.read_labels(small.audit_store.read("small")[files.labels_file(1)])
        if wanted[label.day, label.comment_id] == 2
    ]
    assert result["short_of_labels"] == len(several) > 0
    assert {figure["status"] for figure in result["figures"]} == {"ok", "insufficient"}


def test_a_step_that_was_killed_before_it_was_sealed_is_reported_and_taken_again(after):
    small = after("draw")
    begun = small.settings.home / "lake" / "_audits" / "small" / files.labels_file(1)
    begun.write_bytes(b"half of it")
    assert small.audit("small").verify() == [
        "labels-1.csv is not sealed: its step was started and not finished; run it again"
    ]
    label_everything(small)
    begun.write_bytes(files.write_labels(audit_labels(small.database, "small")))
    correct_some(small)  # nothing is sealed yet
    small.audit("small").seal()
    assert small.audit("small").verify() == []


def test_what_is_out_of_order_is_refused_by_name(small):
    with pytest.raises(AuditError, match="no audit is called 'small'; existing audits: none"):
        small.audit("small").draw()
    with pytest.raises(AuditError, match="no audit is called 'small'"):
        small.audit("small").approve(actor="eve")
    plan_audit(small, REQUEST, actor="eva")
    with pytest.raises(AuditError, match="cannot be drawn after it was planned"):
        small.audit("small").draw()
    assert small.audit("small").progress().items == 0


def test_a_cancelled_audit_leaves_its_evidence(after):
    small = after("draw")
    label_next(small.database, create_moderator(small.database, "ann", "moderator"))
    small.audit("small").cancel(actor="eva", note="the wrong period")
    assert small.audit("small").verify() == []
    assert small.audit("small").progress().left == 0
    assert small.audit_store.chain("small")[-1].note == "the wrong period"
    with pytest.raises(AuditError, match="was cancelled by 'eva'"):
        small.audit("small").estimate()


def test_what_was_changed_since_the_plan_stops_the_next_step(after):
    """The plan, the scores, or the result."""
    small = after("approve")
    folder = small.settings.home / "lake" / "_audits" / "small"
    plan = (folder / files.PLAN).read_text()
    (folder / files.PLAN).write_text(plan.replace('"level":0.95', '"level":0.96'))
    with pytest.raises(AuditError, match=r"plan\.json was changed after it was sealed"):
        small.audit("small").draw()
    (folder / files.PLAN).write_text(plan)
    rows = small.lake.table("scores", MONDAY, role="champion")
    small.lake.replace("scores", MONDAY, rows.slice(1).to_batches(), role="champion")
    with pytest.raises(AuditError, match="scores changed since"):
        small.audit("small").draw()


def test_a_result_that_was_tampered_with_is_not_signed(after):
    small = after("estimate")
    content = small.audit_store.read("small")[files.RESULT].replace(b"0", b"1", 1)
    (small.settings.home / "lake" / "_audits" / "small" / files.RESULT).write_bytes(content)
    with pytest.raises(AuditError, match=r"result\.json was changed after it was sealed"):
        small.audit("small").sign_off(actor="fay")


def test_impossible_requests_are_refused(small):
    day = datetime.timedelta(days=1)
    for changes, error, why in (
        ({"last": MONDAY - day}, AuditError, "ends on"),
        ({"first": MONDAY - 9 * day, "last": MONDAY - 7 * day}, AuditError, "there is no comment"),
        ({"labels": 9}, DesignError, "too few for"),
        ({"labels": 0}, DesignError, "too few"),
        ({"audit": "Über"}, AuditError, "the name of the audit may only contain"),
        ({"audit": "../x"}, AuditError, "the name of the audit may only contain"),
    ):
        with pytest.raises(error, match=why):
            plan_audit(small, replace(REQUEST, **changes), actor="eva")
    form = {"audit": "small", "first": "2026-01-05", "last": "2026-01-06", "labels": 120}
    for service in ("  ", "a\x00b"):  # before anybody labels
        with pytest.raises(DsaReportError, match="service"):
            audit_pipeline.plan(small, {**form, "service": service})
    assert small.audit_store.names() == []


def test_days_of_other_scores_are_refused(small):
    table = small.lake.table("scores", TUESDAY, role="champion")
    number = table.schema.get_field_index("model_version")
    other = table.set_column(number, table.schema.field(number), [["9"] * table.num_rows])
    small.lake.replace("scores", TUESDAY, other.to_batches(), role="champion")
    with pytest.raises(AuditError, match="model or its threshold changed within the period"):
        plan_audit(small, REQUEST, actor="eva")
    small.lake.replace("scores", TUESDAY, [], role="champion")
    with pytest.raises(AuditError, match=f"{TUESDAY} has 400 comments and 0 scores"):
        plan_audit(small, REQUEST, actor="eva")


def test_a_day_that_was_never_scored_is_refused_or_named(small):
    wednesday, longer = "2026-01-07", replace(REQUEST, last=TUESDAY + datetime.timedelta(days=1))
    with pytest.raises(AuditError, match=rf"has no scores on 1 day \({wednesday}\)"):
        plan_audit(small, longer, actor="eva")
    assert small.audit_store.names() == []
    allowed = replace(longer, allow_missing_days=True)
    begin(small, allowed)
    audit = small.audit("small")
    sentence = f"Not covered: 1 day ({wednesday}) between {MONDAY} and {wednesday} had no scores"
    assert sentence in describe_plan(audit.plan)
    assert plan_audit(small, allowed, actor="eva") == audit.plan
    label_everything(small)
    for name in ("seal", "estimate", "sign_off", "publish"):
        STEPS[name](small)
    folder = small.audit_store.read("small")
    assert verify(folder) == []
    assert folder[files.REPORT].decode().count(sentence) == 1


def test_planned_again_under_the_same_name_it_must_be_the_same(small):
    first = plan_audit(small, REQUEST, actor="eva")
    assert plan_audit(small, REQUEST, actor="eva") == first
    with pytest.raises(AuditError, match="planned by another request"):
        plan_audit(small, replace(REQUEST, last=MONDAY), actor="eva")
    assert AuditPlan.from_json(first.to_json()) == first


def test_no_two_processes_take_a_step_at_once(after):
    small = after("draw")
    with audit_lock(small.database, "small"):
        other = threading.Thread(target=small.audit("small").cancel, kwargs={"actor": "eva"})
        other.start()
        other.join(0.2)
        assert small.audit_store.chain("small")[-1].action == "drawn"
    other.join(30)
    assert small.audit_store.chain("small")[-1].action == "cancelled"


def test_what_is_drawn_and_not_queued_is_not_sealed(after, monkeypatch):
    small = after("approve")
    with monkeypatch.context() as broken:
        broken.setattr(audit_module, "enqueue_audit", lambda *_, **__: None)
        small.audit("small").draw()
    with pytest.raises(AuditError, match="120 comments are drawn and 0 of them queued; draw"):
        small.audit("small").seal(stop=True, note="no time")
    assert small.audit("small").draw() == 120
    assert small.audit("small").progress().waiting == 120


def test_a_stop_that_fails_gives_nothing_up(after, monkeypatch):
    small = after("draw")

    def down(*_: object) -> None:
        assert small.audit("small").progress().waiting == 120  # for everybody else
        raise DatabaseError("PostgreSQL is down")

    with monkeypatch.context() as broken:
        broken.setattr(audit_module, "refuse_conflicts", down)
        with pytest.raises(DatabaseError):
            small.audit("small").seal(stop=True, actor="eve", note="no time")
    assert small.audit("small").progress().waiting == 120
    with monkeypatch.context() as broken:  # killed before PostgreSQL had it
        broken.setattr(audit_module, "withdrawing", lambda *_: nullcontext())
        small.audit("small").seal(stop=True, actor="eve", note="no time")
    sealed = small.audit_store.chain("small")[-1]
    assert (sealed.actor, sealed.note) == (
        "eve",
        "stopped before all were labelled: no time (120 of 120 items are not decided)",
    )
    assert small.audit("small").progress().waiting == 120
    assert small.audit("small").seal(1) == 0  # the next call withdraws
    assert small.audit("small").progress().withdrawn == 120


def test_a_stop_withdraws_what_waits(after):
    small = after("draw")
    small.audit("small").seal(stop=True, actor="eve", note="no time")
    assert small.audit("small").progress().withdrawn == 120


def test_what_was_given_up_half_is_given_up_whole_by_the_next_step(after, monkeypatch):
    small = after("draw")

    def die(_: audit_module.Audit) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(audit_module.Audit, "stamp", die)
        with pytest.raises(KeyboardInterrupt):
            small.audit("small").cancel(actor="eve")
    assert small.audit("small").progress().waiting == 120
    with pytest.raises(AuditCancelledError):
        small.audit("small").labelling(1)
    assert small.audit("small").progress().withdrawn == 120


def test_a_broken_audit_keeps_no_other_from_publication(after, caplog):
    small = after("sign_off")
    Folder(root=small.audit_store.root, holds="evidence").write("broken/chain.jsonl", b"{}\n")
    assert small.audit("small").publish() == files.REPORT
    assert "The trend leaves out audit broken" in caplog.text


def test_labels_of_those_who_moderated_the_comment_are_refused_and_named(after):
    small = after("label")
    label = next(row for row in audit_labels(small.database, "small") if row.labeller == "ann")
    item = NewItem(
        comment_id=label.comment_id, text="a text", reason="uncertainty", stratum=0, rank=1,
        inclusion_probability=1.0, review_score=0.2, prob=0.4, uncertainty=0.24, model_version="3",
    )  # fmt: skip
    intake.enqueue(small.database, [item], label.day)
    label_next(small.database, create_moderator(small.database, "ann", "moderator"))
    with pytest.raises(
        AuditError, match="1 label is by people who decided the comment as moderators"
    ):
        small.audit("small").seal()
    assert small.audit("small").conflicting_labels() == [label]
