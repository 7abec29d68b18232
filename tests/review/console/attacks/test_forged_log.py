"""Someone who can do everything in the database, against the verification of the log.

No trigger, privilege or key hinders them. What they change past the chains is found; chains that
they write anew disagree with the witness of the day before, which lies elsewhere.
"""

import re
from collections.abc import Callable
from datetime import date

import pytest
from databases import unguarded
from sqlalchemy import Connection, Engine, insert, select, text, update

from modwatch.common.ledger.chain import GENESIS
from modwatch.review import people, queue
from modwatch.review.log.decision_log import row_hash, text_commitment_sql
from modwatch.review.log.verification import LogReport, verify_log
from modwatch.review.people import Moderator
from modwatch.review.policy.tree import load_policy, register_policy
from modwatch.review.quality_control.gold import GoldComment, add_gold
from modwatch.review.queue import deciding
from modwatch.review.queue.items import NewItem
from modwatch.review.tables import decision, decision_chain
from review.labelling import decide_all, label_next


@pytest.fixture
def witness(
    engine: Engine, ann: Moderator, ben: Moderator, new_item: Callable[..., NewItem], day: date
) -> str:
    """Six decisions by ann and ben, one open item, a policy and two gold comments; the witness."""
    register_policy(engine, load_policy())
    gold = [GoldComment(comment_id=f"g{n}", text="known", label=1, source="panel") for n in (1, 2)]
    add_gold(engine, gold)
    queue.enqueue(
        engine, [new_item(f"c{i}", i + 1, parent_text="said before") for i in range(6)], day
    )
    decide_all(engine, [ann, ben], policy_version=load_policy().version, note="a thought")
    queue.enqueue(engine, [new_item("late")], date(2026, 1, 2))
    people.change_role(engine, ben.id, "lead")
    people.change_role(engine, ben.id, "moderator")
    report = verify_log(engine)
    assert report.problems == ()
    return report.witness


#: What is done, and what the verification says of it without any witness.
MANIPULATIONS = {
    "label changed": (
        "UPDATE decision SET label = 1 - label WHERE id = 3",
        "decision 3 .* changed",
    ),
    "note changed": ("UPDATE decision SET note = 'another' WHERE id = 3", "decision 3 .* changed"),
    "time changed": (
        "UPDATE decision SET decided_at = decided_at - interval '1 day' WHERE id = 3",
        "decision 3 .* changed",
    ),
    "made another's": (
        "UPDATE decision SET moderator_id = 2, position = 4 WHERE id = 3",
        "decision 3 .* changed",
    ),
    "decision removed": ("DELETE FROM decision WHERE id = 3", "missing before decision 5"),
    "last decision removed": ("DELETE FROM decision WHERE id = 6", "ends at position 2"),
    "order changed": (
        "UPDATE decision SET position = 0 WHERE id = 1; "
        "UPDATE decision SET position = 1 WHERE id = 3; "
        "UPDATE decision SET position = 2 WHERE id = 1",
        "out of order|missing before",
    ),
    "transaction changed": (
        "UPDATE decision SET transaction_id = '3' WHERE id = 3",
        "decision 3 .* changed",
    ),
    "text replaced": (
        "UPDATE review_item SET text = 'harmless' WHERE id = 3",
        "item 3 has other texts than those that were judged",
    ),
    "context replaced": (
        "UPDATE review_item SET parent_text = 'harmless' WHERE id = 3",
        "item 3 has other texts than those that were judged",
    ),
    "put back to waiting": (
        "UPDATE review_item SET status = 'waiting', excluded = '{}' WHERE id = 3",
        "item 3 is waiting, but its last decision left it decided",
    ),
    "withdrawn after the decision": (
        "UPDATE review_item SET status = 'withdrawn' WHERE id = 3",
        "item 3 is withdrawn, but its last decision left it decided",
    ),
    "decided without a label": (
        "UPDATE review_item SET status = 'decided' WHERE comment_id = 'late'",
        "is decided, but the log has no label",
    ),
    "dismissed by nobody": (
        "UPDATE review_item SET status = 'closed' WHERE comment_id = 'late'",
        "is closed, but its last decision left it unchanged",
    ),
    "pseudonyms exchanged": (
        "UPDATE moderator SET pseudonym = pseudonym || '-'; "
        "UPDATE moderator SET pseudonym = 'ben' WHERE pseudonym = 'ann-'; "
        "UPDATE moderator SET pseudonym = 'ann' WHERE pseudonym = 'ben-'",
        "account 1 has another pseudonym",
    ),
    "role raised": (
        "UPDATE moderator SET role = 'admin' WHERE id = 1",
        "account 1 has the role admin, but its events say moderator",
    ),
    "account disabled": (
        "UPDATE moderator SET disabled_at = now() WHERE id = 1",
        "account 1 is disabled, but its events say enabled",
    ),
    "account of nobody": (
        "INSERT INTO moderator (pseudonym, role) VALUES ('eve', 'admin')",
        "account 3 exists, but no event created it",
    ),
    "gold label changed": (
        "UPDATE gold_comment SET label = 0 WHERE comment_id = 'g1'",
        "gold comment 'g1' is not as",
    ),
    "gold text changed": (
        "UPDATE gold_comment SET text = 'another' WHERE comment_id = 'g1'",
        "gold comment 'g1' is not as",
    ),
    "gold retired": (
        "UPDATE gold_comment SET retired_at = now() WHERE comment_id = 'g1'",
        "gold comment 'g1' is not as",
    ),
    "gold removed": (
        "DELETE FROM gold_comment WHERE comment_id = 'g1'",
        "gold comment 'g1' is missing",
    ),
    "policy changed": (
        "UPDATE policy_version SET content = jsonb_set(content, '{version}', '\"0\"')",
        "the policy .* is not the one that was registered",
    ),
    "policy and its digest changed": (
        "UPDATE policy_version SET content = '{}', digest = "
        "encode(sha256(convert_to('{}', 'UTF8')), 'hex')",
        "the policy .* is not the one that was registered",
    ),
    "policy removed": ("DELETE FROM policy_version", "the policy .* is missing"),
    "event changed": (
        "UPDATE event SET actor_id = 1 WHERE action = 'change_role'",
        r"event \d+ .* changed",
    ),
    "event removed": (
        "DELETE FROM event WHERE id = (SELECT min(id) FROM event WHERE action = 'change_role')",
        r"missing before event",
    ),
    "events removed": ("DELETE FROM event", "the chain of events ends at position 0"),
    "note removed": (
        "UPDATE decision SET note = NULL, note_salt = NULL WHERE id = 3",
        "decision 3 .* changed",
    ),
    "note and its commitment replaced": (
        "UPDATE decision SET note = 'another', note_salt = '', "
        "note_commitment = sha256('another') WHERE id = 3",
        "decision 3 .* changed",
    ),
    "text replaced and its salt removed": (
        "UPDATE review_item SET text = 'harmless', text_salt = NULL WHERE id = 3",
        "item 3 has other texts than those that were judged",
    ),
}


@pytest.mark.parametrize("name", MANIPULATIONS)
def test_what_is_changed_past_the_log_is_found(engine: Engine, witness: str, name: str) -> None:
    statements, finding = MANIPULATIONS[name]
    with unguarded(engine) as connection:
        for statement in statements.split("; "):
            connection.execute(text(statement))
    problems = verify_log(engine).problems
    assert any(re.search(finding, problem) for problem in problems), problems
    assert "a thought" not in str(problems)
    assert "harmless" not in str(problems)


def rewrite(connection: Connection, moderator_id: int, **changed: object) -> None:
    """Write a chain anew with other values in its first row, so that every hash is right."""
    mine = decision.c.moderator_id == moderator_id
    rows = connection.execute(select(decision).where(mine).order_by("position")).mappings().all()
    last = GENESIS
    for row in rows:
        new = dict(row) | (changed if row["position"] == 1 else {}) | {"previous_hash": last}
        last = new["hash"] = row_hash(new)
        id_ = new.pop("id")
        connection.execute(update(decision).where(decision.c.id == id_).values(new))
    connection.execute(
        update(decision_chain)
        .where(decision_chain.c.moderator_id == moderator_id)
        .values(hash=last)
    )


def label_rewritten(connection: Connection) -> None:
    rewrite(connection, 1, label=1)


def decision_moved_elsewhere(connection: Connection) -> None:
    rewrite(connection, 1, transaction_id="3")


def decision_taken_out(connection: Connection) -> None:
    for statement in (
        "DELETE FROM decision WHERE id = 6",
        "UPDATE review_item SET status = 'waiting', excluded = '{}' WHERE id = 6",
        "UPDATE decision_chain SET length = 2, hash = (SELECT hash FROM decision WHERE id = 4) "
        "WHERE moderator_id = 2",
    ):
        connection.execute(text(statement))


def person_taken_out(connection: Connection) -> None:
    for statement in (
        "UPDATE review_item SET status = 'waiting', excluded = '{}' WHERE id IN "
        "(SELECT item_id FROM decision WHERE moderator_id = 2)",
        "DELETE FROM decision WHERE moderator_id = 2",
        "UPDATE decision_chain SET length = 0, hash = decode(repeat('00', 32), 'hex') "
        "WHERE moderator_id = 2",
    ):
        connection.execute(text(statement))


def last_events_taken_out(connection: Connection) -> None:
    for statement in (
        "DELETE FROM event WHERE action = 'change_role'",
        "UPDATE event_chain SET (length, hash) = "
        "(SELECT position, hash FROM event ORDER BY position DESC LIMIT 1)",
    ):
        connection.execute(text(statement))


def text_and_log_rewritten(connection: Connection) -> None:
    connection.execute(text("UPDATE review_item SET text = 'harmless' WHERE id = 1"))
    committed = text_commitment_sql("review_item").replace("::", r"\:\:")
    rewrite(
        connection,
        1,
        text_commitment=connection.scalar(
            text(f"SELECT {committed} FROM review_item WHERE id = 1")
        ),
    )


FORGERIES = (
    label_rewritten, decision_moved_elsewhere, decision_taken_out, person_taken_out,
    last_events_taken_out, text_and_log_rewritten,
)  # fmt: skip


@pytest.mark.parametrize("forge", FORGERIES)
def test_chains_that_are_written_anew_disagree_with_the_witness(
    engine: Engine, witness: str, forge: Callable[[Connection], None]
) -> None:
    with unguarded(engine) as connection:
        forge(connection)
    assert verify_log(engine).intact  # by itself, the log cannot tell
    assert not verify_log(engine, witness).intact


def test_work_goes_on_and_everything_it_does_is_reported(
    engine: Engine, witness: str, ann: Moderator, new_item: Callable[..., NewItem]
) -> None:
    """No false alarm: items that are undone, routed again with another text, or escalated."""
    day = date(2026, 1, 3)
    queue.enqueue(engine, [new_item(f"d{i}", i + 1) for i in range(4)], day)
    lease = queue.lease(engine, ann.id)
    assert lease is not None
    request = {"moderator_id": ann.id, "item_id": lease.item.id, "lease_token": lease.token}
    done = queue.decide(engine, label=1, idempotency_key="1", **request)
    deciding.undo(engine, moderator_id=ann.id, decision_id=done.id, idempotency_key="2")
    others = [new_item(f"d{i}", i + 1, text=f"edited {i}") for i in range(4)]
    queue.enqueue(engine, others, day)
    label_next(engine, ann)
    lease = queue.lease(engine, ann.id)
    assert lease is not None
    request = {"moderator_id": ann.id, "item_id": lease.item.id, "lease_token": lease.token}
    queue.escalate(engine, idempotency_key="3", **request)
    report: LogReport = verify_log(engine, witness)
    assert report.problems == ()


def test_another_forger_adds_a_decision(engine: Engine, witness: str) -> None:
    with unguarded(engine) as connection:
        row = dict(connection.execute(select(decision).where(decision.c.id == 3)).mappings().one())
        row |= {"position": 4, "idempotency_key": "forged", "label": 1}
        row |= {"previous_hash": row.pop("hash")}
        del row["id"]
        row["hash"] = row_hash(row)
        connection.execute(insert(decision).values(row))
    assert not verify_log(engine).intact
