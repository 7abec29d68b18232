"""The tables of the review queue, as SQLAlchemy Core; `migrations/` creates them.

A test compares the two. `metadata` knows all of them, whichever module is imported.
"""

from modwatch.review.tables.accounts import (
    ROLES,
    TOKEN_PURPOSES,
    access_token,
    event,
    event_chain,
    known_origin,
    login_attempt,
    moderator,
    moderator_group,
    moderator_queue,
    second_factor,
)
from modwatch.review.tables.columns import TransactionId, metadata
from modwatch.review.tables.decisions import (
    ACTIONS,
    FINAL_ACTIONS,
    decision,
    decision_chain,
    gold_comment,
    policy_version,
)
from modwatch.review.tables.incidents import incident, incident_event
from modwatch.review.tables.items import (
    ACTIONABLE_KINDS,
    CONFIRMATION_ROUNDS,
    KINDS,
    NO_LEASE,
    OPEN_STATUSES,
    ROUTED_KINDS,
    STATUSES,
    bulk_close,
    is_open,
    lane,
    review_item,
    unleased,
    waiting,
)
from modwatch.review.tables.outbox import outbox_cursor, outbox_delivery, outbox_message

__all__ = [
    "ACTIONABLE_KINDS",
    "ACTIONS",
    "CONFIRMATION_ROUNDS",
    "FINAL_ACTIONS",
    "KINDS",
    "NO_LEASE",
    "OPEN_STATUSES",
    "ROLES",
    "ROUTED_KINDS",
    "STATUSES",
    "TOKEN_PURPOSES",
    "TransactionId",
    "access_token",
    "bulk_close",
    "decision",
    "decision_chain",
    "event",
    "event_chain",
    "gold_comment",
    "incident",
    "incident_event",
    "is_open",
    "known_origin",
    "lane",
    "login_attempt",
    "metadata",
    "moderator",
    "moderator_group",
    "moderator_queue",
    "outbox_cursor",
    "outbox_delivery",
    "outbox_message",
    "policy_version",
    "review_item",
    "second_factor",
    "unleased",
    "waiting",
]
