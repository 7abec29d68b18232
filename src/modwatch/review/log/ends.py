"""The ends of the chains as they are recorded, without a walk through the log."""

from sqlalchemy import Connection, select, tuple_

from modwatch.review.log.verification import ChainEnd, LogReport, ends_of
from modwatch.review.tables import decision, decision_chain


def recorded_witness(connection: Connection) -> str:
    """Return the witness of the log as it is now: `LogReport.witness` of the recorded ends."""
    ends = {
        row.moderator_id: ChainEnd(row.length, row.hash)
        for row in connection.execute(select(decision_chain))
    }
    return LogReport(decisions=0, problems=(), ends=ends).witness


def was_witnessed(connection: Connection, witness: str) -> bool:
    """Return whether the log has every end of a witness where it had it.

    Whether the decisions between are intact is for `verification.verify_log`. Raises `QueueError`
    for an invalid witness.
    """
    ends = {(person, *end) for person, end in ends_of(witness).items()}
    where = tuple_(decision.c.moderator_id, decision.c.position, decision.c.hash)
    found = connection.execute(
        select(decision.c.moderator_id, decision.c.position, decision.c.hash).where(where.in_(ends))
    )
    return {tuple(row) for row in found} == ends
