"""The review queue: which item is served to whom, and what they decide.

`intake` fills the queue and withdraws items, `leases` gives items to people, `deciding` records,
undoes and corrects what they do, `dismissal` closes many items at once, and `metrics` measures the
queue. `audits` queues the items of audits. `lanes` are the rules of service,
and `statements` the SQL of the operations that people wait for. Every function is one transaction,
and all times are those of the database's clock.
"""

from modwatch.review.log.labels import current_labels
from modwatch.review.log.verification import verify_log
from modwatch.review.queue.deciding import LONGEST_NOTE, decide, escalate, skip
from modwatch.review.queue.intake import enqueue
from modwatch.review.queue.leases import (
    LEASE_LENGTH,
    claim,
    extend,
    lease,
    lease_escalated,
    release,
    renew,
    resume,
)
from modwatch.review.queue.metrics import counts, queue_ages

__all__ = [
    "LEASE_LENGTH",
    "LONGEST_NOTE",
    "claim",
    "counts",
    "current_labels",
    "decide",
    "enqueue",
    "escalate",
    "extend",
    "lease",
    "lease_escalated",
    "queue_ages",
    "release",
    "renew",
    "resume",
    "skip",
    "verify_log",
]
