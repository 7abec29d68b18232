"""Compares the tables that change with the append-only decisions and events.

Accounts, gold comments and policies must be as their last event left them, and decided items as
their last decision did: a change in the database without an entry of the log is a contradiction.
Whatever the log knows must be there, once, and what is there must be known.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any, ClassVar

from sqlalchemy import Connection, Text, cast, func, literal_column, select, text

from modwatch.common.text import ERASED
from modwatch.review.database import json_digest
from modwatch.review.log.decision_log import (
    commitment_sql,
    compared_sql,
    item_digest_sql,
    text_commitment_sql,
)
from modwatch.review.log.labels import in_force_sql
from modwatch.review.tables import (
    FINAL_ACTIONS,
    STATUSES,
    decision,
    decision_chain,
    event_chain,
    gold_comment,
    moderator,
    moderator_queue,
    policy_version,
    review_item,
)

#: Commitment to a row of `gold_comment`, in hexadecimal.
GOLD_COMMITMENT = literal_column(
    "encode("
    + commitment_sql(
        "salt",
        f"json_build_array(comment_id, text, parent_text, {compared_sql('gold_comment')}, label, "
        "policy_code, source, extract(epoch from added_at))::text",
    )
    + ", 'hex')",
    Text,
)

#: Its label in force binds a decided item, and its last decision a closed one.
_SAME_VALUES = f"""
    (last.item_id IS NULL OR (item.dt, item.comment_id, item.kind)
        IS NOT DISTINCT FROM (last.dt, last.comment_id, last.kind)
    AND CASE item.status WHEN 'decided' THEN labels.same_values
        WHEN 'closed' THEN last.item_digest IS NOT DISTINCT FROM {item_digest_sql("item")}
        ELSE true END)
"""

#: Items that are missing, or not as their last decision left them. One with a label in force must
#: have the texts that were read for it; whoever labelled an item that is open again may have read
#: others.
_ITEMS = text(
    f"""
    WITH last AS (
        SELECT DISTINCT ON (item_id) item_id, dt, comment_id, kind, item_digest, outcome
        FROM decision ORDER BY item_id, id DESC
    ), labels AS (
        SELECT item_id, bool_and(
            coalesce(text_commitment = {text_commitment_sql("item")}, false)
            OR item.dt < :erased_before AND NOT item.dt = ANY (:held) AND item.text = :erased
                AND coalesce(item.parent_text, :erased) = :erased) AS same_texts,
            max(decision.id) = max(decision.id) FILTER (
                WHERE item_digest = {item_digest_sql("item")}) AS same_values
        FROM decision JOIN review_item AS item ON item.id = decision.item_id
        WHERE item.status = 'decided' AND {in_force_sql("decision", *FINAL_ACTIONS)}
        GROUP BY item_id
    )
    SELECT coalesce(item.id, last.item_id) AS id, item.id IS NULL AS missing, item.status,
        last.outcome, labels.item_id IS NOT NULL AS labelled, same_texts,
        {_SAME_VALUES} AS same_values,
        CASE WHEN :erased IN (item.text, item.parent_text)
            THEN encode({text_commitment_sql("item")}, 'hex') END AS left_over
    FROM review_item AS item
    FULL JOIN last ON last.item_id = item.id
    LEFT JOIN labels ON labels.item_id = item.id
    WHERE item.id IS NULL
        OR item.status = 'decided' AND same_texts IS NOT TRUE
        OR {_SAME_VALUES} IS NOT TRUE
        OR item.status IN ('decided', 'closed', 'escalated')
            AND last.outcome IS DISTINCT FROM item.status
        OR last.outcome IN ('decided', 'closed') AND item.status IS DISTINCT FROM last.outcome
        OR (item.status IN {STATUSES}) IS NOT TRUE
    ORDER BY 1
    """  # noqa: S608 - our own text
)

#: Confirmations opened for a label that the comment never got: the probability of a confirmation is
#: that of this label.
_CONFIRMATIONS = text(
    """
    SELECT item.id FROM review_item AS item
    WHERE item.kind = 'confirmation' AND item.round = 2 AND item.status = 'decided'
        AND NOT EXISTS (
            SELECT FROM review_item AS first JOIN decision ON decision.item_id = first.id
            WHERE first.dt = item.dt AND first.comment_id = item.comment_id
                AND first.kind = 'review' AND decision.action IN ('label', 'adjudicate')
                AND decision.label = item.first_label
        )
    ORDER BY item.id
    """
)


#: Decisions that refer to none on their item, or stand after one that was made later: the number of
#: a decision, by which others refer to it and which says what came last, is in no hash.
_REFERENCES = text(
    """
    SELECT made.id FROM (
        SELECT id, item_id, item_version, refers_to,
            max(item_version) OVER (PARTITION BY item_id ORDER BY id) AS latest FROM decision
    ) AS made LEFT JOIN decision AS other ON other.id = made.refers_to
    WHERE made.id IS NULL OR made.item_version < latest
        OR made.refers_to IS NOT NULL AND other.item_id IS DISTINCT FROM made.item_id
    ORDER BY made.id
    """
)

#: What figures join by its key: a second row of it would count twice.
_KEYED = (
    moderator, review_item, decision, gold_comment, policy_version, decision_chain, event_chain,
)  # fmt: skip


@dataclass(kw_only=True)
class RecordedState:
    """Accounts, gold comments and policies as the events that were added left them."""

    #: The actions of events that leave something, in SQL.
    ACTIONS: ClassVar[str] = (
        "'create', 'change_role', 'disable', 'enable', 'set_queues', 'add_gold', 'retire_gold', "
        "'register_policy', 'erase'"
    )

    #: `pseudonym`, `role`, `disabled` and `queues` of each account.
    accounts: defaultdict[int, dict[str, Any]] = field(default_factory=lambda: defaultdict(dict))
    #: Whose decisions the log has.
    people: set[int] = field(default_factory=set)
    #: Commitment, and whether retired, by comment.
    gold: dict[str, tuple[str, bool]] = field(default_factory=dict)
    #: Digest by version, as it is stored and as it follows from the content.
    policies: dict[str, tuple[str, str]] = field(default_factory=dict)
    #: Commitment to what is left of the texts, by item.
    erased_items: dict[str, Any] = field(default_factory=dict)
    #: Texts and notes of earlier days may be erased, but of those that open audits held.
    erased_before: date = date.min
    held: set[date] = field(default_factory=set)
    #: Decisions whose notes are erased, as the events say, and as the log is, with their days.
    erased_notes: set[int] = field(default_factory=set)
    missing_notes: dict[int, date] = field(default_factory=dict)

    def add(self, action: str, subject_id: int | None, details: str | None, day: date) -> bool:
        """Add the next event; return False if its details, in JSON, lack what it records.

        They are None for an event that leaves nothing. `day` is that of the event.
        """
        if details is None:
            return True
        match action, subject_id, parsed(details):
            case "create", int(id_), {"pseudonym": str(name), "role": str(role)}:
                self.accounts[id_] |= {"pseudonym": name, "role": role}
            case "change_role", int(id_), {"role": str(role)}:
                self.accounts[id_]["role"] = role
            case (("disable" | "enable"), int(id_), _):
                self.accounts[id_]["disabled"] = action == "disable"
            case "set_queues", int(id_), {"queues": (None | [*_]) as queues}:
                self.accounts[id_]["queues"] = queues
            case (("add_gold" | "retire_gold"), _,
                  {"comment_id": str(id_), "commitment": str(committed)}):  # fmt: skip
                self.gold[id_] = (committed, action == "retire_gold")
            case "register_policy", _, {"version": str(version), "digest": str(digest)}:
                self.policies[version] = (digest, digest)
            case "erase", _, {"items": dict(items), "notes": [*notes]} if all(
                type(note) is int for note in notes
            ):
                self.erased_items |= items
                self.erased_notes.update(notes)
            case "erase", _, {"before": str(written), "held": [*held]} if (
                date.min < (before := day_of(written)) <= day
            ):
                self.erased_before = max(self.erased_before, before)
                self.held = {past for past in self.held if past >= before} | set(map(day_of, held))
            case _:
                return False
        return True


def parsed(document: str | None) -> Any:
    """Return what a JSON text contains; None if Python cannot hold it: too deep, too long a number.

    >>> parsed('{"a": 1}'), parsed("[" * 100_000)
    ({'a': 1}, None)
    """
    try:
        return json.loads(document or "null")
    except (ValueError, RecursionError):
        return None


def _account_problems(connection: Connection, state: RecordedState) -> Iterator[str]:
    mine = moderator_queue.c.moderator_id == moderator.c.id
    queues = select(func.array_agg(moderator_queue.c.queue)).where(mine).scalar_subquery()
    disabled = moderator.c.disabled_at.is_not(None).label("disabled")
    columns = (moderator.c.id, moderator.c.pseudonym, moderator.c.role, disabled)
    rows = select(*columns, queues.label("queues")).order_by(moderator.c.id)
    missing = state.people | state.accounts.keys()
    for row in connection.execute(rows):
        missing.discard(row.id)
        recorded = {"disabled": False, "queues": None, **state.accounts.get(row.id, {})}
        if "pseudonym" not in recorded:
            yield f"account {row.id} exists, but no event created it"
            continue
        if row.pseudonym != recorded["pseudonym"]:
            yield f"account {row.id} has another pseudonym than at its creation"
        if row.role != recorded["role"]:
            yield f"account {row.id} has the role {row.role}, but its events say {recorded['role']}"
        if row.disabled != recorded["disabled"]:
            now, then = ("disabled", "enabled") if row.disabled else ("enabled", "disabled")
            yield f"account {row.id} is {now}, but its events say {then}"
        if sorted(map(str, row.queues or ())) != sorted(map(str, recorded["queues"] or ())):
            yield f"account {row.id} has other queues than its events say"
    for id_ in sorted(missing):
        yield f"account {id_} is missing, but the log has events or decisions of it"


def _gold_problems(connection: Connection, state: RecordedState) -> Iterator[str]:
    retired = gold_comment.c.retired_at.is_not(None)
    rows = select(gold_comment.c.comment_id, GOLD_COMMITMENT, retired)
    stored = connection.execute(rows.order_by(gold_comment.c.comment_id))
    yield from _differences(
        "gold comment", ((row[0], (row[1], row[2])) for row in stored), state.gold
    )


def _policy_problems(connection: Connection, state: RecordedState) -> Iterator[str]:
    columns = (policy_version.c.version, policy_version.c.digest)
    rows = select(*columns, cast(policy_version.c.content, Text)).order_by(policy_version.c.version)
    stored = ((row[0], (row[1], json_digest(parsed(row[2])))) for row in connection.execute(rows))
    yield from _differences("policy", stored, state.policies)


def _differences(
    what: str, stored: Iterable[tuple[str, object]], recorded: Mapping[str, object]
) -> Iterator[str]:
    missing = set(recorded)
    for name, value in stored:
        missing.discard(name)
        if value != recorded.get(name):
            yield f"{what} {name!r} is not as its last event left it"
    for name in sorted(missing):
        yield f"{what} {name!r} is missing, but an event recorded it"


def _item_problems(connection: Connection, state: RecordedState) -> Iterator[str]:
    values = {"erased": ERASED, "erased_before": state.erased_before, "held": [*state.held]}
    for row in connection.execute(_ITEMS, values):
        erased = row.left_over and state.erased_items.get(str(row.id)) == row.left_over
        if row.missing:
            yield f"item {row.id} is missing, but the log has decisions on it"
        elif row.status not in STATUSES:
            yield f"item {row.id} has no status that there is"
        elif row.status == "decided" and not row.labelled:
            yield f"item {row.id} is decided, but the log has no label of it"
        elif row.labelled and not row.same_texts and not erased:
            yield f"item {row.id} has other texts than those that were judged"
        elif not row.same_values:
            yield f"item {row.id} has other values than when it was decided"
        elif row.status != row.outcome:
            yield (
                f"item {row.id} is {row.status}, but its last decision left it "
                f"{row.outcome or 'unchanged'}"
            )


def _note_problems(_: Connection, state: RecordedState) -> Iterator[str]:
    for id_, day in state.missing_notes.items():
        removed = day < state.erased_before and day not in state.held
        if id_ not in state.erased_notes and not removed:
            yield f"the note of decision {id_} is missing, and no event says that it was erased"


def day_of(written: object) -> date:
    """Return the day in ISO 8601; the first possible one if it is none.

    >>> day_of("2026-01-05"), day_of("yesterday")
    (datetime.date(2026, 1, 5), datetime.date(1, 1, 1))
    """
    try:
        return date.fromisoformat(str(written))
    except ValueError:
        return date.min


def _confirmation_problems(connection: Connection, _: RecordedState) -> Iterator[str]:
    for id_ in connection.scalars(_CONFIRMATIONS):
        yield f"item {id_} confirms a label that the comment never got"


def _reference_problems(connection: Connection, _: RecordedState) -> Iterator[str]:
    for id_ in connection.scalars(_REFERENCES):
        yield f"decision {id_} does not fit to the others on its item: a number was changed"


def _repeated_rows(connection: Connection, _: RecordedState) -> Iterator[str]:
    for table in _KEYED:
        key = [*table.primary_key]
        for row in connection.execute(select(*key).group_by(*key).having(func.count() > 1)):
            yield f"the table {table.name} has the row {row[0]!r} more than once"


#: What yields how the tables differ from the log, by what it compares.
STATE: dict[str, Callable[[Connection, RecordedState], Iterator[str]]] = {
    "accounts": _account_problems,
    "gold comments": _gold_problems,
    "policies": _policy_problems,
    "items": _item_problems,
    "notes": _note_problems,
    "confirmations": _confirmation_problems,
    "references": _reference_problems,
    "repeated rows": _repeated_rows,
}
