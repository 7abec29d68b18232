"""Checks: items by which people are measured, and which look like any other.

A *retest* is a comment that the same person labelled two weeks ago or more; a *gold* item is one
whose label is known. Both are for one person, who meets them among their other items. `agreement`
reads the answers; no estimate of the day does.
"""

import datetime as dt
import logging
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    TextClause,
    and_,
    exists,
    func,
    literal,
    or_,
    select,
    text,
    true,
)
from sqlalchemy.dialects import postgresql

from modwatch.errors import QueueError
from modwatch.review.quality_control.activity import (
    STREAM,
    Person,
    at_work,
    times_of_work,
    wait_until_work,
)
from modwatch.review.quality_control.gold import withdraw
from modwatch.review.queue.lanes import GENERAL, Lanes, load_lanes
from modwatch.review.tables import decision, gold_comment, lane, review_item

logger = logging.getLogger(__name__)

#: Checks of one kind that a person meets in a day, however much they label.
MOST_A_DAY = 50

KINDS = ("retest", "gold")

#: Held while checks are queued: two runs come one after the other.
_LOCK = 7_104_382_665_190_003

#: Whoever sees that ids behind those of the day are always checks need not guess. So items of the
#: day that nobody has seen move to new ids, and checks take theirs.
_FREE_IDS = text(
    """
    WITH unseen AS MATERIALIZED (
        SELECT id FROM review_item
        WHERE dt = :day AND status = 'waiting' AND kind = 'review' AND reserved_for IS NULL
            AND version = 1 AND claimed_at IS NULL
        ORDER BY random() LIMIT :n FOR UPDATE SKIP LOCKED
    ), moved AS (
        UPDATE review_item SET id = DEFAULT FROM unseen WHERE review_item.id = unseen.id
    )
    SELECT id FROM unseen
    """
)


@dataclass(frozen=True, kw_only=True)
class Checks:
    """What `queue_checks` put into the queue."""

    #: Who labelled lately.
    people: int
    retests: int
    gold: int


@dataclass(frozen=True, kw_only=True)
class _Plan:
    """What is to be queued for one day."""

    day: dt.date
    now: dt.datetime
    #: By kind, in [0, 1], of what a person labels a day.
    shares: Mapping[str, float]
    salt: str
    least_days: float
    lanes: Lanes
    #: How many checks a person has waiting, by person and kind.
    waiting: Mapping[tuple[int, str], int]
    #: Persons and kinds that were served for this day before.
    done: frozenset[tuple[int, str]]


def queue_checks(
    engine: Engine,
    day: dt.date,
    *,
    retest_share: float,
    gold_share: float,
    salt: str,
    least_days: float = 14,
    lanes: Lanes | None = None,
) -> Checks:
    """Queue the retests and gold items of `day` for everybody at work; return how many.

    As many a person as `retest_share` and `gold_share` of what they label a day, at most 50 of
    each, less those that still wait. They come within 24 hours, at the times of day at which the
    person works, and have ids among those of the day: queue the day first. Not drawn are comments
    whose label the person took back or corrected, that they met in another item, or that were
    retested before; gold that they have seen or may meet; other people's queues and reasons that
    they opted out of. `salt` keeps outsiders from predicting the draw. The same call again adds
    nothing. One transaction; the rows read are bounded by the log's last days, the day's items and
    the number of people. Raises `QueueError` for shares outside [0, 1] or days below 0.
    """
    _refuse(retest_share, gold_share, least_days)
    options = {
        "shares": {"retest": retest_share, "gold": gold_share},
        "salt": salt,
        "least_days": least_days,
        "lanes": lanes or load_lanes(),
    }
    with engine.begin() as connection:
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
        plan = _plan(connection, day, options)
        people = at_work(connection, least_days)
        rows = [row for person in people for row in _rows(connection, person, plan)]
        random.Random(f"{salt} {day}").shuffle(rows)  # noqa: S311 - ids shall not tell the person
        _insert(connection, day, rows)
    kinds = Counter(row["kind"] for row in rows)
    done = Checks(people=len(people), retests=kinds["retest"], gold=kinds["gold"])
    about = {"event": "checks_queued", "day": str(day), **asdict(done)}
    logger.info("Checks were queued.", extra=about)
    return done


def retire_checks(engine: Engine, before: dt.date) -> int:
    """Withdraw the checks of the days before `before` that nobody decided; return how many."""
    with engine.begin() as connection:
        return withdraw(connection, review_item.c.dt < before, review_item.c.kind.in_(KINDS))


def _refuse(retest_share: float, gold_share: float, least_days: float) -> None:
    for name, share in (("retest", retest_share), ("gold", gold_share)):
        if not 0 <= share <= 1:  # NaN fails too
            raise QueueError(f"the {name} share is {share}; it must lie in [0, 1]")
    if least_days < 0:
        raise QueueError(f"retests come {least_days} days after the label; ask for 0 or more")


def _plan(connection: Connection, day: dt.date, options: Mapping[str, Any]) -> _Plan:
    by = (review_item.c.reserved_for, review_item.c.kind)
    waiting = connection.execute(
        select(*by, func.count())
        # Written out, so that the partial index is used.
        .where(text("status = 'waiting' AND reserved_for IS NOT NULL"))
        .group_by(*by)
    )
    done = connection.execute(
        select(*by).where(review_item.c.dt == day, review_item.c.kind.in_(KINDS)).distinct()
    )
    return _Plan(
        day=day,
        now=connection.execute(select(func.now())).scalar_one(),
        waiting={(person, kind): n for person, kind, n in waiting},
        done=frozenset((person, kind) for person, kind in done),
        **options,
    )


def _rows(connection: Connection, person: Person, plan: _Plan) -> list[dict[str, Any]]:
    """Return the new items of one person."""
    chance = random.Random(f"{plan.salt} {plan.day} {person.id}")  # noqa: S311 - the salt is secret
    seed = f"{plan.salt} {plan.day} {person.id} "
    n = {kind: _wanted(person, kind, plan, chance) for kind in KINDS}
    retests = draw_retests(connection, person, n["retest"], chance, plan.least_days)
    gold = draw_gold(connection, person, n["gold"], seed, plan.lanes)
    retested = {row["comment_id"] for row in retests}
    gold = [row for row in gold if row["comment_id"] not in retested]
    if not retests and not gold:
        return []
    times = times_of_work(connection, person.id)
    return [
        {**row, **_place(person, kind, plan, wait_until_work(plan.now, times, chance))}
        for kind, drawn in (("retest", retests), ("gold", gold))
        for row in drawn
    ]


def _wanted(person: Person, kind: str, plan: _Plan, chance: random.Random) -> int:
    """Return how many checks of a kind the person gets; 0 or less: none."""
    # Rounded by chance: 1 % of 50 labels is one every second day.
    expected = int(plan.shares[kind] * person.pace + chance.random())
    if (person.id, kind) in plan.done:
        return 0
    return min(expected, MOST_A_DAY) - plan.waiting.get((person.id, kind), 0)


def _place(person: Person, kind: str, plan: _Plan, wait: dt.timedelta) -> dict[str, Any]:
    serve_by = plan.now + wait
    return {
        "dt": plan.day,
        "kind": kind,
        "reason": kind,
        "inclusion_probability": 1.0,
        "reserved_for": person.id,
        "serve_by": serve_by,
        "due_at": serve_by + dt.timedelta(hours=plan.lanes.of(kind).hours),
    }


def _insert(connection: Connection, day: dt.date, rows: Sequence[Mapping[str, Any]]) -> None:
    if not rows:
        return
    free = connection.scalars(_FREE_IDS, {"day": day, "n": len(rows)}).all()
    named = [{"id": number, **row} for number, row in zip(free, rows, strict=False)]
    for some in (named, rows[len(free) :]):
        if some:
            connection.execute(_insertion(some[0]), list(some))
    # A queue without a lane has no escalated items for a lead; one lane of it is enough.
    nameless = (
        select(review_item.c.queue, review_item.c.reason)
        .where(
            review_item.c.dt == day,
            review_item.c.kind.in_(KINDS),
            ~exists().where(lane.c.queue == review_item.c.queue),
        )
        .distinct()
    )
    connection.execute(
        postgresql.insert(lane).from_select(["queue", "reason"], nameless).on_conflict_do_nothing()
    )


def _insertion(row: Mapping[str, Any]) -> TextClause:
    names, values = ", ".join(row), ", ".join(f":{name}" for name in row)
    return text(
        f"INSERT INTO review_item ({names}) OVERRIDING SYSTEM VALUE "  # noqa: S608 - our own names
        f"VALUES ({values}) ON CONFLICT DO NOTHING"
    )


#: Labels of a person among which retests are drawn, the latest of those that are old enough.
LATEST_LABELS = 20_000

#: Gold comments among which those of a person and day are drawn.
GOLD_DRAWN = 2_000

_COPIED = (
    "comment_id", "text", "parent_text", "language", "platform", "queue", "stratum", "rank",
    "review_score", "prob", "uncertainty", "model_version",
)  # fmt: skip

#: A gold comment was neither routed nor scored today.
_NEUTRAL = {
    "stratum": 0,
    "rank": 1,
    "review_score": 0.0,
    "prob": 0.5,
    "uncertainty": 0.25,
    "model_version": "",
}


def draw_retests(
    connection: Connection, person: Person, n: int, chance: random.Random, least_days: float
) -> list[dict[str, Any]]:
    """Return at most `n` comments that the person labelled long ago, and met only then.

    Places in their chain are drawn first, and only the rows there are read.
    """
    places = range(max(1, person.last_old - LATEST_LABELS + 1), person.last_old + 1)
    if n < 1 or not places:
        return []
    drawn = chance.sample(places, min(len(places), 20 * n + 50))
    found = connection.execute(
        select(decision.c.position, *(review_item.c[name] for name in _COPIED))
        .join(review_item, review_item.c.id == decision.c.item_id)
        .where(
            decision.c.moderator_id == person.id,
            decision.c.position.in_(drawn),
            decision.c.action == "label",
            decision.c.kind.in_(STREAM),
            decision.c.decided_at <= func.now() - dt.timedelta(days=least_days),
            review_item.c.reason.not_in(person.opt_outs),
            _works(person, review_item.c.queue),
            ~_met(person, review_item.c.comment_id, but=decision.c.id),
        )
    ).mappings()
    by_place = {row["position"]: {name: row[name] for name in _COPIED} for row in found}
    return [by_place[place] for place in drawn if place in by_place][:n]


def draw_gold(
    connection: Connection, person: Person, n: int, seed: str, lanes: Lanes
) -> list[dict[str, Any]]:
    """Return at most `n` gold comments that the person neither met nor may meet otherwise."""
    if n < 1:
        return []
    order = func.md5(literal(seed) + gold_comment.c.comment_id)
    by = {"none": None, "language": "language", "platform": "platform"}[lanes.queue_by]
    queue = func.coalesce(gold_comment.c[by], GENERAL) if by else literal(GENERAL)
    pool = (
        select(gold_comment, order.label("turn"), queue.label("queue"))
        .where(gold_comment.c.retired_at.is_(None))
        .order_by("turn")
        .limit(GOLD_DRAWN)
        .subquery()
    )
    open_item = review_item.alias("open_item")
    coming = exists().where(
        open_item.c.comment_id == pool.c.comment_id,
        open_item.c.reserved_for.is_(None),
        open_item.c.status.in_(["waiting", "blocked", "escalated"]),
    )
    known = [pool.c[name] for name in _COPIED if name not in _NEUTRAL]
    found = connection.execute(
        select(*known)
        .where(_works(person, pool.c.queue), ~coming, ~_met(person, pool.c.comment_id))
        .order_by(pool.c.turn)
        .limit(n)
    ).mappings()
    return [{**row, **_NEUTRAL} for row in found]


def _works(person: Person, queue: ColumnElement[str]) -> ColumnElement[bool]:
    return true() if person.queues is None else queue.in_(person.queues)


def _met(
    person: Person, comment_id: ColumnElement[str], but: ColumnElement[int] | None = None
) -> ColumnElement[bool]:
    """Return whether a person had a check of the comment, or decided it (not only in `but`).

    A check that was withdrawn before they saw it may come again.
    """
    item, said = review_item.alias("met_item"), decision.alias("met_said")
    theirs = and_(said.c.item_id == item.c.id, said.c.moderator_id == person.id)
    decided = said.c.id.is_not(None) if but is None else said.c.id != but
    seen = or_(item.c.status != "withdrawn", item.c.claimed_at.is_not(None))
    checked = and_(item.c.reserved_for == person.id, seen)
    return exists(
        select(item.c.id)
        .join(said, theirs, isouter=True)
        .where(item.c.comment_id == comment_id, or_(checked, decided))
    )
