"""Compares the tables that change with the append-only decisions and events.

Accounts, gold comments and policies must be as their last event left them, and decided items as
their last decision did: a change in the database without an entry of the log is a contradiction.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Text, literal_column, select, text

from modwatch.review.database import json_digest
from modwatch.review.log.decision_log import commitment_sql, text_commitment_sql
from modwatch.review.log.labels import not_undone_sql
from modwatch.review.tables import FINAL_ACTIONS, gold_comment, moderator, policy_version

#: Commitment to a row of `gold_comment`, in hexadecimal.
GOLD_COMMITMENT = literal_column(
    "encode("
    + commitment_sql(
        "salt",
        "json_build_array(comment_id, text, parent_text, language, platform, label, policy_code, "
        "source)::text",
    )
    + ", 'hex')",
    Text,
)

_FINAL = ", ".join(f"'{action}'" for action in FINAL_ACTIONS)

#: Items that are not as their last decision left them. An item with a label in force must have the
#: texts that were read for it; whoever labelled an item that is open again may have read others.
_ITEMS = text(
    f"""
    WITH last AS (
        SELECT DISTINCT ON (item_id) item_id, outcome FROM decision
        ORDER BY item_id, id DESC
    ), labels AS (
        SELECT item_id, bool_and(
            coalesce(text_commitment = {text_commitment_sql("item")}, false)) AS same_texts
        FROM decision JOIN review_item AS item ON item.id = decision.item_id
        WHERE item.status = 'decided' AND action IN ({_FINAL})
            AND {not_undone_sql("decision")}
        GROUP BY item_id
    )
    SELECT item.id, item.status, last.outcome,
        labels.item_id IS NOT NULL AS labelled, labels.same_texts
    FROM review_item AS item
    LEFT JOIN last ON last.item_id = item.id
    LEFT JOIN labels ON labels.item_id = item.id
    WHERE item.status = 'decided' AND (labels.item_id IS NULL OR NOT labels.same_texts)
        OR item.status IN ('decided', 'closed')
            AND last.outcome IS DISTINCT FROM item.status
        OR last.outcome IN ('decided', 'closed') AND item.status <> last.outcome
    ORDER BY item.id
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


@dataclass(kw_only=True)
class RecordedState:
    """Accounts, gold comments and policies as the events that were added left them."""

    #: Pseudonym, role and whether disabled, by account.
    accounts: dict[int, tuple[str, str, bool]] = field(default_factory=dict)
    #: Commitment, and whether retired, by comment.
    gold: dict[str, tuple[str, bool]] = field(default_factory=dict)
    #: Digest by version.
    policies: dict[str, str] = field(default_factory=dict)

    def add(self, action: str, subject_id: int | None, details: Mapping[str, Any]) -> None:
        """Add the next event."""
        pseudonym, role, disabled = self.accounts.get(subject_id or 0, ("", "", False))
        match action:
            case "create" if subject_id is not None:
                self.accounts[subject_id] = (
                    details["pseudonym"],
                    details["role"],
                    bool(details.get("disabled")),
                )
            case "change_role" if subject_id is not None:
                self.accounts[subject_id] = (pseudonym, details["role"], disabled)
            case "disable" | "enable" if subject_id is not None:
                self.accounts[subject_id] = (pseudonym, role, action == "disable")
            case "add_gold" | "retire_gold":
                self.gold[details["comment_id"]] = (details["commitment"], action == "retire_gold")
            case "register_policy":
                self.policies[details["version"]] = details["digest"]


def state_problems(connection: Connection, state: RecordedState) -> Iterator[str]:
    """Yield how accounts, gold comments and policies differ from `state`, items from the log."""
    yield from _account_problems(connection, state)
    yield from _gold_problems(connection, state)
    yield from _policy_problems(connection, state)
    for row in connection.execute(_ITEMS):
        if row.status == "decided" and not row.labelled:
            yield f"item {row.id} is decided, but the log has no label of it"
        elif row.labelled and not row.same_texts:
            yield f"item {row.id} has other texts than those that were judged"
        else:
            yield (
                f"item {row.id} is {row.status}, but its last decision left it "
                f"{row.outcome or 'unchanged'}"
            )
    for id_ in connection.scalars(_CONFIRMATIONS):
        yield f"item {id_} confirms a label that the comment never got"


def _account_problems(connection: Connection, state: RecordedState) -> Iterator[str]:
    columns = (moderator.c.id, moderator.c.pseudonym, moderator.c.role, moderator.c.disabled_at)
    for row in connection.execute(select(*columns).order_by(moderator.c.id)):
        pseudonym, role, disabled = state.accounts.get(row.id, (None, None, None))
        if pseudonym is None:
            yield f"account {row.id} exists, but no event created it"
            continue
        if row.pseudonym != pseudonym:
            yield f"account {row.id} has another pseudonym than at its creation"
        if row.role != role:
            yield f"account {row.id} has the role {row.role}, but its events say {role}"
        if (row.disabled_at is not None) != disabled:
            now, then = ("disabled", "enabled") if row.disabled_at else ("enabled", "disabled")
            yield f"account {row.id} is {now}, but its events say {then}"


def _gold_problems(connection: Connection, state: RecordedState) -> Iterator[str]:
    missing = set(state.gold)
    retired = gold_comment.c.retired_at.is_not(None)
    rows = select(gold_comment.c.comment_id, GOLD_COMMITMENT, retired).order_by(
        gold_comment.c.comment_id
    )
    for comment_id, committed, is_retired in connection.execute(rows):
        missing.discard(comment_id)
        if state.gold.get(comment_id) != (committed, is_retired):
            yield f"gold comment {comment_id!r} is not as its last event left it"
    for comment_id in sorted(missing):
        yield f"gold comment {comment_id!r} is missing, but an event recorded it"


def _policy_problems(connection: Connection, state: RecordedState) -> Iterator[str]:
    missing = set(state.policies)
    columns = (policy_version.c.version, policy_version.c.digest, policy_version.c.content)
    for row in connection.execute(select(*columns).order_by(policy_version.c.version)):
        missing.discard(row.version)
        if not row.digest == json_digest(row.content) == state.policies.get(row.version):
            yield f"the policy {row.version} is not the one that was registered"
    for version in sorted(missing):
        yield f"the policy {version} is missing, but an event recorded it"
