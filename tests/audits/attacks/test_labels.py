"""Labels and comments left out, added or exchanged; the attacker makes everything else fit."""

import json
from dataclasses import replace

import pytest
from audit_forger import finders, forge, problems, remarks, turned_round, without_triggers
from small_audits import label_everything

from modwatch.audits import files
from modwatch.audits.evidence import STOPPED, Event
from modwatch.audits.seeds import LOG, NUMBER
from modwatch.common.errors import AuditError
from modwatch.installation.resources import Resources
from modwatch.review.log.verification import verify_log
from modwatch.statistics.audit.labels import key_of

# MLflow 3.17 uses a loader strategy that SQLAlchemy 2.1 deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")


def recall(resources: Resources) -> float:
    figures = json.loads(resources.audit_store.read("small")[files.RESULT])["figures"]
    return float(next(figure["value"] for figure in figures if figure["metric"] == "recall"))


def without_missed(resources: Resources, outcome: str = "withdrawn") -> dict[str, bytes]:
    """Return labels without those of five missed comments, and outcomes that fit."""
    folder = resources.audit_store.read("small")
    labels = files.read_labels(folder[files.labels_file(1)])
    unflagged = {
        key_of(comment)
        for comment in files.read_sample(folder[files.sample_file(1)])
        if comment.score <= 0.5
    }
    missed = sorted({key_of(item) for item in labels if item.label and key_of(item) in unflagged})
    gone = {*missed[:5]}
    assert len(gone) == 5
    result = [
        replace(item, outcome=outcome, labels=0) if key_of(item) in gone else item
        for item in files.read_outcomes(folder[files.outcomes_file(1)])
    ]
    return {
        files.labels_file(1): files.write_labels(
            [item for item in labels if key_of(item) not in gone]
        ),
        files.outcomes_file(1): files.write_outcomes(result),
    }


def stop(event: Event) -> Event:
    """Say that the labelling was stopped, which it was not."""
    return replace(event, facts={STOPPED: "yes"}) if event.action == "labelled" else event


def test_labels_of_missed_comments_are_deleted(published):
    """The attacker must say that the labelling was stopped, or the files contradict each other."""
    before = recall(published)
    changed = without_missed(published)
    forge(published, changed, event=stop)
    assert recall(published) > before
    assert problems(published, "files") == []
    assert any("5 of 120 drawn comments have no label (5 withdrawn)" in message
               for message in remarks(published, "files"))  # fmt: skip
    [left_out] = problems(published, "decision log")
    assert left_out.startswith("5 comments of the sample have labels in the decision log, and none")
    assert finders(published) == {"decision log", "register"}

    # From the log, too: its chains tell, and so does the register of steps next to it.
    outcomes = files.read_outcomes(changed[files.outcomes_file(1)])
    for day, name in (key_of(item) for item in outcomes if item.outcome == "withdrawn"):
        where = f"dt = '{day}' AND comment_id = '{name}'"
        without_triggers(published, f"UPDATE review_item SET status = 'withdrawn' WHERE {where}")
        without_triggers(published, f"DELETE FROM decision WHERE {where}")
    assert problems(published, "decision log") == []
    assert "steps of the audit are not in the database" in problems(published, "register")[0]
    assert not verify_log(published.database).intact


def test_labels_are_deleted_and_not_stated_to_be_stopped(published):
    """Everything must have been decided then, and what was decided has labels."""
    undecided = ("waiting", "withdrawn", "escalated", "closed")
    changes = [without_missed(published, outcome) for outcome in undecided]
    forge(published, {files.labels_file(1): changes[0][files.labels_file(1)]})
    [problem] = problems(published, "files")
    assert problem.startswith("outcomes-1.csv counts other labels than were sealed:")
    for changed in changes:
        forge(published, changed)
        [problem] = problems(published, "files")
        assert "undecided comments, although the labelling was not stopped" in problem


def test_labels_are_deleted_before_the_result_is_signed(after):
    small = after("estimate")
    forge(small, without_missed(small), event=stop)
    with pytest.raises(AuditError, match="5 comments of the sample have labels in the decision"):
        small.audit("small").sign_off(actor="fay")


def test_a_stopped_labelling_hides_no_label_either(after):
    """Undecided comments are no contradiction there, and the log has the decisions."""
    small = after("label")
    small.audit("small").seal(stop=True, actor="gil")
    small.audit("small").estimate()
    forge(small, without_missed(small))
    assert problems(small, "files") == []
    assert problems(small, "decision log")[0].startswith("5 comments of the sample have labels")


def test_labels_are_turned_round(published):
    forge(published, {files.labels_file(1): files.write_labels(turned_round(published))})
    assert problems(published, "files") == []
    [changed] = problems(published, "decision log")
    assert "were changed in the decision log after they were sealed" in changed


INSERT = """
    INSERT INTO review_item (dt, comment_id, kind, text, queue, reason, stratum,
        inclusion_probability, rank, review_score, prob, uncertainty, model_version, audit)
    SELECT dt, 'c0-more', kind, text, queue, reason, stratum,
        inclusion_probability, rank, review_score, prob, uncertainty, model_version, audit
    FROM review_item LIMIT 1
"""


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        (INSERT, "1 comment in the queue of the audit is not in the sample"),
        ("UPDATE review_item SET text = 'harmless' WHERE rank <= 3",
         "3 comments in the queue are shown with other words than the lake has"),
        ("UPDATE review_item SET parent_text = 'all agreed' WHERE rank = 1",
         "1 comment in the queue is shown with other words"),
        ("UPDATE review_item SET audit = 'else' WHERE rank <= 2",
         "2 comments of the sample are missing from the queue"),
    ],
    ids=["added", "text", "parent", "moved"],
)  # fmt: skip
def test_the_queue_shows_others_than_were_drawn(after, statement, says):
    small = after("seal")
    without_triggers(small, statement)
    assert any(problem.startswith(says) for problem in problems(small, "decision log"))


def test_an_item_is_withdrawn_by_hand_and_no_one_asks_why(after):
    """Before its label can be given: nothing but a stop explains a comment without one."""
    small = after("draw")
    without_triggers(small, "UPDATE review_item SET status = 'withdrawn' WHERE rank = 1")
    label_everything(small)
    with pytest.raises(AuditError, match="undecided comments, although the labelling was not"):
        small.audit("small").seal()


def test_decisions_are_made_up(after):
    """Files alone know no log, and still no hash is all zeros."""
    small = after("seal")
    labels = files.read_labels(small.audit_store.read("small")[files.labels_file(1)])
    assert not [found for found in remarks(small, "files") if "labels name" in found]
    for decisions, says in (
        (lambda _: 64 * "0", "labels name decisions that are not SHA-256 hashes"),
        (lambda n: f"{n:064x}", "labels name decisions that are not SHA-256 hashes"),
        (lambda _: "not a hash", "labels name decisions that are not SHA-256 hashes"),
        (lambda _: bytes(range(32)).hex(), "labels name the decision of another label"),
    ):
        made_up = [replace(label, decision=decisions(n)) for n, label in enumerate(labels)]
        forge(small, {files.labels_file(1): files.write_labels(made_up)})
        assert problems(small, "files") == []
        assert any(says in found for found in remarks(small, "files"))


def test_only_the_register_finds_that_the_first_steps_are_dated_back(published):
    def earlier(event: Event) -> Event:
        first = event.action in ("planned", "approved")
        return replace(event, at=event.at.replace("20", "19", 1)) if first else event

    forge(published, event=earlier)
    assert finders(published) == {"register"}


def test_approval_facts_are_made_up(after):
    """The approval of the tests has a random number of zeros."""
    small = after("draw")
    made_up = "the approval fixes values that are not SHA-256 hashes"
    assert any(found.startswith(made_up) for found in remarks(small, "files"))

    def random(event: Event) -> Event:
        numbers = {LOG: bytes(range(32)).hex(), NUMBER: bytes(range(32, 64)).hex()}
        return replace(event, facts=numbers) if event.action == "approved" else event

    forge(small, event=random, cut=2)
    assert problems(small, "files") == []
    assert not [found for found in remarks(small, "files") if found.startswith(made_up)]
