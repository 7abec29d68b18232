"""Whatever the owner takes out of a table that figures read, or writes there, is missed.

Nothing hinders them: every constraint and trigger is dropped. What no problem names changes no
figure.
"""

import random
from collections import Counter
from datetime import date, timedelta

import pytest
from databases import Uncommitted, execute, scalar, unguarded
from malformed import attacks, drop_rules
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from modwatch.common.errors import DatabaseError
from modwatch.review.log import labels
from modwatch.review.log.verification import verify_log
from modwatch.review.outbox.decision_events import relay_decisions
from modwatch.review.people import changes
from modwatch.review.policy.tree import load_policy, register_policy
from modwatch.review.quality_control import comparisons
from modwatch.review.quality_control.gold import GoldComment, add_gold
from modwatch.review.queue import deciding, dismissal, intake, metrics
from review.labelling import (
    escalate,
    held,
    held_escalated,
    label,
    label_all,
    label_next,
)

DAY = date(2026, 1, 1)

RETEST = """
    INSERT INTO review_item (dt, comment_id, kind, text, queue, reason, stratum,
        inclusion_probability, rank, review_score, prob, uncertainty, model_version, reserved_for)
    SELECT dt, comment_id, 'retest', text, queue, reason, stratum,
        inclusion_probability, rank, review_score, prob, uncertainty, model_version, 1
    FROM review_item WHERE comment_id = 'c2' AND kind = 'review'
"""


@pytest.fixture
def worked(engine, ann, ben, cai, lea, new_item):
    """Labels that were undone, overturned, corrected, adjudicated; gold, a retest, dismissals."""
    register_policy(engine, load_policy())
    gold = [GoldComment(comment_id=f"g{n}", text="known", label=1, source="panel") for n in (1, 2)]
    add_gold(engine, gold)
    changes.set_queues(engine, cai.id, ["general"])
    routed = [new_item(f"c{n}", n + 1) for n in range(4)]
    again = [new_item("c0", n, kind="confirmation", round=n) for n in (2, 3)]
    intake.enqueue(engine, [*routed, *again], DAY)
    first = label_next(engine, ann, 1)
    back = deciding.undo(
        engine, moderator_id=ann.id, decision_id=first.id, idempotency_key="undone"
    )
    label(engine, ann, back, 0)
    escalate(engine, ann, held(engine, ann))
    label(engine, lea, held_escalated(engine, lea))
    intake.enqueue(engine, [new_item("g1", kind="gold")], DAY, kinds=["gold"])
    label_all(engine, ann, lambda _: 0)
    execute(engine, RETEST)
    for person, value in ((ann, 1), (ben, 1), (cai, 0)):
        label_all(engine, person, lambda _, value=value: value)
    corrected = "FROM review_item WHERE comment_id = 'c3' AND kind = 'review'"
    deciding.correct(
        engine, moderator_id=lea.id, item_id=scalar(engine, f"SELECT id {corrected}"), label=1,
        version=scalar(engine, f"SELECT version {corrected}"), idempotency_key="corrected",
        reason="mistake", others_too=True,
    )  # fmt: skip
    intake.enqueue(engine, [new_item("closed")], DAY + timedelta(1))
    spam = dismissal.Criteria(comment_ids=("closed",))
    expected = dismissal.matching(engine, spam)
    dismissal.resume(engine, dismissal.start(engine, lea.id, spam, "spam", expected).id)
    relay_decisions(engine, ["platform"])
    intake.enqueue(engine, [new_item("waiting")], DAY + timedelta(2))
    assert verify_log(engine).problems == ()
    assert scalar(engine, "SELECT count(DISTINCT kind) FROM decision") == 4
    return engine


#: Of undecided items, which no log knows, a measurement of the queue may count others.
FIGURES = (
    *(str(query.text) for query in (labels._CURRENT, labels._CONFIRMING, labels._GIVEN)),
    *comparisons._COMPARISONS.values(),
    comparisons._LABELS_OF_COMMENTS,
    *comparisons._DAY_ANSWERS,
    f"SELECT decided, decision_median FROM ({metrics._DAY_QUEUE.text}) AS queue",
)

VALUES = {
    "day": DAY, "next": date(2100, 1, 1), "first": DAY, "last": DAY, "begin": DAY,
    "end": date(2100, 1, 1), "queues": None, "kinds": ["review"], "lag": timedelta(0),
    "kind": "review",
}  # fmt: skip


def figures(connection: Connection) -> list[object]:
    """Return what figures are computed from, as text; a value may be one that Python has not."""
    found: list[object] = []
    for query in FIGURES:
        rows = (
            f"SELECT array_agg(one ORDER BY one) FROM ({query}) AS read, CAST(read AS text) AS one"
        )
        try:
            with connection.begin_nested():
                found.append(connection.scalar(text(rows), VALUES))
        except (DBAPIError, DatabaseError) as exc:
            found.append(type(exc))
    return found


def attacked(connection: Connection, chance: random.Random, values: int) -> Counter[str]:
    """Return how many attacks were refused, found, and silent; those must change no figure."""
    before, counts = figures(connection), Counter[str]()
    for attack in list(attacks(connection, chance, values)):
        with connection.begin_nested() as attempt:
            try:
                with connection.begin_nested():
                    connection.exec_driver_sql(attack)
            except (DBAPIError, DatabaseError):
                counts["refused"] += 1
                continue
            problems = verify_log(Uncommitted(connection)).problems
            assert "cannot be read" not in str(problems), attack
            assert problems or figures(connection) == before, attack
            counts["found" if problems else "silent"] += 1
            attempt.rollback()
    return counts


def test_what_no_problem_names_changes_no_figure(worked):
    with unguarded(worked) as connection:
        assert (
            sum(map(bool, figures(connection))) == len(FIGURES) - 1
        )  # no item with several labels
        drop_rules(connection)
        assert verify_log(Uncommitted(connection)).problems == ()
        counts = attacked(connection, random.Random(1), 2)
        connection.rollback()
    assert counts["found"] > 150, counts
