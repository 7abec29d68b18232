"""The columns of the review tables, as SQLAlchemy Core, for statements.

`migrations/` creates the tables; defaults, constraints and indexes stand there alone. A test
compares columns and foreign keys. `metadata` knows all tables, whichever module is imported.
"""

from modwatch.review.tables.accounts import (
    ROLES,
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
from modwatch.review.tables.messages import (
    incident,
    incident_event,
    outbox_cursor,
    outbox_delivery,
    outbox_message,
)
from modwatch.review.tables.queue import (
    ACTIONABLE_KINDS,
    CONFIRMATION_ROUNDS,
    FINAL_ACTIONS,
    KINDS,
    NO_LEASE,
    OPEN_STATUSES,
    ROUTED_KINDS,
    STATUSES,
    bulk_close,
    decision,
    decision_chain,
    gold_comment,
    is_open,
    lane,
    policy_version,
    review_item,
    unleased,
    waiting,
)

__all__ = [
    "ACTIONABLE_KINDS",
    "CONFIRMATION_ROUNDS",
    "FINAL_ACTIONS",
    "KINDS",
    "NO_LEASE",
    "OPEN_STATUSES",
    "ROLES",
    "ROUTED_KINDS",
    "STATUSES",
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
