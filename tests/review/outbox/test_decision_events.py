"""The relay against the real queue, and against transactions that commit in every order."""

import datetime as dt
import random
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from databases import execute
from desk import Desk
from posting import post
from sqlalchemy import Connection, Engine, select, text

from modwatch.common.errors import DatabaseError, LeaseConflictError, QueueError
from modwatch.review.log import verification
from modwatch.review.log.decision_log import COVERED, append
from modwatch.review.log.labels import current_labels
from modwatch.review.outbox.decision_events import feed, relay_decisions
from modwatch.review.outbox.messages import OutboxMessage
from modwatch.review.people import accounts
from modwatch.review.people.accounts import Moderator
from modwatch.review.queue import dismissal, intake
from modwatch.review.queue.dismissal import Criteria
from modwatch.review.tables import outbox_delivery, outbox_message
from review.labelling import cancel

Fill = Callable[[int], None]


def messages(engine: Engine) -> list[Any]:
    with engine.connect() as connection:
        return list(connection.execute(select(outbox_message).order_by(outbox_message.c.id)))


def relayed(engine: Engine) -> list[tuple[str, str, int | None]]:
    """Relay, and return all events so far."""
    relay_decisions(engine, [])
    payloads = [row.payload for row in messages(engine)]
    return [(item["comment_id"], item["event"], item["label"]) for item in payloads]


def write(connection: Connection, desk: Desk, who: Moderator, comment_id: str) -> None:
    """Log a label in a transaction that stays open."""
    content = {
        **dict.fromkeys(name for name in COVERED if name not in ("position", "moderator_id")),
        "note": None,
        "item_id": desk.item_id(comment_id),
        "dt": dt.date(2026, 1, 1),
        "comment_id": comment_id,
        "kind": "review",
        "item_version": 1,
        "action": "label",
        "label": 1,
        "outcome": "decided",
        "idempotency_key": comment_id,
        "decided_at": dt.datetime(2026, 1, 2, tzinfo=dt.UTC),
    }
    append(connection, who.id, [content])


def test_a_decision_becomes_one_message_for_each_channel(engine, fill, desk, ann):
    fill(2)
    assert relay_decisions(engine, ["platform"]) == 0
    done = desk.label(
        ann.id, "c0", policy_version="7", policy_code="hate.slur", note="private thought"
    )
    categories = {"hate.slur": "ILLEGAL_OR_HARMFUL_SPEECH"}
    assert relay_decisions(engine, ["platform", "archive"], category_of=categories.get) == 1
    [row] = messages(engine)
    assert (row.key, row.topic, row.series, row.sequence, row.dt) == (
        f"decision-{done.id}", "decision", "2026-01-01/c0", 1, dt.date(2026, 1, 1),
    )  # fmt: skip
    assert row.payload == {
        "schema_version": 1,
        "event": "decided",
        "comment_id": "c0",
        "dt": "2026-01-01",
        "label": 1,
        "policy_version": "7",
        "policy_code": "hate.slur",
        "dsa_category": "ILLEGAL_OR_HARMFUL_SPEECH",
        "decided_at": done.decided_at.isoformat(timespec="microseconds"),
        "decision_id": done.id,
        "sequence": 1,
    }
    page = (Path(__file__).parents[3] / "docs" / "webhooks.md").read_text()
    section = page.partition("## The event")[2].partition("\n## ")[0]
    assert sorted(row.payload) == sorted(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE))
    with engine.connect() as connection:
        pending = connection.execute(
            select(outbox_delivery.c.channel, outbox_delivery.c.message_id)
        )
        assert sorted(pending) == [("archive", row.id), ("platform", row.id)]
    desk.label(ann.id, "c1", policy_code="gone")
    assert relay_decisions(engine, [], category_of=lambda _: None) == 1
    assert messages(engine)[1].payload["dsa_category"] is None


def test_a_channel_misses_nothing_that_was_reported_before_it_was_named(engine, fill, desk, ann):
    fill(4)
    for number, channels in enumerate([[], ["first"], [], ["first", "second"]]):
        desk.label(ann.id, f"c{number}")
        relay_decisions(engine, channels)
    got = select(outbox_delivery.c.channel, outbox_delivery.c.message_id)
    with engine.connect() as connection:
        assert sorted(connection.execute(got)) == [
            (channel, row.id) for channel in ("first", "second") for row in messages(engine)
        ]
    assert relay_decisions(engine, ["third"]) == 0
    with engine.connect() as connection:
        assert len(connection.execute(got).all()) == 12


def test_each_change_of_an_outcome_is_reported_in_turn(engine, fill, desk, ann):
    fill(1)
    done = desk.label(ann.id, "c0", 1)
    assert relayed(engine) == [("c0", "decided", 1)]
    desk.undo(done)
    desk.label(ann.id, "c0", 0, policy_code="fine")
    desk.correct(ann.id, "c0", 1, policy_code="spam")
    desk.correct(ann.id, "c0", 1, policy_code="hate")
    desk.correct(ann.id, "c0", 1, policy_code="hate")  # says nothing new
    assert relayed(engine)[1:] == [
        ("c0", "withdrawn", None),
        ("c0", "decided", 0),
        ("c0", "changed", 1),
        ("c0", "changed", 1),
    ]
    rows = messages(engine)
    assert [row.sequence for row in rows] == [1, 2, 3, 4, 5]
    assert rows[1].payload["policy_code"] is rows[1].payload["dsa_category"] is None


def test_what_settles_nothing_or_measures_people_is_not_reported(
    engine, fill, desk, ann, ben, day,
    new_item
):  # fmt: skip
    fill(3)
    desk.skip(ann.id, "c0")
    desk.undo(desk.escalate(ann.id, "c1"))
    done = dismissal.start(engine, ben.id, Criteria(comment_ids=("c2",)), "too late", 1)
    dismissal.resume(engine, done.id)
    cancel(engine, ben.id, done.id)
    for kind in ("retest", "gold", "audit"):
        intake.enqueue(engine, [new_item(kind, kind=kind)], day, kinds=[kind])
        desk.label(ann.id, kind, kind=kind)
    assert relayed(engine) == []


def test_of_several_labels_the_last_word_is_reported(
    engine, new_item, desk, ann, ben,
    lea, day
):  # fmt: skip
    intake.enqueue(engine, [new_item(name, labels_wanted=2) for name in ("c0", "c1")], day)
    for name, labels in {"c0": (1, 1), "c1": (1, 0)}.items():
        for who, value in zip((ann, ben), labels, strict=True):
            desk.label(who.id, name, value)
    assert relayed(engine) == [("c0", "decided", 1)]
    desk.undo(desk.label(lea.id, "c1", 0))
    assert relayed(engine)[1:] == [("c1", "decided", 0), ("c1", "withdrawn", None)]
    # Of two items of a comment, too.
    intake.enqueue(engine, [new_item("c2")], day + dt.timedelta(1))
    intake.enqueue(engine, [new_item("c2", kind="imported")], day + dt.timedelta(1),
                   kinds=["imported"])  # fmt: skip
    desk.label(ann.id, "c2", 1)
    desk.undo(desk.label(ben.id, "c2", 0, kind="imported"))
    assert relayed(engine)[3:] == [("c2", "decided", 1), ("c2", "changed", 0), ("c2", "changed", 1)]


def test_no_transaction_that_commits_late_is_skipped(engine, fill, desk, ann, ben):
    fill(4)
    carl = accounts.create_moderator(engine, "carl", "moderator")
    with ExitStack() as open_still:
        early = open_still.enter_context(engine.connect())
        late = open_still.enter_context(engine.connect())
        write(early, desk, ann, "c0")
        write(late, desk, ben, "c1")
        late.commit()
        assert relayed(engine) == []  # `early` may still write in front of it
        desk.label(carl.id, "c2")
        assert relayed(engine) == []
        early.commit()
    assert [name for name, _, _ in relayed(engine)] == ["c0", "c1", "c2"]
    with engine.connect() as connection:  # what is rolled back holds nothing up
        write(connection, desk, ann, "c3")
        connection.rollback()
    desk.label(ben.id, "c3")
    assert [name for name, _, _ in relayed(engine)] == ["c0", "c1", "c2", "c3"]


def test_several_relays_at_once_tell_everything_once(engine, fill, desk, ann):
    fill(20)
    for number in range(20):
        desk.label(ann.id, f"c{number}")
    with ThreadPoolExecutor(4) as pool:
        done = [pool.submit(relay_decisions, engine, ["platform"], batch=3) for _ in range(4)]
        assert sum(decision.result(60) for decision in done) == 20
    assert [row.payload["comment_id"] for row in messages(engine)] == [f"c{n}" for n in range(20)]


def test_a_failure_half_way_tells_nothing_twice(engine, fill, desk, ann):
    fill(4)
    for number in range(4):
        desk.label(ann.id, f"c{number}", policy_code=f"code{number}")

    def broken(code: str) -> str | None:
        if code == "code3":
            raise RuntimeError
        return None

    with pytest.raises(RuntimeError):
        relay_decisions(engine, [], category_of=broken, batch=2)
    assert len(messages(engine)) == 2
    assert [name for name, _, _ in relayed(engine)] == ["c0", "c1", "c2", "c3"]


def test_it_stops_when_it_is_told_to_and_says_when_the_log_was_moved(engine, fill, desk, ann):
    fill(3)
    for number in range(3):
        desk.label(ann.id, f"c{number}")
    assert relay_decisions(engine, [], batch=1, go_on=lambda: False) == 1
    assert relay_decisions(engine, [], batch=1) == 2
    execute(engine, "UPDATE outbox_cursor SET transaction_id = '99999999999'")
    with pytest.raises(DatabaseError, match="pg_resetwal"):
        relay_decisions(engine, [])


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(1, 6))]
)
def test_the_last_word_is_what_stands_in_the_queue(
    engine, new_item, desk, ann, ben,
    lea, day, seed
):  # fmt: skip
    """Whatever people do, in any order, with relays in between."""
    draw = random.Random(seed)
    names = [f"c{n}" for n in range(6)]
    items = [new_item(name, labels_wanted=n % 3 + 1) for n, name in enumerate(names)]
    intake.enqueue(engine, items, day)
    mine = [person.id for person in (ann, ben, lea)]
    done: list[Any] = []
    for _ in range(80):
        who, name, value = draw.choice(mine), draw.choice(names), draw.randint(0, 1)
        try:
            match draw.choice(["label", "label", "undo", "correct", "escalate", "skip", "relay"]):
                case "label":
                    done.append(desk.label(who, name, value))
                case "escalate":
                    done.append(desk.escalate(who, name))
                case "skip":
                    done.append(desk.skip(who, name))
                case "undo" if done:
                    desk.undo(done.pop())
                case "correct":
                    desk.correct(who, name, value)
                case _:
                    relay_decisions(engine, [], batch=draw.randint(1, 5))
        except (AssertionError, QueueError, LeaseConflictError):
            pass  # it was not to be had
    with engine.connect() as connection:
        actions = set(connection.scalars(text("SELECT action FROM decision")))
    assert {"label", "adjudicate", "undo", "correct"} <= actions
    last = {name: label for name, _, label in relayed(engine)}
    stands = {row["comment_id"]: row["label"] for part in current_labels(engine, day)
              for row in part.to_pylist()}  # fmt: skip
    assert stands == {name: label for name, label in last.items() if label is not None}
    for name in names:
        mine_only = [row for row in messages(engine) if row.payload["comment_id"] == name]
        assert [row.sequence for row in mine_only] == list(range(1, len(mine_only) + 1))
    assert verification.verify_log(engine).problems == ()


ALERT = OutboxMessage(
    key="a", topic="incident", series="a", sequence=1, dt=dt.date(2026, 1, 1), payload={"a": 1}
)


@pytest.fixture
def decide(engine, fill, ann):
    """Label the next comments, and relay."""
    fill(9)
    desk, names = Desk(engine=engine), iter(range(9))

    def label(n: int) -> None:
        for _ in range(n):
            desk.label(ann.id, f"c{next(names)}")
        relay_decisions(engine, [])

    return label


def read(engine: Engine, limit: int, after: str | None = None) -> list[str]:
    """Return the comments of all pages."""
    found: list[Any] = []
    while (page := feed(engine, after, limit)).events:
        found += page.events
        after = page.next_cursor
    return [match["comment_id"] for match in found]


def test_pages_of_any_length_hold_everything_once(engine, decide):
    empty = feed(engine)
    assert empty.events == ()
    assert feed(engine, empty.next_cursor) == empty
    decide(3)
    post(engine, ALERT, ["webhook"])  # what is in between is none of the feed's
    decide(3)
    for limit in (1, 2, 5, 6, 1000):
        assert read(engine, limit) == [f"c{n}" for n in range(6)]
        assert read(engine, limit, empty.next_cursor) == [f"c{n}" for n in range(6)]
    # The events are what the webhook posts, and what follows a cursor stays the same.
    with engine.connect() as connection:
        posted = list(connection.scalars(select(outbox_message.c.payload)))
    assert list(feed(engine).events) == [event for event in posted if event != ALERT.payload]
    first = feed(engine, None, 1)
    second = feed(engine, first.next_cursor, 1)
    decide(1)
    assert feed(engine, None, 1) == first
    assert feed(engine, first.next_cursor, 1) == second
    assert read(engine, 10, second.next_cursor) == ["c2", "c3", "c4", "c5", "c6"]


def test_neither_cursors_of_others_nor_pages_without_limit(engine):
    for cursor in (
        "", "after:1", "-1", "01", "1.0", "é", "\x00", "a" * 5000, "1" * 19, "1\n", "١",
        "' OR 1=1 --",
    ):  # fmt: skip
        with pytest.raises(QueueError, match="not one of the decision feed"):
            feed(engine, cursor)
    for limit in (-1, 0, 1001):
        with pytest.raises(QueueError, match="1 to 1000"):
            feed(engine, None, limit)
