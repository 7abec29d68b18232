"""Audits in an installation: from the lake to a signed result, and everything done out of order."""

import datetime
import json
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
import small_audits
from databases import unguarded
from small_audits import plan_audit
from sqlalchemy import select, text

from installation import MONDAY, TUESDAY, Installation, copy_home, known_labels
from modwatch.audits import files
from modwatch.audits import workflow as audit_module
from modwatch.audits.descriptions import describe_plan
from modwatch.audits.request import AuditRequest
from modwatch.audits.review_items import AuditProgress, audit_lock
from modwatch.audits.sources import current_labels
from modwatch.audits.verify import verify
from modwatch.common.errors import (
    AuditCancelledError,
    AuditError,
    DatabaseError,
    DesignError,
    DsaReportError,
)
from modwatch.data.lake.files import Folder
from modwatch.installation.resources import Resources, open_resources
from modwatch.pipeline import audit as audit_pipeline
from modwatch.review.people.accounts import create_moderator
from modwatch.review.queue import intake
from modwatch.review.queue.items import NewItem
from modwatch.review.tables import review_item
from modwatch.statistics.audit.plan import AuditPlan
from review.labelling import label_all, label_next

# MLflow 3.17 uses a loader strategy that SQLAlchemy 2.1 deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")

REQUEST = AuditRequest(audit="january", first=MONDAY, last=TUESDAY, labels=120)


@pytest.fixture
def opened(
    two_scored_days: Installation, queue_url: str, tmp_path: Path, same_draws: None
) -> Iterator[Resources]:
    """A copy of the two days, with a queue in which nothing waits."""
    copied = copy_home(two_scored_days.home, tmp_path / "home")
    home = two_scored_days.but(home=copied, database_url=queue_url)
    with open_resources(home.settings) as resources:
        yield resources


def label_everything(opened: Resources) -> None:
    truth = dict(known_labels(opened.lake))
    for name in ("ann", "ben"):
        label_all(
            opened.database, create_moderator(opened.database, name, "moderator"), truth.__getitem__
        )


def to_the_labels(opened: Resources, request: AuditRequest = REQUEST) -> int:
    plan_audit(opened, request, actor="eva")
    opened.audit(request.audit).approve(actor="eve")
    return opened.audit(request.audit).draw()


def test_from_the_plan_to_a_signed_result(opened: Resources) -> None:
    assert to_the_labels(opened) == 120
    label_everything(opened)
    assert opened.audit("january").progress() == AuditProgress(decided=120)
    assert opened.audit("january").seal() == 120
    result = opened.audit("january").estimate()
    with pytest.raises(AuditError, match="only signed off audits can be"):
        opened.audit("january").publish()
    opened.audit("january").sign_off(actor="fay")
    for _ in range(2):
        assert opened.audit("january").publish(service="Forum") == "report.html"
    assert opened.audit("january").verify() == []
    kept = opened.audit_store.read("january")
    assert json.loads(kept[files.RESULT]) == result
    assert verify(kept) == []
    assert result["comments"] == sum(opened.lake.count("scores", day) for day in (MONDAY, TUESDAY))
    assert result["labellers"] == 2
    page = kept[files.REPORT].decode()
    assert "Signed off by fay" in page
    texts = opened.lake.table("comments", MONDAY, columns=["text"]).column("text").to_pylist()
    assert not [1 for words in texts if len(words) > 8 and words in page]


def test_its_interval_holds_the_planted_truth(opened: Resources) -> None:
    to_the_labels(opened)
    label_everything(opened)
    opened.audit("january").seal()
    result = opened.audit("january").estimate()
    truth, missed, unflagged = dict(known_labels(opened.lake)), 0, 0
    for day in (MONDAY, TUESDAY):
        for row in opened.lake.table("scores", day, columns=["comment_id", "flagged"]).to_pylist():
            if not row["flagged"]:
                unflagged += 1
                missed += truth[row["comment_id"]]
    figure = next(f for f in result["figures"] if f["metric"] == "prevalence_unflagged")
    assert figure["low"] <= missed / unflagged <= figure["high"]


def test_an_adaptive_audit_draws_twice(opened: Resources) -> None:
    request = replace(REQUEST, labels=160, second_stage_share=0.4)
    assert to_the_labels(opened, request) == 96
    with pytest.raises(AuditError, match="96 items are not decided"):
        opened.audit("january").seal()
    label_everything(opened)
    opened.audit("january").seal()
    with pytest.raises(
        AuditError, match="1 of 2 stages are labelled, and the labelling was not stopped"
    ):
        opened.audit("january").estimate()
    assert opened.audit("january").draw() == 160
    label_everything(opened)
    assert opened.audit("january").seal() == 160
    with pytest.raises(AuditError, match="all stages"):
        opened.audit("january").draw()
    result = opened.audit("january").estimate()
    assert (result["stages"], result["stages_planned"], result["short_of_labels"]) == (2, 2, 0)
    opened.audit("january").sign_off(actor="fay")
    assert opened.audit("january").verify() == []


def test_a_labelling_is_not_stopped_silently(small: Resources) -> None:
    small_audits.begin(small)
    for reason in ("", " "):
        with pytest.raises(
            AuditError, match="120 of 120 items are not decided; name the reason why"
        ):
            small.audit("small").seal(stop=True, actor="eve", note=reason)
    assert small.audit("small").chain[-1].action == "drawn"


def test_an_adaptive_audit_may_be_stopped_after_its_first_stage(small: Resources) -> None:
    small_audits.begin(small, small_audits.ADAPTIVE)
    small_audits.label_everything(small)
    assert small.audit("small").seal(stop=True, actor="eve", note="no time") == 96
    result = small.audit("small").estimate()
    assert (result["stages"], result["stages_planned"], result["drawn"]) == (1, 2, 96)
    recall = next(figure for figure in result["figures"] if figure["metric"] == "recall")
    assert recall["status"] == "ok"
    small.audit("small").sign_off(actor="fay")
    small.audit("small").publish()
    assert small.audit("small").verify() == []


def test_a_step_that_was_killed_before_it_was_sealed_is_reported_and_taken_again(
    small: Resources,
) -> None:
    small_audits.begin(small)
    begun = small.settings.home / "lake" / "_audits" / "small" / files.labels_file(1)
    begun.write_bytes(b"half of it")
    assert small.audit("small").verify() == [
        "labels-1.csv is not sealed: its step was started and not finished; run it again"
    ]
    small_audits.label_everything(small)
    begun.write_bytes(files.write_labels(current_labels(small.database, "small")))
    small_audits.correct_some(small)  # nothing is sealed yet
    small.audit("small").seal()
    assert small.audit("small").verify() == []


def test_every_step_may_be_taken_twice(opened: Resources) -> None:
    for _ in range(2):
        plan_audit(opened, REQUEST, actor="eva")
    for _ in range(2):
        opened.audit("january").approve(actor="eve")
    assert [opened.audit("january").draw() for _ in range(2)] == [120, 120]
    label_everything(opened)
    assert [opened.audit("january").seal() for _ in range(2)] == [120, 120]
    first, again = (opened.audit("january").estimate() for _ in range(2))
    assert first == again
    for _ in range(2):
        opened.audit("january").sign_off(actor="fay")
    actions = [event.action for event in opened.audit_store.chain("january")]
    assert actions == ["planned", "approved", "drawn", "labelled", "estimated", "signed_off"]


def test_what_is_out_of_order_is_refused_by_name(opened: Resources) -> None:
    with pytest.raises(AuditError, match="no audit is called 'january'; existing audits: none"):
        opened.audit("january").draw()
    with pytest.raises(AuditError, match="no audit is called 'january'"):
        opened.audit("january").approve(actor="eve")
    plan_audit(opened, REQUEST, actor="eva")
    with pytest.raises(AuditError, match="cannot be drawn after it was planned"):
        opened.audit("january").draw()
    assert opened.audit("january").progress().items == 0


def test_a_cancelled_audit_leaves_its_evidence(opened: Resources) -> None:
    to_the_labels(opened)
    label_next(opened.database, create_moderator(opened.database, "ann", "moderator"))
    opened.audit("january").cancel(actor="eva", note="the wrong period")
    assert opened.audit("january").verify() == []
    assert opened.audit("january").progress().left == 0
    assert opened.audit_store.chain("january")[-1].note == "the wrong period"
    with pytest.raises(AuditError, match="was cancelled by 'eva'"):
        opened.audit("january").estimate()


def test_an_audit_stopped_halfway_is_reported_with_wider_intervals(opened: Resources) -> None:
    to_the_labels(opened)
    truth, ann = (
        dict(known_labels(opened.lake)),
        create_moderator(opened.database, "ann", "moderator"),
    )
    for _ in range(60):
        label_next(opened.database, ann, 0)
    del truth
    item = review_item.c
    with opened.database.connect() as connection:
        rows = connection.execute(select(item.dt, item.comment_id, item.labels_wanted))
        wanted = {(day, name): number for day, name, number in rows}
    labelled = opened.audit("january").seal(stop=True, note="no time")
    assert 40 <= labelled <= 60  # the others wait for a second person
    result = opened.audit("january").estimate()
    assert result["labelled"] == labelled < result["drawn"] == 120
    several = [  # of those that one of two people labelled
        label
        for label in files.read_labels(opened.audit_store.read("january")[files.labels_file(1)])
        if wanted[label.day, label.comment_id] == 2
    ]
    assert result["short_of_labels"] == len(several) > 0
    assert {figure["status"] for figure in result["figures"]} == {"ok", "insufficient"}


def test_two_audits_at_once_do_not_disturb_each_other(opened: Resources) -> None:
    other = replace(REQUEST, audit="other", labels=90)
    to_the_labels(opened)
    to_the_labels(opened, other)
    truth = dict(known_labels(opened.lake))
    for name in ("ann", "ben", "cem", "dan"):
        label_all(
            opened.database, create_moderator(opened.database, name, "moderator"), truth.__getitem__
        )
    for name, labels in (("january", 120), ("other", 90)):
        assert opened.audit(name).seal() == labels
        opened.audit(name).estimate()
        assert opened.audit(name).verify() == []


def test_a_label_that_changes_after_it_was_sealed_is_found(opened: Resources) -> None:
    to_the_labels(opened)
    label_everything(opened)
    opened.audit("january").seal()
    with unguarded(opened.database) as connection:
        connection.execute(text("UPDATE decision SET label = 1 - label WHERE id = 7"))
    assert opened.audit("january").verify() == [
        "the labels of 1 comment were changed in the decision log after they were sealed"
    ]


def test_scores_that_change_after_the_plan_are_found(opened: Resources) -> None:
    plan_audit(opened, REQUEST, actor="eva")
    opened.audit("january").approve(actor="eve")
    rows = opened.lake.table("scores", MONDAY, role="champion")
    opened.lake.replace("scores", MONDAY, rows.slice(1).to_batches(), role="champion")
    with pytest.raises(AuditError, match="scores changed since"):
        opened.audit("january").draw()


def test_whoever_labelled_does_not_sign(opened: Resources) -> None:
    to_the_labels(opened)
    label_everything(opened)
    opened.audit("january").seal()
    opened.audit("january").estimate()
    with pytest.raises(AuditError, match="'ann' labelled for it and cannot sign it off"):
        opened.audit("january").sign_off(actor="ann")


def test_a_result_that_was_tampered_with_is_not_signed(opened: Resources) -> None:
    to_the_labels(opened)
    label_everything(opened)
    opened.audit("january").seal()
    opened.audit("january").estimate()
    kept = opened.audit_store
    content = kept.read("january")[files.RESULT].replace(b"0", b"1", 1)
    (opened.settings.home / "lake" / "_audits" / "january" / files.RESULT).write_bytes(content)
    with pytest.raises(AuditError, match=r"result\.json was changed after it was sealed"):
        opened.audit("january").sign_off(actor="fay")


def test_an_edited_plan_draws_nothing(opened: Resources) -> None:
    plan_audit(opened, REQUEST, actor="eva")
    opened.audit("january").approve(actor="eve")
    path = opened.settings.home / "lake" / "_audits" / "january" / files.PLAN
    path.write_text(path.read_text().replace('"level":0.95', '"level":0.96'))
    with pytest.raises(AuditError, match=r"plan\.json was changed after it was sealed"):
        opened.audit("january").draw()


@pytest.mark.parametrize(
    ("changes", "error", "why"),
    [
        ({"last": MONDAY - datetime.timedelta(days=1)}, AuditError, "ends on"),
        (
            {"first": MONDAY - datetime.timedelta(days=9), "last": MONDAY - datetime.timedelta(7)},
            AuditError,
            "there is no comment",
        ),
        ({"labels": 9}, DesignError, "too few for"),
        ({"audit": "Über"}, AuditError, "the name of the audit may only contain"),
        ({"audit": "../x"}, AuditError, "the name of the audit may only contain"),
        ({"labels": 0}, DesignError, "too few"),
    ],
)
def test_impossible_requests_are_refused(
    opened: Resources, changes: dict[str, object], error: type[Exception], why: str
) -> None:
    with pytest.raises(error, match=why):
        plan_audit(opened, replace(REQUEST, **changes), actor="eva")
    assert opened.audit_store.names() == []


def test_a_day_without_scores_is_named(opened: Resources) -> None:
    opened.lake.replace("scores", TUESDAY, [], role="champion")
    with pytest.raises(AuditError, match=f"{TUESDAY} has [0-9]+ comments and 0 scores"):
        plan_audit(opened, REQUEST, actor="eva")


def test_a_day_that_was_never_scored_is_refused_or_named(opened: Resources) -> None:
    wednesday, longer = "2026-01-07", replace(REQUEST, last=TUESDAY + datetime.timedelta(days=1))
    with pytest.raises(AuditError, match=rf"has no scores on 1 day \({wednesday}\)"):
        plan_audit(opened, longer, actor="eva")
    assert opened.audit_store.names() == []
    allowed = replace(longer, allow_missing_days=True)
    to_the_labels(opened, allowed)
    audit = opened.audit("january")
    sentence = f"Not covered: 1 day ({wednesday}) between {MONDAY} and {wednesday} had no scores"
    assert sentence in describe_plan(audit.plan)
    assert plan_audit(opened, allowed, actor="eva") == audit.plan
    label_everything(opened)
    opened.audit("january").seal()
    opened.audit("january").estimate()
    opened.audit("january").sign_off(actor="fay")
    report = opened.audit_store.read("january")
    assert verify(report) == []
    opened.audit("january").publish(service="Forum")
    page = opened.audit_store.read("january")["report.html"].decode()
    assert page.count(sentence) == 1


def test_another_model_in_mid_period_is_refused(opened: Resources) -> None:
    table = opened.lake.table("scores", TUESDAY, role="champion")
    number = table.schema.get_field_index("model_version")
    other = table.set_column(number, table.schema.field(number), [["9"] * table.num_rows])
    opened.lake.replace("scores", TUESDAY, other.to_batches(), role="champion")
    with pytest.raises(AuditError, match="model or its threshold changed within the period"):
        plan_audit(opened, REQUEST, actor="eva")


def test_planned_again_under_the_same_name_it_must_be_the_same(opened: Resources) -> None:
    first = plan_audit(opened, REQUEST, actor="eva")
    assert plan_audit(opened, REQUEST, actor="eva") == first
    with pytest.raises(AuditError, match="planned by another request"):
        plan_audit(opened, replace(REQUEST, last=MONDAY), actor="eva")
    assert AuditPlan.from_json(first.to_json()) == first


def test_no_two_processes_take_a_step_at_once(small: Resources) -> None:
    small_audits.begin(small)
    with audit_lock(small.database, "small"):
        other = threading.Thread(target=small.audit("small").cancel, kwargs={"actor": "eva"})
        other.start()
        other.join(0.5)
        assert small.audit_store.chain("small")[-1].action == "drawn"
    other.join(30)
    assert small.audit_store.chain("small")[-1].action == "cancelled"


def test_what_is_drawn_and_not_queued_is_not_sealed(
    small: Resources, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan_audit(small, small_audits.REQUEST, actor="eva")
    small.audit("small").approve(actor="eve")
    with monkeypatch.context() as broken:
        broken.setattr(audit_module, "enqueue_audit", lambda *_, **__: None)
        small.audit("small").draw()
    with pytest.raises(AuditError, match="120 comments are drawn and 0 of them queued; draw"):
        small.audit("small").seal(stop=True, note="no time")
    assert small.audit("small").draw() == 120
    assert small.audit("small").progress().waiting == 120


def test_a_stop_that_fails_gives_nothing_up(
    small: Resources, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_audits.begin(small)

    def down(*_: object) -> None:
        assert small.audit("small").progress().waiting == 120  # for everybody else
        raise DatabaseError("PostgreSQL is down")

    with monkeypatch.context() as broken:
        broken.setattr(audit_module, "refuse_conflicts", down)
        with pytest.raises(DatabaseError):
            small.audit("small").seal(stop=True, actor="eve", note="no time")
    assert small.audit("small").progress().waiting == 120
    small.audit("small").seal(stop=True, actor="eve", note="no time")
    sealed = small.audit_store.chain("small")[-1]
    assert (sealed.actor, sealed.note) == (
        "eve",
        "stopped before all were labelled: no time (120 of 120 items are not decided)",
    )
    assert small.audit("small").progress().withdrawn == 120


def test_what_was_stopped_and_not_withdrawn_is_withdrawn_by_the_next_call(
    small: Resources, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_audits.begin(small)
    with monkeypatch.context() as broken:  # killed before PostgreSQL had it
        broken.setattr(audit_module, "withdrawing", lambda *_: nullcontext())
        small.audit("small").seal(stop=True, actor="eve", note="no time")
    assert small.audit("small").progress().waiting == 120
    assert small.audit("small").seal(1) == 0
    assert small.audit("small").progress().withdrawn == 120


def test_what_was_given_up_half_is_given_up_whole_by_the_next_step(
    small: Resources, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_audits.begin(small)

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


def test_a_broken_audit_keeps_no_other_from_publication(
    small: Resources, caplog: pytest.LogCaptureFixture
) -> None:
    Folder(root=small.audit_store.root, holds="evidence").write("broken/chain.jsonl", b"{}\n")
    small_audits.seal(small)
    small.audit("small").estimate()
    small.audit("small").sign_off(actor="fay")
    assert small.audit("small").publish() == files.REPORT
    assert "The trend leaves out audit broken" in caplog.text


def test_an_unusable_service_is_refused_before_anybody_labels(small: Resources) -> None:
    form = {"audit": "small", "first": "2026-01-05", "last": "2026-01-06", "labels": 120}
    for service in ("  ", "a\x00b"):
        with pytest.raises(DsaReportError, match="service"):
            audit_pipeline.plan(small, {**form, "service": service})
    assert small.audit_store.names() == []


def test_labels_of_those_who_moderated_the_comment_are_refused_and_named(small: Resources) -> None:
    small_audits.begin(small)
    small_audits.label_everything(small)
    label = next(row for row in current_labels(small.database, "small") if row.labeller == "ann")
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
