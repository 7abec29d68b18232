"""Queues quality control items: items that measure people, and look like any other item.

A *retest* is a comment that the same person labelled at least two weeks ago; a *gold* item is one
whose label is known. Both are reserved for one person, who is served each in the place of an item
of the day that looks like it, after a random number of decisions. `agreement` uses the answers; the
estimates of the day do not.
"""

import datetime as dt
import logging
import math
import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import (
    Connection,
    Engine,
    func,
    select,
    text,
)
from sqlalchemy.dialects import postgresql

from modwatch.common.text import ERASED
from modwatch.review.database import take_turn
from modwatch.review.people.accounts import REVIEWERS
from modwatch.review.queue.lanes import Lanes, load_lanes
from modwatch.review.queue.statements import MY_QUEUE, look
from modwatch.review.tables import (
    ROUTED_KINDS,
    review_item,
)

logger = logging.getLogger(__name__)

#: Maximum number of items of one kind per person and day.
MOST_A_DAY = 50

KINDS = ("retest", "gold")

#: Retests are sampled from so many of a person's labels, the latest of those that are old enough.
LATEST_LABELS = 20_000

#: The gold comments of a person and day are sampled from so many.
GOLD_POOL = 2_000

#: People who labelled within so many days are active; their pace is that of these days.
RECENT_DAYS = 7

_COPIED = (
    "comment_id", "text", "parent_text", "shown", "queue", "stratum", "rank", "review_score",
    "prob", "uncertainty", "model_version",
)  # fmt: skip

#: Values of a gold item, which was neither routed nor scored.
_NEUTRAL = {
    "stratum": 0,
    "rank": 1,
    "review_score": 0.0,
    "prob": 0.5,
    "uncertainty": 0.25,
    "model_version": "",
}

#: Two concurrent runs take turns on this number.
_LOCK = 7_104_382_665_190_003

#: Days whose routed comments show how comments look.
LOOK_DAYS = 7


@dataclass(frozen=True, kw_only=True)
class Queued:
    """What `queue_quality_control` put into the queue."""

    #: How many people labelled recently.
    people: int
    retests: int
    gold: int


@dataclass(frozen=True, kw_only=True)
class Person:
    """A person who may review and labelled recently."""

    id: int
    #: Labels per day on which they labelled.
    pace: float
    #: Decisions so far.
    made: int
    #: Last position in their chain before which all decisions are old enough; 0 if none is.
    last_old: int
    #: Reasons that they opted out of.
    opt_outs: list[str]
    #: None: all.
    queues: list[str] | None


@dataclass(frozen=True, kw_only=True)
class _Plan:
    """The parameters and the state of the queue from which the items of one day follow."""

    day: dt.date
    now: dt.datetime
    #: By kind, in [0, 1], of the labels that a person gives per day.
    shares: Mapping[str, float]
    salt: str
    least_days: float
    lanes: Lanes
    #: Number of waiting items by person and kind.
    waiting: Mapping[tuple[int, str], int]
    #: Persons and kinds for which items of this day are queued already.
    done: frozenset[tuple[int, str]]


def queue_quality_control(
    engine: Engine,
    day: dt.date,
    *,
    retest_share: float,
    gold_share: float,
    salt: str,
    least_days: float = 14,
    lanes: Lanes | None = None,
) -> Queued:
    """Queue the retests and gold items of `day` for all active people; return how many.

    Each person gets `retest_share` and `gold_share` of the labels that they give per day, at most
    50 of each kind, minus those that are still waiting. Each is served in the place of an item that
    looks like it, once the person has made a number of decisions, drawn from those of a day. Gold
    comments are drawn as the routed comments of the day look, so queue the day first. Never sampled
    are comments whose label the person undid or corrected, that they saw in another item, or that
    were retested before; gold comments that they have seen or may be served; queues that they do
    not work, and reasons that they opted out of. `salt` makes the sample unpredictable to
    outsiders. The same call again adds nothing. One transaction; the number of rows read depends on
    the last days of the log, the day's items and the number of people.
    """
    shares = {"retest": retest_share, "gold": gold_share}
    options = {"salt": salt, "least_days": least_days, "lanes": lanes or load_lanes()}
    with engine.begin() as connection:
        take_turn(connection, _LOCK)
        plan = _plan(connection, day, shares=shares, **options)
        people = _active_people(connection, least_days)
        rows = [row for person in people for row in _rows(connection, person, plan)]
        if rows:
            insertion = postgresql.insert(review_item).on_conflict_do_nothing()
            connection.execute(insertion, rows)
    kinds = Counter(row["kind"] for row in rows)
    done = Queued(people=len(people), retests=kinds["retest"], gold=kinds["gold"])
    about = {"event": "checks_queued", "day": str(day), **asdict(done)}
    logger.info("Quality control items were queued.", extra=about)
    return done


def _plan(connection: Connection, day: dt.date, **options: Any) -> _Plan:
    by = (review_item.c.reserved_for, review_item.c.kind)
    waiting = connection.execute(
        select(*by, func.count())
        # Literals, so that the partial index is used.
        # What was given back is not served again.
        .where(text("status = 'waiting' AND reserved_for IS NOT NULL AND claimed_at IS NULL"))
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
    retests = _sample_retests(connection, person, n["retest"], chance, plan.least_days)
    gold = _sample_gold(connection, person, n["gold"], seed, plan.day)
    retested = {row["comment_id"] for row in retests}
    gold = [row for row in gold if row["comment_id"] not in retested]
    return [
        {**row, **_place(person, kind, plan, chance)}
        for kind, drawn in (("retest", retests), ("gold", gold))
        for row in drawn
    ]


def _wanted(person: Person, kind: str, plan: _Plan, chance: random.Random) -> int:
    """Return how many items of a kind the person gets; 0 or less means none."""
    # Rounded at random: 1 % of 50 labels is one item every second day.
    expected = int(plan.shares[kind] * person.pace + chance.random())
    if (person.id, kind) in plan.done:
        return 0
    return min(expected, MOST_A_DAY) - plan.waiting.get((person.id, kind), 0)


def _place(person: Person, kind: str, plan: _Plan, chance: random.Random) -> dict[str, Any]:
    return {
        "dt": plan.day,
        "kind": kind,
        "reason": kind,
        "inclusion_probability": 1.0,
        "reserved_for": person.id,
        # Not by the clock: what became due while the person was away would come first.
        "serve_after": person.made + chance.randrange(math.ceil(person.pace)),
        "serve_by": plan.now,
        "due_at": plan.now + dt.timedelta(hours=plan.lanes.for_reason(kind).hours),
    }


def _seen_sql(comment_id: str, but: str = "0") -> str:
    """Return the SQL condition that `:person` had a check of a comment, or made a decision on it.

    The decision `but` does not count, nor an item that was withdrawn before they saw it.
    """
    return f"""EXISTS (
            SELECT FROM review_item AS seen
            LEFT JOIN decision AS made ON made.item_id = seen.id AND made.moderator_id = :person
            WHERE seen.comment_id = {comment_id} AND (made.id <> {but}
                OR seen.reserved_for = :person
                    AND (seen.status <> 'withdrawn' OR seen.claimed_at IS NOT NULL))
        )"""


#: Comments that a person labelled long ago, and saw only then, of some positions in their chain.
_RETESTS = text(
    f"""
    SELECT {", ".join(f"item.{name}" for name in _COPIED)}
    FROM decision AS d JOIN review_item AS item ON item.id = d.item_id
    WHERE d.moderator_id = :person AND d.position = ANY (CAST(:positions AS bigint[]))
        AND d.action = 'label' AND d.kind = ANY (:kinds) AND d.decided_at <= now() - :old
        AND item.reason <> ALL (CAST(:opt_outs AS text[])) AND {MY_QUEUE}
        AND :erased NOT IN (item.text, coalesce(item.parent_text, ''))
        AND NOT {_seen_sql("item.comment_id", but="d.id")}
    ORDER BY array_position(CAST(:positions AS bigint[]), d.position) LIMIT :n
    """  # noqa: S608 - our own text
)


def _sample_retests(
    connection: Connection, person: Person, n: int, chance: random.Random, least_days: float
) -> list[dict[str, Any]]:
    """Return at most `n` comments that the person labelled long ago, and saw only then.

    Positions in their chain are sampled first, and only the rows there are read.
    """
    positions = range(max(1, person.last_old - LATEST_LABELS + 1), person.last_old + 1)
    if n < 1 or not positions:
        return []
    values = {
        "person": person.id,
        "positions": chance.sample(positions, min(len(positions), 20 * n + 50)),
        "kinds": list(ROUTED_KINDS),
        "old": dt.timedelta(days=least_days),
        "opt_outs": person.opt_outs,
        "queues": person.queues,
        "erased": ERASED,
        "n": n,
    }
    return [dict(row) for row in connection.execute(_RETESTS, values).mappings()]


#: Gold comments that may be served to a person, one for each comment of a random sample of the day
#: that looks like it: so gold looks as the day does, in proportion.
_GOLD = text(
    f"""
    WITH pool AS MATERIALIZED (
        SELECT gold.*, {look("gold")} AS look,
            row_number() OVER (PARTITION BY {look("gold")} ORDER BY turn) AS place
        FROM (
            SELECT *, md5(:seed || comment_id) AS turn FROM gold_comment
            WHERE retired_at IS NULL ORDER BY turn LIMIT :pool
        ) AS gold
        WHERE NOT {_seen_sql("gold.comment_id")} AND NOT EXISTS (
            SELECT FROM review_item AS item
            WHERE item.comment_id = gold.comment_id AND item.reserved_for IS NULL
                AND item.status IN ('waiting', 'blocked', 'escalated')
        )
    ), sampled AS (
        SELECT queue, {look("item")} AS look, md5(:seed || comment_id) AS turn
        FROM review_item AS item
        WHERE dt = :day AND kind = 'review' AND status <> 'withdrawn' AND {MY_QUEUE}
        ORDER BY turn LIMIT :n
    ), wanted AS (
        SELECT *, row_number() OVER (PARTITION BY look ORDER BY turn) AS place FROM sampled
    )
    SELECT pool.comment_id, pool.text, pool.parent_text, pool.shown, wanted.queue
    FROM wanted JOIN pool ON pool.look = wanted.look AND pool.place = wanted.place
    ORDER BY wanted.turn
    """  # noqa: S608 - our own text
)

_UNLIKE = text(
    f"""
    SELECT count(*) FROM gold_comment AS gold WHERE retired_at IS NULL AND {look("gold")} NOT IN (
        SELECT {look("item")} FROM review_item AS item
        WHERE kind = 'review' AND dt > (SELECT max(dt) FROM review_item) - CAST(:days AS integer)
    )
    """  # noqa: S608 - our own text
)


def unlike_gold(engine: Engine) -> int:
    """Return how many gold comments look like no comment that was routed on the last seven days.

    They are served to nobody: language, platform, a column of the platform's own that they lack,
    length or lack of a parent would tell them apart.
    """
    with engine.connect() as connection:
        return connection.scalar(_UNLIKE, {"days": LOOK_DAYS}) or 0


def _sample_gold(
    connection: Connection, person: Person, n: int, seed: str, day: dt.date
) -> list[dict[str, Any]]:
    """Return at most `n` gold comments that the person has not seen and may not be served."""
    values = {"seed": seed, "pool": GOLD_POOL, "person": person.id, "day": day, "n": max(0, n)}
    rows = connection.execute(_GOLD, {**values, "queues": person.queues})
    return [{**row, **_NEUTRAL} for row in rows.mappings()]


_WORK = "decided_at > now() - :recent AND action = 'label' AND kind = ANY (:kinds)"

#: All active people; one scan of the last days of the log.
_PEOPLE = text(
    f"""
    SELECT moderator.id, labels / CAST(days AS double precision) AS pace, length AS made,
        coalesce(first_young - 1, length) AS last_old,
        preferences->'opt_outs' AS opt_outs,
        (SELECT array_agg(queue) FROM moderator_queue WHERE moderator_id = moderator.id) AS queues
    FROM moderator JOIN decision_chain ON decision_chain.moderator_id = moderator.id JOIN (
        SELECT moderator_id, count(*) FILTER (WHERE {_WORK}) AS labels,
            count(DISTINCT date_trunc('day', decided_at, 'UTC')) FILTER (WHERE {_WORK}) AS days,
            min(position) FILTER (WHERE decided_at > now() - :old) AS first_young
        FROM decision WHERE decided_at > now() - greatest(:old, :recent)
        GROUP BY moderator_id
    ) AS made ON made.moderator_id = moderator.id
    WHERE disabled_at IS NULL AND role = ANY (:roles) AND labels > 0
    ORDER BY moderator.id
    """  # noqa: S608 - our own text
)


def _active_people(connection: Connection, least_days: float) -> list[Person]:
    """Return all active people by id; `last_old` decisions are at least `least_days` old."""
    values = {
        "recent": dt.timedelta(days=RECENT_DAYS),
        "old": dt.timedelta(days=least_days),
        "kinds": list(ROUTED_KINDS),
        "roles": sorted(REVIEWERS),
    }
    rows = connection.execute(_PEOPLE, values).mappings()
    return [Person(**{**row, "opt_outs": row["opt_outs"] or []}) for row in rows]
