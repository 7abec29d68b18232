"""The ends of all chains as the database records them, without a walk through the log."""

from sqlalchemy import Connection, select, tuple_

from modwatch.review.log.chains import EVENTS, ChainEnd, ends_of, witness_of
from modwatch.review.tables import decision, decision_chain, event, event_chain


def recorded_ends(connection: Connection) -> dict[int, ChainEnd]:
    """Return the recorded end of each chain that has one."""
    columns = (decision_chain.c.moderator_id, decision_chain.c.length, decision_chain.c.hash)
    ends = {row[0]: ChainEnd(row[1], row[2]) for row in connection.execute(select(*columns))}
    events = connection.execute(select(event_chain.c.length, event_chain.c.hash)).one_or_none()
    if events is not None and events.length:
        ends[EVENTS] = ChainEnd(*events)
    return ends


def recorded_witness(connection: Connection) -> str:
    """Return the witness of the log as it is now: `LogReport.witness` of the recorded ends."""
    return witness_of(recorded_ends(connection))


def was_witnessed(connection: Connection, witness: str) -> bool:
    """Return whether the log has every end of a witness where it had it.

    Whether the rows between are intact is for `verification.verify_log`. Raises `QueueError` for an
    invalid witness.
    """
    ends = {(chain, *end) for chain, end in ends_of(witness).items() if end.length}
    row = tuple_(decision.c.moderator_id, decision.c.position, decision.c.hash)
    found = connection.execute(
        select(decision.c.moderator_id, decision.c.position, decision.c.hash).where(
            row.in_([end for end in ends if end[0] != EVENTS])
        )
    )
    last = [end[1] for end in ends if end[0] == EVENTS]
    events = connection.execute(
        select(event.c.position, event.c.hash).where(event.c.position.in_(last))
    )
    return {*map(tuple, found), *((EVENTS, *each) for each in events)} == ends
