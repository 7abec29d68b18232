"""The review queue: who is served what, and what becomes of it.

`intake` fills it, `leases` says who holds what, `deciding` ends a lease, `amendments` takes back
and corrects, `closing` gives up many at once, `health` says how long it is; `statements` holds the
SQL of what people wait for, `lanes` the rules. Every function is one transaction, and the
database's clock is the only one that counts.
"""

from modwatch.review.log.labels import decisions
from modwatch.review.log.verification import LogReport, verify_log
from modwatch.review.queue.deciding import LONGEST_NOTE, Request, decide, escalate, skip
from modwatch.review.queue.intake import Enqueued, enqueue, retire_second_opinions
from modwatch.review.queue.leases import (
    LEASE_LENGTH,
    claim,
    extend,
    lease,
    lease_escalated,
    release,
    resume,
)
from modwatch.review.queue.metrics import QueueAges, QueueCounts, counts, queue_ages

__all__ = [
    "LEASE_LENGTH",
    "LONGEST_NOTE",
    "Enqueued",
    "LogReport",
    "QueueAges",
    "QueueCounts",
    "Request",
    "claim",
    "counts",
    "decide",
    "decisions",
    "enqueue",
    "escalate",
    "extend",
    "lease",
    "lease_escalated",
    "queue_ages",
    "release",
    "resume",
    "retire_second_opinions",
    "skip",
    "verify_log",
]
