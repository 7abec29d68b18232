"""Delivery of decision events: at least once, in order per comment, by any number of processes.

A process claims a few messages for a limited time, and then posts them one by one without an open
transaction. If it is killed, its claims expire, and its last message may be sent once more under
the same key. All times are those of the database's clock.
"""

import datetime as dt
import json
import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Engine, Row, func, text, update
from sqlalchemy.exc import SQLAlchemyError

from modwatch.common import webhooks
from modwatch.common.errors import DatabaseError
from modwatch.common.webhooks import Answer
from modwatch.review.database import at_once
from modwatch.review.outbox.decision_events import TOPIC, relay_decisions
from modwatch.review.outbox.messages import OutboxMessage, message_of
from modwatch.review.tables import outbox_delivery

logger = logging.getLogger(__name__)

#: Duration of a claim; nothing is posted in its second half.
CLAIM = dt.timedelta(minutes=2)

#: The longest pause between two attempts, whatever the receiver asks for.
LONGEST_PAUSE = dt.timedelta(hours=1)

#: A message that is older, and was tried `FEWEST_ATTEMPTS` times, becomes a dead letter.
DEAD_AFTER = dt.timedelta(hours=24)
FEWEST_ATTEMPTS = 10

#: After so many failures in a row the receiver counts as down.
BROKEN = 3

#: Client errors that may be temporary; all others below 500 are permanent.
_TEMPORARY = frozenset({408, 425, 429})

Send = Callable[[OutboxMessage], Answer]


@dataclass(frozen=True, kw_only=True)
class Round:
    """The result of one call of `deliver`."""

    #: Messages claimed; 0: nothing is due.
    claimed: int
    sent: int
    #: Failed attempts that will be repeated.
    failed: int
    #: Messages that became dead letters.
    dead: int
    #: Seconds for which the receiver asked for a pause, if it did.
    pause: float | None


# A message waits for the earlier ones of its series, except dead letters. A time in the far future
# was set by a clock that was ahead. OFFSET 0 keeps the planner from joining all messages with each
# other. Attempts have numbers, so that an expired claim cannot overwrite a later one.
_TAKE = text(
    """
    WITH due AS MATERIALIZED (
        SELECT delivery.message_id FROM outbox_delivery delivery
        JOIN outbox_message message ON message.id = delivery.message_id
        WHERE delivery.channel = :channel AND message.topic = :topic
            AND delivery.delivered_at IS NULL AND delivery.dead_at IS NULL
            AND (delivery.next_attempt_at <= now()
                OR delivery.next_attempt_at > now() + 2 * CAST(:longest AS interval))
            AND NOT EXISTS (
                SELECT FROM outbox_message earlier
                JOIN outbox_delivery before
                    ON before.message_id = earlier.id AND before.channel = delivery.channel
                WHERE earlier.topic = message.topic AND earlier.series = message.series
                    AND earlier.sequence < message.sequence
                    AND before.delivered_at IS NULL AND before.dead_at IS NULL
                OFFSET 0
            )
        ORDER BY delivery.message_id LIMIT :most
        FOR UPDATE OF delivery SKIP LOCKED
    )
    UPDATE outbox_delivery SET
        attempts = attempts + 1, next_attempt_at = now() + CAST(:claim AS interval)
    FROM due JOIN outbox_message message ON message.id = due.message_id
    WHERE outbox_delivery.message_id = due.message_id AND outbox_delivery.channel = :channel
    RETURNING due.message_id, outbox_delivery.attempts AS attempt, message.key, message.topic,
        message.series, message.sequence, message.dt, message.payload
    """
)

# 1 s, doubling up to 10 minutes, minus up to half of it at random, so that attempts spread out.
_FAILED = text(
    """
    UPDATE outbox_delivery SET
        last_problem = :problem,
        next_attempt_at = now() + make_interval(secs => greatest(
            CAST(:pause AS double precision),
            least(600, power(2, least(attempts, 20) - 1)) * (0.5 + random() / 2)
        )),
        dead_at = CASE WHEN :rejected OR (
            attempts >= :fewest AND message.created_at < now() - CAST(:dead_after AS interval)
        ) THEN now() END
    FROM outbox_message message
    WHERE message.id = outbox_delivery.message_id AND message_id = :message_id
        AND channel = :channel AND attempts = :attempt AND delivered_at IS NULL
    RETURNING dead_at IS NOT NULL
    """
)


_PUT_BACK = text(
    """
    UPDATE outbox_delivery SET attempts = attempts - 1, next_attempt_at = now()
    WHERE message_id = :message_id AND channel = :channel AND attempts = :attempt
        AND delivered_at IS NULL
    """
)

# Even if the claim has expired: the receiver has the message.
_SENT = text(
    """
    UPDATE outbox_delivery SET
        delivered_at = clock_timestamp(), dead_at = NULL, last_problem = NULL
    WHERE message_id = :message_id AND channel = :channel AND delivered_at IS NULL
    """
)


def deliver(
    engine: Engine,
    channel: str,
    send: Send,
    *,
    most: int = 50,
    go_on: Callable[[], bool] = lambda: True,
) -> Round:
    """Send up to `most` due messages of a channel with `send`; return the results.

    A failed attempt is repeated with exponential backoff; a permanent rejection makes a dead
    letter. Stops early if the receiver is down or asks for a pause, if `go_on` returns False, and
    at half of the claim's time; the remaining messages are due again at once.
    """
    claims = _claim(engine, channel, most)
    until = time.monotonic() + CLAIM.total_seconds() / 2
    outcomes: list[str] = []
    pause = None
    for claim in claims:
        broken = outcomes[-BROKEN:] == ["failed"] * BROKEN
        if broken or pause is not None or time.monotonic() > until or not go_on():
            break
        answer = send(message_of(claim))
        outcomes.append(_record_result(engine, channel, claim, answer))
        pause = _pause(answer)
    if left := [{**claim._mapping, "channel": channel} for claim in claims[len(outcomes) :]]:
        with engine.begin() as connection:
            connection.execute(_PUT_BACK, left)
    return Round(
        claimed=len(claims),
        sent=outcomes.count("sent"),
        failed=outcomes.count("failed"),
        dead=outcomes.count("dead"),
        pause=pause,
    )


def _claim(engine: Engine, channel: str, most: int) -> list[Row[Any]]:
    """Return the claimed messages, oldest first."""
    values = {
        "channel": channel,
        "topic": TOPIC,
        "most": most,
        "claim": CLAIM,
        "longest": LONGEST_PAUSE,
    }
    with engine.begin() as connection:
        rows = list(connection.execute(_TAKE, values))
    return sorted(rows, key=lambda claim: claim.message_id)


def _record_result(engine: Engine, channel: str, claim: Row[Any], answer: Answer) -> str:
    """Record the result of an attempt; return sent, failed or dead."""
    if not answer.problem:
        with engine.begin() as connection:
            connection.execute(_SENT, {"channel": channel, "message_id": claim.message_id})
        return "sent"
    values = {
        "channel": channel,
        "message_id": claim.message_id,
        "attempt": claim.attempt,
        "problem": answer.problem,
        "rejected": _rejected(answer),
        "pause": _pause(answer) or 0.0,
        "fewest": FEWEST_ATTEMPTS,
        "dead_after": DEAD_AFTER,
    }
    with engine.begin() as connection:
        dead = bool(connection.scalar(_FAILED, values))
    logger.warning(
        "A message became a dead letter." if dead else "A message could not be delivered yet.",
        extra={
            "event": "delivery_dead" if dead else "delivery_failed",
            "channel": channel,
            "key": claim.key,
            "attempt": claim.attempt,
            "problem": answer.problem,
        },
    )
    return "dead" if dead else "failed"


def _rejected(answer: Answer) -> bool:
    """Return whether the receiver rejected the message permanently."""
    return answer.status is not None and answer.status < 500 and answer.status not in _TEMPORARY


def _pause(answer: Answer) -> float | None:
    """Return the pause that a failing receiver asks for, in seconds, within limits."""
    if not answer.problem or answer.retry_after is None or _rejected(answer):
        return None
    return min(answer.retry_after, LONGEST_PAUSE.total_seconds())


#: The channel of the platform's webhook; `webhook` is the one of alerts.
PLATFORM = "platform"

#: Longest pause between two attempts to reach a receiver that is down, in seconds.
_LONGEST_BACKOFF = 60.0


@dataclass(frozen=True, kw_only=True)
class DecisionWebhook:
    """Posts messages as signed JSON; call it with a message."""

    #: http or https; may contain a token, so it must not appear in messages and logs.
    url: str = field(repr=False)
    #: Key of the signature.
    secret: str = field(repr=False)
    #: Seconds that one step of a request (connecting, sending, receiving) may take.
    timeout: float = 10.0
    clock: Callable[[], float] = time.time

    def __call__(self, message: OutboxMessage) -> Answer:
        """Return the result of one request; never raises."""
        body = json.dumps(message.payload, sort_keys=True, allow_nan=False).encode()
        return webhooks.post(
            self.url,
            body,
            secret=self.secret,
            key=message.key,
            timeout=self.timeout,
            clock=self.clock,
        )


@dataclass(kw_only=True)
class Deliverer:
    """Turns decisions into messages and delivers them, until it is stopped.

    Any number of them may run concurrently: as threads of the console, or on other machines.
    """

    engine: Engine
    #: Functions that send, by channel.
    channels: Mapping[str, Send]
    #: The DSA category of a policy code.
    category_of: Callable[[str], str | None] = lambda _: None
    #: Seconds between two reads of the log.
    interval: float = 1.0
    _pauses: dict[str, float] = field(default_factory=dict, repr=False)
    _asleep_until: dict[str, float] = field(default_factory=dict, repr=False)

    def run(self, stop: threading.Event) -> None:
        """Work until `stop` is set; a request in progress is finished first.

        Waits while the database is down.
        """
        while not stop.is_set():
            try:
                busy = self.once(stop)
            except (DatabaseError, SQLAlchemyError) as error:  # the latter's text may quote rows
                why = error if isinstance(error, DatabaseError) else type(error).__name__
                logger.warning("Deliveries wait: %s.", why, extra={"event": "deliverer_waits"})
                busy = False
            if not busy:
                stop.wait(self.interval)

    def once(self, stop: threading.Event | None = None) -> bool:
        """Read the log and send one round per active channel; return whether there may be more."""
        go_on = (lambda: not stop.is_set()) if stop else (lambda: True)
        relay_decisions(self.engine, list(self.channels), category_of=self.category_of, go_on=go_on)
        busy = False
        for name, send in self.channels.items():
            if time.monotonic() >= self._asleep_until.get(name, 0.0):
                busy |= self._rest(name, deliver(self.engine, name, send, go_on=go_on))
        return busy

    def _rest(self, name: str, done: Round) -> bool:
        """Pause a channel whose receiver is down; return whether to continue immediately."""
        if done.sent or done.failed < BROKEN:
            self._pauses.pop(name, None)
        else:
            self._pauses[name] = min(
                2 * self._pauses.get(name, self.interval / 2), _LONGEST_BACKOFF
            )
        pause = max(self._pauses.get(name, 0.0), done.pause or 0.0)
        self._asleep_until[name] = time.monotonic() + pause
        return bool(done.claimed) and not pause


@dataclass(frozen=True, kw_only=True)
class DeadLetter:
    """A message that will not be sent until a person sends it again."""

    message_id: int
    key: str
    series: str
    #: decided | changed | withdrawn
    event: str
    attempts: int
    #: `answer 410`, `TimeoutError`.
    last_problem: str | None
    created_at: dt.datetime
    dead_at: dt.datetime


@dataclass(frozen=True, kw_only=True)
class DeliveryState:
    """The delivery status of a channel."""

    pending: int
    dead: int
    #: How long the oldest pending message has been waiting; None if there is none.
    oldest_pending: dt.timedelta | None


_DEAD = text(
    """
    SELECT message_id, key, series, payload->>'event' AS event, attempts, last_problem, created_at,
        dead_at
    FROM outbox_delivery JOIN outbox_message ON id = message_id
    WHERE channel = :channel AND topic = :topic AND dead_at IS NOT NULL
    ORDER BY message_id LIMIT :most
    """
)


def dead_letters(engine: Engine, channel: str, *, limit: int = 100) -> list[DeadLetter]:
    """Return the first `limit` dead letters of a channel."""
    values = {"channel": channel, "topic": TOPIC, "most": limit}
    return [DeadLetter(**row) for row in at_once(engine, _DEAD, values)]


def resend(engine: Engine, channel: str, ids: Collection[int] | None = None) -> int:
    """Make dead letters of a channel due again, all or those with these message ids.

    Returns how many; other messages are ignored.
    """
    mine = [outbox_delivery.c.channel == channel, outbox_delivery.c.dead_at.is_not(None)]
    if ids is not None:
        mine.append(outbox_delivery.c.message_id.in_(list(ids)))
    again = update(outbox_delivery).where(*mine)
    with engine.begin() as connection:
        done = connection.execute(
            again.values(dead_at=None, attempts=0, next_attempt_at=func.now())
        ).rowcount
    logger.info(
        "Dead letters were made due again.",
        extra={"event": "dead_letters_resent", "channel": channel, "letters": done},
    )
    return done


_STATES = text(
    """
    SELECT channel, count(*) FILTER (WHERE dead_at IS NULL) AS pending, count(dead_at) AS dead,
        now() - min(created_at) FILTER (WHERE dead_at IS NULL) AS oldest_pending
    FROM outbox_delivery JOIN outbox_message ON id = message_id
    WHERE delivered_at IS NULL AND topic = :topic GROUP BY channel
    """
)


def delivery_state(engine: Engine) -> dict[str, DeliveryState]:
    """Return the status of every channel with undelivered decision events."""
    rows = [dict(row) for row in at_once(engine, _STATES, {"topic": TOPIC})]
    return {row.pop("channel"): DeliveryState(**row) for row in rows}
