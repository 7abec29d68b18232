"""SQL of the two operations that people wait for, lease and decide, each in one round trip.

Everything else is SQLAlchemy Core. These two are SQL because each replaces a transaction of five
statements, and because `benchmarks/review_queue.py` measures the same text with `pgbench`.

Confirmations are open or blocked. An item of round 2 is open while the comment's first label is one
of those that the item `confirms`; an item of round 3 while the labels of rounds 1 and 2 differ.
Both are the labels before corrections: a correction opens and closes nothing, so that the
probability of a confirmation is that of the first label as given: a lead may correct a label
because a confirmation differs. An item that is leased stays open. `DECIDE` opens the items of a
comment with the label that it records. `settle` does the same for whatever else changes, and finds
what two simultaneous decisions left.
"""

import datetime as dt
from collections.abc import Collection, Iterable

from sqlalchemy import Connection, Engine, text

from modwatch.review.database import next_time_sql
from modwatch.review.log.decision_log import (
    COVERED,
    commitment_sql,
    compared_sql,
    content_sql,
    item_digest_sql,
    others_sql,
    text_commitment_sql,
)
from modwatch.review.log.labels import first_label_sql, second_label_sql
from modwatch.review.queue.items import Item
from modwatch.review.tables import HIDDEN

#: Not leased. A claim in the future (the clock was set back) does not count. `clock_timestamp`,
#: because another statement may have started and claimed the item after this one started.
_FREE = """(leased_until IS NULL OR leased_until <= now()
            OR claimed_at > clock_timestamp() + interval '1 minute')"""

#: Leased by the caller. Parameters: item_id, moderator_id, digest.
HELD = """id = CAST(:item_id AS bigint) AND status IN ('waiting', 'escalated')
        AND leased_by = CAST(:moderator_id AS bigint) AND lease_digest = CAST(:digest AS bytea)
        AND leased_until > now()"""

#: What a person is shown of an item; of an escalated one all, which is not blind.
_SHOWN = f"""CASE WHEN review_item.status = 'escalated' THEN review_item.shown
        ELSE review_item.shown - '{HIDDEN}' END AS shown"""

#: Columns of a lease: the item, when it was claimed, and when the lease ends.
LEASE_COLUMNS = ", ".join(
    (
        *(f"review_item.{name}" for name in Item.__dataclass_fields__ if name != "shown"),
        *(_SHOWN, "claimed_at", "leased_until"),
    )
)

#: Neither decided nor skipped by the caller.
_NEW_TO_ME = "CAST(:moderator_id AS bigint) <> ALL (excluded)"


def look(item: str) -> str:
    """Return the SQL expression of how `item` looks to a person who is served it, as one text.

    The values by which comments are compared, which others it has, whether there is a parent, and
    the comment's length in powers of two.
    """
    length = f"floor(log(2, greatest(length({item}.text), 1)))"
    parts = f"{compared_sql(item)}, {others_sql(item)}, {item}.parent_text IS NULL, {length}"
    return f"CAST(jsonb_build_array({parts}) AS text)"


#: Longest total time of a lease that is extended, renewed, resumed by an undo, or taken again.
LONGEST_HOLD = dt.timedelta(hours=1)

#: Begun so recently that the person may still hold the item, or so long ago that others could have
#: taken it meanwhile.
_HOLDABLE = f"now() < claimed_at + interval '{LONGEST_HOLD}'"
_LONG_AGO = f"now() >= claimed_at + 2 * interval '{LONGEST_HOLD}'"

_FOR_ME = f"""{_NEW_TO_ME} AND {_FREE}
            AND (leased_by IS DISTINCT FROM CAST(:moderator_id AS bigint)
                OR {_HOLDABLE} OR {_LONG_AGO})"""

#: In one of `:queues`, in any if null.
MY_QUEUE = "(CAST(:queues AS text[]) IS NULL OR queue = ANY (CAST(:queues AS text[])))"

_IN_MY_LANE = f"""status = 'waiting' AND reserved_for IS NULL
                AND queue = mine.queue AND reason = mine.reason AND {_FOR_ME}
                AND (round = 1 OR queued_at <= now()
                    - (round - 1) * make_interval(secs => CAST(:confirm_after AS double precision)))
            ORDER BY serve_by, id"""

#: One index probe.
_FIRST = f"""
            SELECT id FROM review_item WHERE {_IN_MY_LANE} LIMIT 1 FOR UPDATE SKIP LOCKED
        """  # noqa: S608 - our own text

#: Any of the next `:among`, but first what a lead put first; none if another lease takes it now.
_ANY_OF_THE_NEXT = f"""
            SELECT id FROM review_item WHERE id = (
                SELECT near FROM (
                    SELECT id AS near, serve_by >= queued_at AS later FROM review_item
                    WHERE {_IN_MY_LANE} LIMIT CAST(:among AS integer)
                ) AS next ORDER BY later, random() LIMIT 1
            ) AND status = 'waiting' AND {_FOR_ME} FOR UPDATE SKIP LOCKED
        """  # noqa: S608 - our own text


def _in_turn(pick: str) -> str:
    """Return the item that `pick` finds in the first lane where it finds one."""
    return f"""(
        SELECT pick.id FROM (
            SELECT queue, reason FROM lane
            LEFT JOIN unnest(CAST(:order AS text[])) WITH ORDINALITY AS turn (reason, place)
                USING (reason)
            WHERE {MY_QUEUE} AND reason <> ALL (CAST(:opt_outs AS text[]))
            ORDER BY place NULLS LAST, random()
        ) AS mine CROSS JOIN LATERAL ({pick}) AS pick LIMIT 1
    )"""  # noqa: S608 - our own text


#: The next item. The one that chance took may be locked by another lease: then the first.
_NEXT_IN_TURN = f"""COALESCE(
        CASE WHEN CAST(:among AS integer) > 1 THEN {_in_turn(_ANY_OF_THE_NEXT)} END,
        {_in_turn(_FIRST)}
    )"""

#: The first escalated item, severe ones first, then by deadline, over all queues of the person.
_FIRST_ESCALATED = f"""(
        SELECT pick.id FROM (SELECT DISTINCT queue FROM lane WHERE {MY_QUEUE}) AS mine
        CROSS JOIN LATERAL (
            SELECT id, severe_due_at, serve_by FROM review_item
            WHERE status = 'escalated' AND queue = mine.queue AND {_FOR_ME}
            ORDER BY severe_due_at, serve_by, id LIMIT 1 FOR UPDATE SKIP LOCKED
        ) AS pick ORDER BY pick.severe_due_at, pick.serve_by, pick.id LIMIT 1
    )"""  # noqa: S608 - our own text


#: The item that is reserved for this person and takes the place of the next one: it looks like that
#: one, and the person has made enough decisions. Once only: what they give back others would take.
_IN_ITS_PLACE = f"""(
        SELECT id FROM review_item
        WHERE status = 'waiting' AND reserved_for = CAST(:moderator_id AS bigint)
            AND claimed_at IS NULL AND COALESCE(serve_after, 0) <= (
                SELECT length FROM decision_chain
                WHERE decision_chain.moderator_id = CAST(:moderator_id AS bigint))
            AND EXISTS (
                SELECT FROM review_item AS ordinary
                WHERE ordinary.id = next.id AND ordinary.queue = review_item.queue
                    AND {look("ordinary")} = {look("review_item")}
            ) AND {_FOR_ME}
        ORDER BY serve_by, id LIMIT 1 FOR UPDATE SKIP LOCKED
    )"""  # noqa: S608 - our own text

#: The first claim counts while the person takes the item again and again.
_SINCE = f"""CASE WHEN leased_by = CAST(:moderator_id AS bigint) AND claimed_at <= now()
        AND {_HOLDABLE} THEN claimed_at ELSE now() END"""


def _lease(next: str, id: str = "next.id") -> str:
    return f"""
WITH next AS MATERIALIZED (SELECT {next} AS id),
pick AS MATERIALIZED (SELECT {id} AS id FROM next)
UPDATE review_item SET
    lease_digest = CAST(:digest AS bytea), leased_by = CAST(:moderator_id AS bigint),
    leased_until = least({_SINCE} + interval '{LONGEST_HOLD}',
        now() + make_interval(secs => CAST(:seconds AS double precision))),
    claimed_at = {_SINCE}
FROM pick WHERE review_item.id = pick.id
RETURNING {LEASE_COLUMNS}
"""  # noqa: S608 - our own text


#: Leases the next item. Parameters: moderator_id, digest, seconds, queues (null: all), order
#: (the reasons in order of turn), opt_outs (reasons never served), confirm_after (seconds, from
#: queued to served, of each round of confirmations), among (the next items of which any is served).
#: An item that is reserved for this person is served in the place of another one only: neither an
#: empty queue nor the order, the time or what is seen of the item tells it from the rest.
LEASE = _lease(_NEXT_IN_TURN, f"COALESCE({_IN_ITS_PLACE}, next.id)")

#: Leases the next escalated item. Parameters: moderator_id, digest, seconds, queues.
LEASE_ESCALATED = _lease(_FIRST_ESCALATED)

#: Leases one item. Parameters: moderator_id, digest, seconds, queues, item_id, status.
CLAIM = _lease(f"""(
    SELECT id FROM review_item
    WHERE id = :item_id AND status = :status AND {_FOR_ME} AND {MY_QUEUE}
        AND COALESCE(reserved_for, :moderator_id) = :moderator_id
    FOR UPDATE
)""")  # noqa: S608 - our own text

#: Leases one item again whose last lease was this person's, for as long as is left of the longest
#: time since the first. Parameters: moderator_id, digest, seconds, queues, item_id, before (the
#: digest of that lease), statuses. A reserved item that ended while others decided is gone: they
#: would have taken another one.
_MY_LAST = f"""(
    SELECT id FROM review_item
    WHERE id = :item_id AND status = ANY (CAST(:statuses AS text[])) AND {MY_QUEUE}
        AND leased_by = CAST(:moderator_id AS bigint)
        AND lease_digest IN (CAST(:before AS bytea), CAST(:digest AS bytea))
        AND {_NEW_TO_ME} AND {_HOLDABLE}
        AND (reserved_for IS NULL OR NOT EXISTS (
            SELECT FROM decision WHERE decision.decided_at > review_item.leased_until
                AND decision.moderator_id <> review_item.leased_by
        ))
    FOR UPDATE
)"""  # noqa: S608 - our own text
RENEW = _lease(_MY_LAST)

#: Others' labels of the item.
_OTHERS = """(
        SELECT DISTINCT ON (moderator_id) action, label FROM decision
        WHERE item_id = held.id AND moderator_id <> held.leased_by
            AND action IN ('label', 'correct', 'undo')
        ORDER BY moderator_id, id DESC
    ) AS other WHERE other.action <> 'undo'"""

#: How many people label the item, with the label that is recorded now: of an audit with
#: confirmations, two if the first label is confirmed, and three if these two differ. Computed anew
#: with every label, since labels may have been undone.
_WANTED = f"""CASE
        WHEN held.followed IS NULL OR request.action <> 'label' OR held.status = 'escalated'
            THEN held.labels_wanted
        ELSE (
            SELECT CASE
                WHEN count(*) = 0 AND request.label = ANY (held.followed) THEN 2
                WHEN count(*) = 0 THEN 1
                WHEN count(*) = 1 AND bool_and(other.label = request.label) THEN 2
                ELSE 3 END
            FROM {_OTHERS}
        ) END"""  # noqa: S608 - our own text

#: The status of an item that several people label independently: it waits for the next label, is
#: decided if all agree, and escalated if they do not. With confirmations the third label decides.
_AFTER_LABEL = f"""(
    SELECT CASE
        WHEN count(*) + 1 < wanted.labels THEN 'waiting'
        WHEN held.followed IS NOT NULL OR bool_and(other.label = request.label) IS NOT FALSE
            THEN 'decided'
        ELSE 'escalated' END
    FROM {_OTHERS}
)"""  # noqa: S608 - our own text

#: The new row: what stands in each column.
_VALUES = {
    "position": "chain.length + 1",
    "item_id": "held.id",
    "dt": "held.dt",
    "comment_id": "held.comment_id",
    "kind": "held.kind",
    "item_version": "held.version",
    "moderator_id": "held.leased_by",
    "action": "CASE WHEN held.status = 'escalated' AND request.action = 'label' THEN 'adjudicate' "
    "ELSE request.action END",
    "label": "request.label",
    "policy_version": "CAST(:policy_version AS text)",
    "policy_code": "CAST(:policy_code AS text)",
    "reason": "CAST(:reason AS text)",
    "note": "request.note",
    "note_salt": "request.note_salt",
    "note_commitment": commitment_sql("request.note_salt", "request.note"),
    "seconds": "COALESCE(CAST(:seconds AS double precision), "
    "greatest(0, extract(epoch FROM now() - held.claimed_at))::double precision)",
    "idempotency_key": "CAST(:idempotency_key AS text)",
    "refers_to": "NULL::bigint",
    "decided_at": next_time_sql(
        "decision", "decided_at", "moderator_id = held.leased_by AND position = chain.length"
    ),
    "text_commitment": text_commitment_sql("held"),
    "item_digest": item_digest_sql("held", labels_wanted="wanted.labels::smallint"),
    "outcome": f"""CASE
        WHEN request.action = 'skip' THEN held.status
        WHEN request.action = 'escalate' THEN 'escalated'
        WHEN held.status = 'escalated' OR wanted.labels = 1 THEN 'decided'
        ELSE {_AFTER_LABEL}
    END""",
    "transaction_id": "pg_current_xact_id()",
    "previous_hash": "chain.hash",
}

#: Whether the recorded label opens another item of the comment, which is a confirmation; null: it
#: changes nothing.
_OPENS = f"""CASE
        WHEN sibling.kind <> 'confirmation' OR recorded.outcome <> 'decided'
            OR sibling.text <> held.text OR sibling.parent_text IS DISTINCT FROM held.parent_text
            THEN NULL
        WHEN recorded.kind = 'review' AND sibling.round = 2
            THEN recorded.label = ANY (sibling.confirms)
        WHEN recorded.kind = 'review' THEN {second_label_sql("sibling")} <> recorded.label
        WHEN held.round = 2 AND sibling.round = 3 AND recorded.action = 'label'
            THEN {first_label_sql("sibling")} <> recorded.label
    END"""

_COLUMNS = (*COVERED, "note", "note_salt", "previous_hash")

_NEW = ", ".join(f"{_VALUES[name]} AS {name}" for name in _COLUMNS)

#: Records the decision on a leased item and ends the lease. Does nothing and returns no row if the
#: lease is not valid or the key was used. Decisions on items of one comment take turns, because
#: each changes the others. Parameters: moderator_id, item_id, digest, version (null: any), action,
#: label, policy_version, policy_code, reason, note, seconds (null: since the claim),
#: severe_seconds (until an escalation is due; null: it is not severe), idempotency_key.
DECIDE = f"""
WITH request AS MATERIALIZED (
    SELECT CAST(:action AS text) AS action, CAST(:label AS smallint) AS label,
        CAST(:note AS text) AS note,
        CASE WHEN CAST(:note AS text) IS NOT NULL
            THEN uuid_send(gen_random_uuid()) END AS note_salt
), turn AS MATERIALIZED (
    SELECT pg_advisory_xact_lock(hashtextextended(comment_id, dt - DATE '2000-01-01'))
    FROM review_item WHERE id = CAST(:item_id AS bigint)
), held AS (
    SELECT review_item.*, CASE kind WHEN 'audit' THEN confirms END AS followed
    FROM review_item CROSS JOIN turn
    WHERE {HELD} AND leased_by <> ALL (excluded)
        AND version = COALESCE(CAST(:version AS integer), version)
    FOR UPDATE OF review_item
), wanted AS MATERIALIZED (
    SELECT {_WANTED} AS labels FROM held CROSS JOIN request
), chain AS (
    SELECT length, hash FROM decision_chain
    WHERE moderator_id = (SELECT leased_by FROM held) FOR UPDATE
), new AS MATERIALIZED (
    SELECT {_NEW} FROM held CROSS JOIN chain CROSS JOIN request CROSS JOIN wanted
), recorded AS (
    INSERT INTO decision ({", ".join(_COLUMNS)}, hash)
    SELECT new.*, sha256(
        previous_hash || convert_to({content_sql({name: name for name in COVERED})}, 'UTF8')
    ) FROM new
    ON CONFLICT (moderator_id, idempotency_key) DO NOTHING
    RETURNING *
), advanced AS (
    UPDATE decision_chain SET length = recorded.position, hash = recorded.hash
    FROM recorded WHERE decision_chain.moderator_id = recorded.moderator_id
), released AS (
    UPDATE review_item SET
        status = recorded.outcome, version = version + 1, labels_wanted = wanted.labels,
        lease_digest = NULL, leased_by = NULL, leased_until = NULL,
        severe_due_at = least(severe_due_at,
            now() + make_interval(secs => CAST(:severe_seconds AS double precision))),
        excluded = CASE WHEN recorded.action = 'escalate' THEN excluded
            ELSE array_append(excluded, recorded.moderator_id) END
    FROM recorded CROSS JOIN wanted WHERE review_item.id = recorded.item_id
), others AS (
    SELECT sibling.id AS other_id, {_OPENS} AS opens, recorded.label, recorded.moderator_id
    FROM recorded CROSS JOIN held JOIN review_item AS sibling
        ON sibling.dt = recorded.dt AND sibling.comment_id = recorded.comment_id
        AND sibling.id <> recorded.item_id AND sibling.reserved_for IS NULL
), confirmations AS (
    UPDATE review_item SET
        excluded = array_append(excluded, others.moderator_id),
        status = CASE
            WHEN opens AND status = 'blocked' THEN 'waiting'
            WHEN NOT opens AND status = 'waiting' AND {_FREE} THEN 'blocked'
            ELSE status END,
        first_label = CASE
            WHEN opens AND round = 2 AND status IN ('blocked', 'waiting') THEN others.label
            ELSE first_label END
    FROM others WHERE id = other_id
)
SELECT * FROM recorded
"""  # noqa: S608 - our own text


def settle(
    connection: Connection, day: dt.date, comment_ids: Collection[str] | None = None, but: int = 0
) -> int:
    """Open and block the confirmations of `day` by the labels there are; return how many changed.

    Only of `comment_ids`, or of all if None, and not the item `but`. Whoever labelled or skipped
    another item of the comment is excluded. Items that another transaction has locked are being
    leased or decided, and are left as they are.
    """
    ids = None if comment_ids is None else list(comment_ids)
    return connection.execute(_SETTLE, {"day": day, "comment_ids": ids, "but": but}).rowcount


def settle_days(engine: Engine, days: Iterable[dt.date]) -> int:
    """Do the same for all comments of `days`; return how many items changed."""
    changed = 0
    for day in days:
        with engine.begin() as connection:
            changed += settle(connection, day)
    return changed


_SETTLE = text(
    f"""
    WITH item AS MATERIALIZED (
        SELECT * FROM review_item AS held
        WHERE dt = :day AND kind = 'confirmation' AND status IN ('waiting', 'blocked')
            AND (CAST(:comment_ids AS text[]) IS NULL OR comment_id = ANY (:comment_ids))
            AND id <> :but
        ORDER BY id FOR UPDATE SKIP LOCKED
    ), standing AS MATERIALIZED (  -- never joined: the planner takes it for a single row
        SELECT id, round, confirms, {first_label_sql("item")} AS first_label,
            CASE round WHEN 3 THEN {second_label_sql("item")} END AS second_label,
            ARRAY(
                SELECT DISTINCT unnest(other.excluded) FROM review_item AS other
                WHERE other.dt = item.dt AND other.comment_id = item.comment_id
                    AND other.id <> item.id AND other.reserved_for IS NULL
            ) AS acquainted
        FROM item
    ), settled AS MATERIALIZED (
        SELECT *, CASE round
            WHEN 2 THEN first_label = ANY (confirms)
            ELSE first_label <> second_label
        END IS TRUE AS opens
        FROM standing
    )
    UPDATE review_item SET
        status = CASE WHEN opens THEN 'waiting' ELSE 'blocked' END,
        first_label = CASE WHEN opens AND settled.round = 2 THEN settled.first_label END,
        excluded = CASE
            WHEN opens AND NOT excluded @> acquainted THEN excluded || acquainted ELSE excluded
        END
    FROM settled WHERE review_item.id = settled.id AND (
        (opens AND (status = 'blocked' OR NOT excluded @> acquainted
            OR settled.round = 2
                AND review_item.first_label IS DISTINCT FROM settled.first_label))
        OR (NOT opens AND status = 'waiting' AND {_FREE})
    )
    """  # noqa: S608 - our own text
)
