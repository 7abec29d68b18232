"""Someone who can do everything in the database, against the verification of the log.

No trigger, privilege or key hinders them. What they change past the chains is found; chains that
they write anew disagree with the witness of the day before, which lies elsewhere.
"""

import re
from datetime import date, timedelta
from typing import Any

import pytest
from databases import Uncommitted, scalar, tamper, unguarded
from sqlalchemy import Connection, func, insert, select, text, update

from modwatch.common.errors import DatabaseError
from modwatch.common.ledger.chain import GENESIS, witness_in, witness_of
from modwatch.review.log.decision_log import item_digest_sql, row_hash
from modwatch.review.log.verification import verify_log
from modwatch.review.outbox.decision_events import relay_decisions
from modwatch.review.people import changes
from modwatch.review.policy.tree import load_policy, register_policy
from modwatch.review.quality_control.gold import GoldComment, add_gold
from modwatch.review.queue import deciding, intake
from modwatch.review.tables import decision, decision_chain, review_item
from review.labelling import decide_all, escalate, held, label_next


@pytest.fixture
def witness(engine, ann, ben, new_item, day):
    """Six decisions by ann and ben, one open item, a policy and two gold comments; the witness."""
    register_policy(engine, load_policy())
    gold = [GoldComment(comment_id=f"g{n}", text="known", label=1, source="panel") for n in (1, 2)]
    add_gold(engine, gold)
    intake.enqueue(
        engine, [new_item(f"c{i}", i + 1, parent_text="said before") for i in range(6)], day
    )
    decide_all(engine, [ann, ben], policy_version=load_policy().version, note="a thought")
    intake.enqueue(engine, [new_item("late")], date(2026, 1, 2))
    changes.change_role(engine, ben.id, "lead")
    changes.change_role(engine, ben.id, "moderator")
    changes.set_queues(engine, ben.id, ["general"])
    relay_decisions(engine, ["platform"], category_of={"insult": "X"}.get)
    report = verify_log(engine)
    assert report.problems == ()
    return report.witness


#: Another value of each column of an item that figures read.
READ = {
    "dt": "dt + 1",
    "comment_id": "'c99'",
    "kind": "'gold'",
    "round": "2, kind = 'confirmation', confirms = '{0}', confirmation_probability_0 = 1, "
    "confirmation_probability_1 = 1",
    "audit": "'june'",
    "shown": """shown || '{"language": "xx"}'""",
    "queue": "'another'",
    "reason": "'random_slice'",
    "stratum": "stratum + 1",
    "inclusion_probability": "inclusion_probability / 2",
    "rank": "rank + 1",
    "review_score": "review_score + 1e-9",
    "prob": "prob / 2",
    "uncertainty": "uncertainty / 2",
    "model_version": "'forged'",
    "confirms": "'{0}'",
    "confirmation_probability_0": "0.5",
    "confirmation_probability_1": "0.5",
    "first_label": "1",
    "labels_wanted": "2",
    "reserved_for": "1",
    "queued_at": "queued_at - interval '1 second'",
    "due_at": "due_at + interval '1 second'",
}


def test_every_column_that_figures_read_is_changed():
    columns = set(re.findall(r"x\.(\w+)", item_digest_sql("x")))
    assert columns == set(READ)
    # What remains is bound by other columns of a decision, or named in docs/security.md.
    assert {column.name for column in review_item.c} - columns == {
        "id", "text", "parent_text", "text_salt", "status", "version", "excluded", "serve_by",
        "serve_after",
        "severe_due_at", "bulk_close_id", "lease_digest", "leased_by", "leased_until", "claimed_at",
    }  # fmt: skip


def test_a_change_of_any_column_that_figures_read_is_found(engine, ann, new_item, day):
    items = [new_item(f"c{n}", n) for n in range(1, len(READ) + 1)]
    intake.enqueue(engine, items, day)
    decide_all(engine, [ann])
    with unguarded(engine) as connection:
        for item, (column, value) in enumerate(READ.items(), start=1):
            change = f"UPDATE review_item SET {column} = {value} WHERE id = {item}"
            connection.execute(text(change))
    found = [problem for problem in verify_log(engine).problems if "confirms" not in problem]
    # The first twenty problems of a kind are named; the others are counted.
    assert found == [
        *(f"item {item} has other values than when it was decided" for item in range(1, 21)),
        f"{len(READ) - 20} more problems of these kinds",
    ]


OTHER_TEXTS = "item 3 has other texts than those that were judged"
NOT_SENT = "does not follow from the log"

#: What is changed where in which table, and what the verification says of it without any witness.
CHANGES = [
    ("review_item", "text = 'harmless'", "id = 3", OTHER_TEXTS),
    ("review_item", "parent_text = 'harmless'", "id = 3", OTHER_TEXTS),
    ("review_item", "status = 'waiting', excluded = '{}'", "id = 3", "item 3 is waiting, but its"),
    ("review_item", "status = 'withdrawn'", "id = 3", "last decision left it decided"),
    ("review_item", "status = 'decided'", "id = 7", "is decided, but the log has no label"),
    ("review_item", "status = 'closed'", "id = 7", "but its last decision left it unchanged"),
    ("moderator", "role = 'admin'", "id = 1", "has the role admin, but its events say moderator"),
    ("moderator", "disabled_at = now()", "id = 1", "is disabled, but its events say enabled"),
    ("moderator", "pseudonym = 'eve'", "id = 1", "account 1 has another pseudonym"),
    ("gold_comment", "label = 0", "comment_id = 'g1'", "gold comment 'g1' is not as"),
    ("gold_comment", "retired_at = now()", "comment_id = 'g1'", "gold comment 'g1' is not as"),
    ("gold_comment", "added_at = now() + interval '1 day'", "true", "gold comment 'g1' is not as"),
    (
        "policy_version",
        "content = jsonb_set(content, '{version}', '\"0\"')",
        "true",
        "not as its last",
    ),
    ("event", "actor_id = 1", "action = 'change_role'", r"event \d+ .* changed"),
    ("outbox_message", """payload = payload || '{"label"\\: null}'""", "id = 1", f"-1' {NOT_SENT}"),
    # The category is made up.
    ("outbox_message", """payload = payload || '{"dsa_category"\\: "X"}'""", "id = 1", NOT_SENT),
    ("outbox_message", "series = '2026-01-01/c9'", "id = 1", f"'decision-1' {NOT_SENT}"),
    ("outbox_message", "key = 'decision-77'", "id = 1", "'decision-1' is missing"),
    ("outbox_message", "payload = '[]'", "id = 1", f"'decision-1' {NOT_SENT}"),
    ("outbox_cursor", "decision_id = 1000", "true", "read up to a decision that it does not have"),
]

#: What else is done.
MANIPULATIONS = {
    "INSERT INTO moderator (pseudonym, role) VALUES ('eve', 'admin')":
        "account 3 exists, but no event created it",
    "DELETE FROM gold_comment WHERE comment_id = 'g1'": "gold comment 'g1' is missing",
    "UPDATE policy_version SET content = '{}', digest = encode(sha256('{}'), 'hex')":
        "policy .* is not as its last event left it",
    "DELETE FROM policy_version": "policy .* is missing",
    "DELETE FROM event WHERE id = (SELECT min(id) FROM event WHERE action = 'change_role')":
        "missing before event",
    "DELETE FROM event": "the chain of events ends at position 0",
    "DELETE FROM moderator_queue": "account 2 has other queues than its events say",
    "INSERT INTO moderator_queue VALUES (1, 'general')":
        "account 1 has other queues than its events say",
    "DELETE FROM outbox_message WHERE id = 2": "'decision-2' is missing",
    "INSERT INTO outbox_message (key, topic, series, sequence, dt, payload) "
    "VALUES ('decision-9', 'decision', '2026-01-01/late', 1, '2026-01-01', '{}')":
        f"'decision-9' {NOT_SENT}",
    # The cursor is put back, or removed with all messages but one.
    "UPDATE outbox_cursor SET (transaction_id, decision_id) = "
    "(SELECT transaction_id, id FROM decision WHERE id = 4)": f"'decision-5' {NOT_SENT}",
    "DELETE FROM outbox_cursor; DELETE FROM outbox_message WHERE id > 1":
        f"'decision-1' {NOT_SENT}",
    "DELETE FROM moderator WHERE id = 1": "account 1 is missing, but the log has",
    "DELETE FROM moderator; DELETE FROM moderator_queue": "account 2 is missing, but the log has",
    "DELETE FROM review_item WHERE id = 3": "item 3 is missing, but the log has decisions on it",
    "DELETE FROM review_item": "item 6 is missing, but the log has decisions on it",
    "ALTER TABLE review_item ALTER status DROP NOT NULL; "
    "UPDATE review_item SET status = NULL WHERE id = 3": "item 3 has no status that there is",
    "ALTER TABLE review_item DROP CONSTRAINT review_item_pkey CASCADE, DROP CONSTRAINT "
    "review_item_dt_comment_id_kind_round_reserved_for_audit_key; "
    "INSERT INTO review_item SELECT * FROM review_item WHERE id = 3":
        "the table review_item has the row 3 more than once",
    # A table of the session takes the place of none.
    "CREATE TEMPORARY TABLE review_item AS SELECT * FROM review_item; "
    "UPDATE public.review_item SET text = 'harmless' WHERE id = 3": OTHER_TEXTS,
    **{
        "ALTER TABLE decision DROP CONSTRAINT decision_dt_check, "
        "DROP CONSTRAINT decision_decided_at_check; "
        f"UPDATE decision SET {column} = '{past}' WHERE id = 2; "
        "UPDATE decision SET label = 1 - label WHERE id = 3": r"(?s)decision 2 \(.*decision 3 \("
        for column in ("dt", "decided_at") for past in ("0044-03-15 BC", "20000-01-01")
    },
}  # fmt: skip

MANIPULATIONS |= {
    f"UPDATE {table} SET {change} WHERE {where}": finding
    for table, change, where, finding in CHANGES
}


def test_what_is_changed_past_the_log_is_found(engine, witness):
    with unguarded(engine) as connection:
        for statements, finding in MANIPULATIONS.items():
            with connection.begin_nested() as manipulation:
                for statement in statements.split("; "):
                    connection.execute(text(statement))
                problems = verify_log(Uncommitted(connection)).problems
                manipulation.rollback()
            assert re.search(finding, "\n".join(problems)), (statements, problems)
            assert "cannot be read" not in str(problems)
            assert "a thought" not in str(problems)
            assert "harmless" not in str(problems)


def rewrite(connection: Connection, moderator_id: int, at: int = 1, **changed: object) -> None:
    """Write a chain anew with other values in one row, so that every hash is right."""
    mine = decision.c.moderator_id == moderator_id
    rows = connection.execute(select(decision).where(mine).order_by("position")).mappings().all()
    last = GENESIS
    for row in rows:
        new = dict(row) | (changed if row["position"] == at else {}) | {"previous_hash": last}
        last = new["hash"] = row_hash(new)
        id_ = new.pop("id")
        connection.execute(update(decision).where(decision.c.id == id_).values(new))
    connection.execute(
        update(decision_chain)
        .where(decision_chain.c.moderator_id == moderator_id)
        .values(hash=last)
    )


def without_messages(connection: Connection) -> None:
    """Let the outbox be read again from the start: messages are sent once more, as forged."""
    connection.execute(text("TRUNCATE outbox_message, outbox_delivery, outbox_cursor"))


def label_rewritten(connection: Connection) -> None:
    rewrite(connection, 1, label=1)
    without_messages(connection)


def chains_exchanged(connection: Connection) -> None:
    """Give ann's decisions to ben and ben's to ann, with all hashes."""
    for before, after in ((1, 3), (2, 1), (3, 2)):
        values = {"before": before, "after": after}
        for table in ("decision", "decision_chain"):
            connection.execute(
                text(f"UPDATE {table} SET moderator_id = :after WHERE moderator_id = :before"),
                values,
            )
    for person in (1, 2):
        rewrite(connection, person)


def person_taken_out(connection: Connection) -> None:
    without_messages(connection)
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
        "DELETE FROM event WHERE action IN ('change_role', 'set_queues')",
        "DELETE FROM moderator_queue",
        "UPDATE event_chain SET (length, hash) = "
        "(SELECT position, hash FROM event ORDER BY position DESC LIMIT 1)",
    ):
        connection.execute(text(statement))


FORGERIES = (label_rewritten, person_taken_out, last_events_taken_out, chains_exchanged)


def test_chains_that_are_written_anew_disagree_with_the_witness(engine, witness):
    with unguarded(engine) as connection:
        for forge in FORGERIES:
            with connection.begin_nested() as forgery:
                forge(connection)
                alone = verify_log(Uncommitted(connection))
                compared = verify_log(Uncommitted(connection), witness)
                forgery.rollback()
            assert alone.problems == (), forge  # by itself, the log cannot tell
            assert not compared.intact, forge


def test_work_goes_on_and_everything_it_does_is_reported(engine, witness, ann, new_item):
    """No false alarm: items that are undone, routed again with another text, or escalated."""
    day = date(2026, 1, 3)
    intake.enqueue(engine, [new_item(f"d{i}", i + 1) for i in range(4)], day)
    done = label_next(engine, ann)
    deciding.undo(engine, moderator_id=ann.id, decision_id=done.id, idempotency_key="2")
    others = [new_item(f"d{i}", i + 1, text=f"edited {i}") for i in range(4)]
    intake.enqueue(engine, others, day)
    label_next(engine, ann)
    lease = held(engine, ann)
    escalate(engine, ann, lease)
    assert verify_log(engine, witness).problems == ()


@pytest.fixture
def correction(engine, witness):
    """What the owner knows when they add a correction by ann of her own last label."""
    with engine.connect() as connection:
        row = connection.execute(select(decision).where(decision.c.id == 5)).mappings().one()
    row = dict(row) | {"position": 4, "idempotency_key": "forged", "label": 1}
    row |= {"action": "correct", "item_version": 2, "reason": "mistake", "refers_to": row.pop("id")}
    return row | {"previous_hash": row.pop("hash")}


def appended(connection: Connection, row: dict[str, Any]) -> None:
    row |= {"transaction_id": connection.scalar(select(func.pg_current_xact_id()))}
    row |= {"hash": row_hash(row)}
    connection.execute(insert(decision).values(row))
    connection.execute(
        update(decision_chain)
        .where(decision_chain.c.moderator_id == row["moderator_id"])
        .values(length=row["position"], hash=row["hash"])
    )
    connection.execute(text("UPDATE review_item SET version = version + 1 WHERE id = 5"))


def test_a_correction_that_is_dated_back_or_ahead_is_found(engine, witness, correction):
    """With every hash right: it would change the figures of a day that is over."""
    seen = witness_in(witness)
    assert seen.at is not None
    tomorrow = witness_of(seen.heads, seen.at + 86400)
    for days, known, finding in (
        (-30, None, "before the entry, or the witness"),
        (-30, witness, "before the entry, or the witness"),
        (30, None, "after the time of its verification"),
        (0, None, None),  # the time fits to those before it
        # In the chain of someone who decided nothing since the witness, too.
        (0, tomorrow, "before the entry, or the witness"),
    ):
        row = correction | {"decided_at": correction["decided_at"] + timedelta(days=days)}
        with unguarded(engine) as connection:
            appended(connection, row)
            problems = verify_log(Uncommitted(connection), known).problems
            connection.rollback()
        dated = [p.partition(" is dated ")[2] for p in problems if p.startswith("decision")]
        assert [words.startswith(finding or "-") for words in dated] == [True] * bool(finding)


def test_the_time_goes_forward_when_the_clock_does_not(engine, witness, correction, ann):
    """Two servers whose clocks are an hour apart write one after the other."""
    correction["decided_at"] += timedelta(hours=1)
    with unguarded(engine) as connection:
        appended(connection, correction)
    done = label_next(engine, ann)
    assert done.decided_at == correction["decided_at"]
    problems = verify_log(engine).problems  # until the hour is over
    assert all("is dated after the time of its verification" in problem for problem in problems)
    # A time that is absurd does not spread.
    tamper(engine, "UPDATE decision SET decided_at = '9999-01-01' WHERE id = 8")
    tamper(engine, "UPDATE event SET happened_at = '9999-01-01'")
    changes.change_role(engine, ann.id, "lead")
    ahead = scalar(engine, "SELECT max(id) FROM event WHERE happened_at < '9999-01-01'")
    assert ahead is not None


FORGED_EVENT = """
    INSERT INTO event (action, position, previous_hash, hash, happened_at, details)
    VALUES ('log_in', 1000, '', '', {moment}, CAST({details} AS jsonb))
"""


def test_what_no_page_can_show_is_refused(engine, fill):
    fill(1)
    deep, long = "repeat('[', 99) || repeat(']', 99)", "repeat('9', 5000)"
    documents = (f"'{{\"a\": ' || {junk} || '}}'" for junk in (deep, long))
    for moment, details, constraint in (
        ("'infinity'", "'{}'", "event_happened_at_check"),
        *(("now()", document, "event_details_check") for document in (*documents, "'1'")),
    ):
        forged = FORGED_EVENT.format(moment=moment, details=details).replace(":", r"\:")
        with pytest.raises(DatabaseError, match=constraint), engine.begin() as own:
            own.execute(text(forged))
    with pytest.raises(DatabaseError, match="review_item_dt_check"), unguarded(engine) as owner:
        owner.execute(text("UPDATE review_item SET dt = 'infinity'"))
