"""Texts that are erased by age: the log says before which day, and nothing else may be missing."""

import datetime as dt

import pytest
from databases import Uncommitted, execute, scalar, tamper, unguarded
from sqlalchemy import Engine, text

from modwatch.common.text import ERASED
from modwatch.review.erasure import erase_old
from modwatch.review.events import record_event
from modwatch.review.log.decision_log import text_commitment_sql
from modwatch.review.log.verification import verify_log
from review.labelling import held, label_next

NEXT = dt.timedelta(days=1)


def erase(engine: Engine, before: dt.date, *held: dt.date) -> int:
    with engine.begin() as connection:
        return erase_old(connection, before, held)


@pytest.fixture
def old(engine, fill, ann, ben, day):
    """Erase four items before this day: one labelled with a note, one skipped, one waiting."""
    fill(4)
    label_next(engine, ann, note="a note")
    held(engine, ben)
    assert erase(engine, day + NEXT) == 3
    return day + NEXT


def texts(engine: Engine) -> list[tuple[str, str]]:
    with engine.connect() as connection:
        rows = connection.execute(text("SELECT status, text FROM review_item ORDER BY id"))
        return sorted((status, words) for status, words in rows)


def test_old_texts_go_with_their_notes_and_the_log_verifies(engine, old):
    assert [words for _, words in texts(engine)].count(ERASED) == 3
    assert [status for status, words in texts(engine) if words != ERASED] == ["waiting"]  # leased
    assert scalar(engine, "SELECT count(note) FROM decision") == 0
    assert verify_log(engine).problems == ()
    assert erase(engine, old) == 0


def test_only_what_was_erased_may_be_missing(engine, old):
    for forgery in (
        "UPDATE review_item SET text = 'other words' WHERE status = 'decided'",
        "UPDATE review_item SET parent_text = 'other words' WHERE status = 'decided'",
        "UPDATE review_item SET prob = 0.9 WHERE status = 'decided'",
        "UPDATE decision SET label = 1 - label",
        "UPDATE decision SET note_commitment = sha256('x')",
    ):
        with unguarded(engine) as connection:
            connection.execute(text(forgery))
            assert len(verify_log(Uncommitted(connection)).problems) == 1, forgery
            connection.rollback()


def test_later_days_are_not_covered(engine, old):
    tamper(
        engine,
        "UPDATE event SET details = details || jsonb_build_object('before', '2001-01-01') "
        "WHERE action = 'erase'",
    )
    problems = " ".join(verify_log(engine).problems)
    assert "has other texts" in problems
    assert "no event says that it was erased" in problems


def test_items_of_open_audits_are_kept(engine, fill, day, ann):
    fill(2)
    label_next(engine, ann)
    assert erase(engine, day + NEXT, day) == 0
    # as if retention had taken it
    execute(engine, "UPDATE review_item SET text = :erased", erased=ERASED)
    assert "has other texts" in " ".join(verify_log(engine).problems)
    erase(engine, day + NEXT)
    assert verify_log(engine).problems == ()


def test_an_erasure_covers_no_other_words_and_no_day_to_come(engine, fill, ann):
    fill(1)
    label_next(engine, ann)
    with engine.begin() as connection:
        connection.execute(text("UPDATE review_item SET text = 'other words'"))
        query = text(f"SELECT encode({text_commitment_sql('review_item')}, 'hex') FROM review_item")
        items = {"1": connection.scalar(query)}
        record_event(connection, "erase", actor_id=None, comments=[], items=items, notes=[])
        record_event(connection, "erase", actor_id=None, before="9999-12-31", held=[])
    first, second = verify_log(engine).problems
    assert (first[-12:], "has other texts" in second) == ("is malformed", True)
