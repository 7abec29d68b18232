import json
import re
from collections.abc import Callable

import pytest
from databases import Uncommitted, unguarded
from sqlalchemy import Engine, text

from modwatch.common.errors import LedgerError
from modwatch.common.ledger.chain import GENESIS, witness_in
from modwatch.review.log.decision_log import COVERED
from modwatch.review.log.export import export
from modwatch.review.log.verification import verify_export, verify_log
from modwatch.review.queue import intake
from review.labelling import decide_all, held, skip

Fill = Callable[[int], None]


def tamper(engine: Engine, statements: str) -> None:
    with unguarded(engine) as connection:
        for statement in statements.split("; "):
            connection.execute(text(statement))


def exported(engine: Engine, **options: bool) -> list[str]:
    return b"".join(export(engine, "jsonl", **options)).decode().splitlines()  # type: ignore[arg-type]


@pytest.fixture
def shift(engine, ann, ben, fill):
    """Six decisions, by ann and ben in turn; returns their witness."""
    fill(6)
    decide_all(engine, [ann, ben], policy_version="1", policy_code="insult")
    report = verify_log(engine)
    assert (report.decisions, report.problems) == (6, ())
    return report.witness


#: Another value of each covered column.
CHANGES = {
    "position": "position + 100",
    "item_id": "item_id + 1",
    "dt": "dt + 1",
    "comment_id": "'c9'",
    "kind": "'audit'",
    "item_version": "item_version + 1",
    "moderator_id": "77",
    "action": "'correct'",
    "label": "1 - label",
    "policy_version": "'2'",
    "policy_code": "NULL",
    "reason": "'made up'",
    "note": "note || ' '",
    "note_salt": "sha256('another')",
    "note_commitment": "sha256('another')",
    "seconds": "seconds + 1e-9",
    "idempotency_key": "'another'",
    "refers_to": "1",
    "decided_at": "decided_at + interval '1 us'",
    "text_commitment": "sha256('another')",
    "item_digest": "sha256('another')",
    "outcome": "'waiting'",
    "transaction_id": "'1'",
    "previous_hash": "sha256('')",
    "hash": "sha256('')",
}


def test_a_change_of_any_column_is_found(engine, ann, ben, fill):
    """Each column in a decision of its own."""
    assert set(COVERED) < set(CHANGES)
    fill(len(CHANGES))
    decide_all(engine, [ann, ben], policy_version="1", policy_code="insult")
    rows = dict(enumerate(CHANGES, start=1))
    with unguarded(engine) as connection:
        for row, column in rows.items():
            change = f"UPDATE decision SET {column} = {CHANGES[column]} WHERE id = {row}"
            connection.execute(text(change))

    def changed(problems: tuple[str, ...]) -> set[str]:
        found = (re.match(r"decision (\d+) .* was changed", problem) for problem in problems)
        return {rows[int(match[1])] for match in found if match}

    assert changed(verify_log(engine).problems) == set(CHANGES)
    # The decision of an account that does not exist is not exported, so it is missing.
    exported_ = verify_export(exported(engine, with_notes=True))
    assert changed(exported_.problems) == set(CHANGES) - {"moderator_id"}


#: What is done, and how it is named.
TAMPERINGS = (
    ("DELETE FROM decision WHERE id = 3", "are missing before decision 5"),
    ("DELETE FROM decision WHERE id = 6", "ends at position 2, but its recorded end is 3"),
    ("DELETE FROM decision WHERE moderator_id = 2", "ends at position 0, but"),
    (
        "UPDATE decision SET position = -position; UPDATE decision SET position = 4 + position",
        "was changed",
    ),
    ("UPDATE decision SET hash = previous_hash WHERE id = 3", "decision 5 .* does not follow"),
    ("DELETE FROM decision_chain WHERE moderator_id = 1", "recorded end is none"),
    ("UPDATE decision_chain SET length = 2", "ends at position 3"),
    (
        "DELETE FROM decision WHERE moderator_id = 2; "
        "DELETE FROM decision_chain WHERE moderator_id = 2",
        "item 2 is decided, but the log has no label",
    ),
)


def test_each_is_found_in_its_own_words(engine, shift):
    with unguarded(engine) as connection:
        for statements, finding in TAMPERINGS:
            with connection.begin_nested() as tampering:
                for statement in statements.split("; "):
                    connection.execute(text(statement))
                problems = verify_log(Uncommitted(connection)).problems
                tampering.rollback()
            assert any(re.search(finding, problem) for problem in problems), (finding, problems)


def test_two_rows_that_changed_places_are_found(engine, shift):
    """The number of a row, by which others refer to it, is in no hash; its place says it all."""
    tamper(engine, SWAP)
    assert any("are missing" in problem for problem in verify_log(engine).problems)
    assert any("out of order" in problem for problem in verify_log(engine).problems)
    assert not verify_export(exported(engine, with_notes=True)).intact


SWAP = (
    "ALTER TABLE decision ALTER id SET GENERATED BY DEFAULT; "
    "CREATE TEMPORARY TABLE swapped AS SELECT * FROM decision WHERE id IN (1, 3); "
    "DELETE FROM decision WHERE id IN (1, 3); UPDATE swapped SET id = 4 - id; "
    "INSERT INTO decision SELECT * FROM swapped; DROP TABLE swapped; "
    "ALTER TABLE decision ALTER id SET GENERATED ALWAYS"
)

#: Somebody who may do everything takes ben's last decision out, with all that would tell of it.
FORGED = (
    "DELETE FROM decision WHERE id = 6; "
    "UPDATE review_item SET status = 'waiting', excluded = '{}' WHERE id = 6; "
    "UPDATE decision_chain SET length = 2, hash = (SELECT hash FROM decision WHERE id = 4) "
    "WHERE moderator_id = 2"
)


def test_a_forged_end_disagrees_with_what_was_witnessed(engine, shift, ben):
    before = verify_log(engine).head
    tamper(engine, FORGED)
    after = verify_log(engine)
    assert after.intact  # by itself, the log cannot tell
    assert after.head != before
    (problem,) = verify_log(engine, shift).problems
    assert problem.startswith(
        "the chain of moderator 2 ends at position 2, but the witness covers it up"
    )
    lines = exported(engine, with_notes=True)
    assert verify_export(lines).intact
    assert not verify_export(lines, shift).intact
    # An end that was written anew is not the one that was witnessed.
    decide_all(engine, [ben], note="something else", policy_version="2")
    assert verify_log(engine).intact
    problems = verify_log(engine, shift).problems
    assert [problem for problem in problems if "is not the one that was witnessed" in problem]


def test_what_was_witnessed_stays_true_as_the_log_grows(engine, shift, ann, day, new_item):
    intake.enqueue(engine, [new_item("c7", kind="gold")], day, kinds=["gold"])  # type: ignore[list-item, arg-type]
    lease = held(engine, ann)
    skip(engine, ann, lease)
    report = verify_log(engine, shift)
    assert (report.decisions, report.problems) == (7, ())
    assert report.witness != shift


def test_a_witness_that_is_none_is_refused(engine):
    for witness in ("x", "[[1]]", '[[1, 2, "zz"]]', '{"1": 2}', "[" * 100_000):
        with pytest.raises(LedgerError, match="the witness is not valid"):
            verify_log(engine, witness)


def test_the_problems_of_a_ruined_log_are_counted_and_the_first_are_named(engine, ann, ben, fill):
    fill(60)
    decide_all(engine, [ann, ben])
    tamper(engine, "UPDATE decision SET hash = sha256(''); UPDATE moderator SET role = 'admin'")
    report = verify_log(engine)
    for person in (1, 2):
        named = [
            problem for problem in report.problems
            if re.match(rf"decision .* \(moderator {person}, .* was changed", problem)
        ]  # fmt: skip
        assert len(named) == 20
    assert (report.decisions, report.problems[-1]) == (60, "38 more problems of these kinds")
    assert any("has the role admin" in problem for problem in report.problems)


def test_an_outsider_verifies_an_export_as_the_database_would(engine, shift):
    whole, without_notes = exported(engine, with_notes=True), exported(engine)
    for report in (verify_export(whole), verify_export(without_notes, shift)):
        assert (report.decisions, report.problems) == (6, ())
        assert report.head == verify_log(engine).head
        # The witness of an export has no chain of events.
        heads = witness_in(shift).heads
        assert witness_in(report.witness).heads == {n: end for n, end in heads.items() if n > 0}
    assert not verify_export(without_notes[:2] + without_notes[3:]).intact
    forged = without_notes[2].replace('"label": 0', '"label": 1')
    assert forged != without_notes[2]
    assert not verify_export([*without_notes[:2], forged, *without_notes[3:]]).intact
    # Equal notes have different commitments.
    assert len({json.loads(line)["note_commitment"] for line in without_notes}) == 6


def test_a_note_and_texts_can_be_erased_and_the_chain_verifies(engine, shift):
    """What is erased is named, as no event says so; an export of the log is intact."""
    tamper(
        engine,
        "UPDATE decision SET note = NULL, note_salt = NULL WHERE id = 3; "
        "UPDATE review_item SET text = '', text_salt = NULL WHERE id = 4",
    )
    report = verify_log(engine, shift)
    assert report.problems == (
        "item 4 has other texts than those that were judged",
        "the note of decision 3 is missing, and no event says that it was erased",
    )
    assert report.heads == witness_in(shift).heads
    assert verify_export(exported(engine), shift).intact


def test_of_some_rows_each_is_recomputed(engine, shift):
    lines = exported(engine, with_notes=True)
    some = [lines[2], lines[3], lines[5]]
    assert verify_export(some, partial=True).intact
    assert not verify_export(some).intact
    assert not verify_export([*some, lines[1]], partial=True).intact
    forged = lines[2].replace('"label": 0', '"label": 1')
    assert forged != lines[2]
    assert not verify_export([forged], partial=True).intact


def test_a_line_that_is_no_decision_is_known_from_its_number(engine, shift):
    lines = exported(engine, with_notes=True)
    for line in ("x", "[]", "{}", "null", b"\xff", "[" * 100_000, '{"dt": 1}', "1" * 5_000):
        (problem,) = verify_export([*lines, "", line]).problems
        assert problem == "line 8 is not a decision as Modwatch exports it"
    for name, value in (
        ("moderator_id", [1]), ("position", True), ("hash", "zz"), ("seconds", "x"),
        ("note", "\ud800"), ("decided_at", "2026-01-01T00:00:00"), ("dt", None), ("hash", None),
        ("text_commitment", None), ("item_digest", 1), ("label", {"a": 1}),
    ):  # fmt: skip
        changed = json.dumps(json.loads(lines[-1]) | {name: value})
        assert not verify_export([*lines[:-1], changed]).intact, name


def test_an_empty_log_is_whole(engine):
    report = verify_export([])
    assert (report.decisions, report.intact, report.heads) == (0, True, {})
    assert report.head == verify_log(engine).head
    assert GENESIS.hex() not in report.witness
