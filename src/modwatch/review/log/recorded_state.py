"""Compares the tables that change with what the append-only ones say of them.

Accounts, gold comments and policies must be as their last event left them, and decided items as
their last decision did: somebody who changes them in the database leaves a contradiction.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Text, literal_column, select, text

from modwatch.review.digests import json_digest
from modwatch.review.log.hashing import text_digest_sql
from modwatch.review.tables import FINAL_ACTIONS, gold_comment, moderator, policy_version

#: SHA-256 of a row of `gold_comment`, in hexadecimal.
GOLD_DIGEST = literal_column(
    "encode(sha256(convert_to(json_build_array(comment_id, text, parent_text, language, platform, "
    "label, policy_code, source)::text, 'UTF8')), 'hex')",
    Text,
)

_FINAL = ", ".join(f"'{action}'" for action in FINAL_ACTIONS)

#: Items that are not as their last decision left them. What has a label in force must have the
#: texts that were read for it; whoever labelled an item that is open again may have read others.
_ITEMS = text(
    f"""
    WITH last AS (
        SELECT DISTINCT ON (item_id) item_id, format, outcome FROM decision
        ORDER BY item_id, id DESC
    ), labels AS (
        SELECT item_id, bool_and(text_digest IS NULL OR text_digest = {text_digest_sql("item")})
            AS same_texts
        FROM decision JOIN review_item AS item ON item.id = decision.item_id
        WHERE item.status = 'decided' AND action IN ({_FINAL}) AND NOT EXISTS (
            SELECT FROM decision AS undo WHERE undo.refers_to = decision.id AND undo.action = 'undo'
        )
        GROUP BY item_id
    )
    SELECT item.id, item.status, last.format, last.outcome,
        labels.item_id IS NOT NULL AS labelled, labels.same_texts
    FROM review_item AS item
    LEFT JOIN last ON last.item_id = item.id
    LEFT JOIN labels ON labels.item_id = item.id
    WHERE item.status = 'decided' AND (labels.item_id IS NULL OR NOT labels.same_texts)
        OR item.status IN ('decided', 'closed')
            AND last.outcome IS DISTINCT FROM item.status AND last.format IS DISTINCT FROM 1
            AND last.format IS DISTINCT FROM 2
        OR last.outcome IN ('decided', 'closed') AND item.status <> last.outcome
    ORDER BY item.id
    """  # noqa: S608 - our own text
)

#: Confirmations that say that they were opened for a label which nobody gave the comment: the
#: probability of a confirmation is that of this label.
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
class Told:
    """What the events tell of, after those that were added."""

    #: Pseudonym, role and whether disabled, by account.
    accounts: dict[int, tuple[str, str, bool]] = field(default_factory=dict)
    #: Digest, and whether retired, by comment.
    gold: dict[str, tuple[str, bool]] = field(default_factory=dict)
    #: Digest by version.
    policies: dict[str, str] = field(default_factory=dict)

    def add(self, action: str, subject_id: int | None, details: Mapping[str, Any]) -> None:
        """Take in the next event."""
        pseudonym, role, disabled = self.accounts.get(subject_id or 0, ("", "", False))
        match action:
            case "create" | "record_account" if subject_id is not None:
                disabled = bool(details.get("disabled"))
                self.accounts[subject_id] = (
                    details.get("pseudonym", ""),
                    details["role"],
                    disabled,
                )
            case "change_role" if subject_id is not None:
                self.accounts[subject_id] = (pseudonym, details["role"], disabled)
            case "disable" | "enable" if subject_id is not None:
                self.accounts[subject_id] = (pseudonym, role, action == "disable")
            case "add_gold" | "retire_gold":
                self.gold[details["comment_id"]] = (details["digest"], action == "retire_gold")
            case "register_policy":
                self.policies[details["version"]] = details["digest"]


def state_problems(connection: Connection, told: Told) -> Iterator[str]:
    """Yield what differs from `told` in accounts, gold comments and policies, and in the items."""
    yield from _account_problems(connection, told)
    yield from _gold_problems(connection, told)
    yield from _policy_problems(connection, told)
    for row in connection.execute(_ITEMS):
        if row.status == "decided" and not row.labelled:
            yield f"item {row.id} is decided, but the log has no label of it"
        elif row.labelled and not row.same_texts:
            yield f"item {row.id} has other texts than those that were judged"
        else:
            yield (
                f"item {row.id} is {row.status}, but its last decision left it "
                f"{row.outcome or 'as it was'}"
            )
    for id_ in connection.scalars(_CONFIRMATIONS):
        yield f"item {id_} confirms a label that nobody gave the comment"


def _account_problems(connection: Connection, told: Told) -> Iterator[str]:
    columns = (moderator.c.id, moderator.c.pseudonym, moderator.c.role, moderator.c.disabled_at)
    for row in connection.execute(select(*columns).order_by(moderator.c.id)):
        pseudonym, role, disabled = told.accounts.get(row.id, (None, None, None))
        if pseudonym is None:
            yield f"account {row.id} exists, but no event tells of it"
            continue
        if row.pseudonym != pseudonym:
            yield f"account {row.id} has another pseudonym than the one that it was created with"
        if row.role != role:
            yield f"account {row.id} has the role {row.role}, but its events say {role}"
        if (row.disabled_at is not None) != disabled:
            now, then = ("disabled", "enabled") if row.disabled_at else ("enabled", "disabled")
            yield f"account {row.id} is {now}, but its events say {then}"


def _gold_problems(connection: Connection, told: Told) -> Iterator[str]:
    missing = set(told.gold)
    retired = gold_comment.c.retired_at.is_not(None)
    rows = select(gold_comment.c.comment_id, GOLD_DIGEST, retired).order_by(
        gold_comment.c.comment_id
    )
    for comment_id, digest, is_retired in connection.execute(rows):
        missing.discard(comment_id)
        if told.gold.get(comment_id) != (digest, is_retired):
            yield f"gold comment {comment_id!r} is not as its last event left it"
    for comment_id in sorted(missing):
        yield f"gold comment {comment_id!r} is missing, but an event tells of it"


def _policy_problems(connection: Connection, told: Told) -> Iterator[str]:
    missing = set(told.policies)
    columns = (policy_version.c.version, policy_version.c.digest, policy_version.c.content)
    for row in connection.execute(select(*columns).order_by(policy_version.c.version)):
        missing.discard(row.version)
        if not row.digest == json_digest(row.content) == told.policies.get(row.version):
            yield f"the policy {row.version} is not the one that was registered"
    for version in sorted(missing):
        yield f"the policy {version} is missing, but an event tells of it"
