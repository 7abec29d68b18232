"""The tables of the review queue, as SQLAlchemy Core, one topic per file.

`migrations/` creates them; a test compares the two.
"""

from modwatch.review.tables.base import metadata
from modwatch.review.tables.items import (
    ACTIONABLE_KINDS,
    BLIND_KINDS,
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
from modwatch.review.tables.log import ACTIONS, FINAL_ACTIONS, decision, decision_chain
from modwatch.review.tables.outbox import outbox_cursor, outbox_delivery, outbox_message
from modwatch.review.tables.people import (
    ROLES,
    TOKEN_PURPOSES,
    access_token,
    account_event,
    login_attempt,
    moderator,
    moderator_group,
    moderator_queue,
)
from modwatch.review.tables.reference import gold_comment, policy_version

__all__ = [
    "ACTIONABLE_KINDS",
    "ACTIONS",
    "BLIND_KINDS",
    "FINAL_ACTIONS",
    "KINDS",
    "NO_LEASE",
    "OPEN_STATUSES",
    "ROLES",
    "ROUTED_KINDS",
    "STATUSES",
    "TOKEN_PURPOSES",
    "access_token",
    "account_event",
    "bulk_close",
    "decision",
    "decision_chain",
    "gold_comment",
    "is_open",
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
    "unleased",
    "waiting",
]
