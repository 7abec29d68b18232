"""Sends alerts on the configured channels, each alert once per channel.

Alerts are stored in the outbox of the review database first. If sending fails or the process is
killed, the next call of `deliver` sends the rest, under the same idempotency keys.
"""

import datetime
import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from sqlalchemy import Connection, Engine

from modwatch.common.errors import AlertError, AlertRefusedError
from modwatch.monitoring.incidents.channels import Channel
from modwatch.monitoring.incidents.messages.alert import Alert, digest_alert, needs_no_action
from modwatch.monitoring.incidents.rules import OTHER_CAUSES
from modwatch.review.outbox import messages as outbox
from modwatch.review.outbox.messages import OutboxMessage

_log = logging.getLogger(__name__)

#: Age from which an undelivered alert is dropped, if enough rounds of delivery have failed.
_EXPIRES_AFTER = datetime.timedelta(days=14)

Channels = Sequence[Channel]


def outbox_message(
    alert: Alert, day: datetime.date, *, topic: str, series: str = "", sequence: int = 1
) -> OutboxMessage:
    """Return `alert` as a message of the outbox; without a `series` it is one of its own."""
    payload, series = asdict(alert), series or alert.key
    key = payload.pop("key")
    return OutboxMessage(
        key=key, topic=topic, series=series, sequence=sequence, dt=day, payload=payload
    )


def post(database: Engine, channels: Channels, message: OutboxMessage) -> bool:
    """Store a message for delivery on `channels`; return False if its key is stored already."""
    with database.begin() as connection:
        return bool(store_messages(connection, channels, [message]))


def store_messages(
    connection: Connection, channels: Channels, messages: Sequence[OutboxMessage]
) -> int:
    """Store messages for delivery on `channels` with the transaction; return how many are new."""

    def receivers(message: OutboxMessage) -> list[str]:
        other = message.topic in OTHER_CAUSES
        cause = message.topic if other else message.series.partition("[")[0]
        facts = message.payload["facts"]
        return [channel.name for channel in channels if _takes(channel, cause, facts)]

    new = outbox.store(connection, messages, receivers)
    for message in messages:
        if message.key in new:
            number = len(receivers(message))
            _log.warning(
                "Alert raised: %s.",
                message.payload["title"],
                extra={"event": "alerts.raised", "key": message.key, "channels": number},
            )
    return len(new)


def deliver(database: Engine, channels: Channels, *, digest_of: datetime.date | None = None) -> int:
    """Send every pending alert; return how many were sent.

    A channel that fails does not affect the others, and is tried again with the next call. On a
    channel with a digest, alerts that need no action wait for a call with `digest_of`, which makes
    one message of them, once for each such day.

    Raises:
        AlertError: some alert could not be delivered; all others were sent.
    """
    for channel in channels:
        if digest_of and channel.route.digest:
            digest = partial(_digest, channel.name, digest_of)
            held = _held(_pending(database, channel))
            outbox.combine(database, channel.name, held, digest)
    problems: list[str] = []
    sent = sum(_deliver_on(database, channel, problems) for channel in channels)
    _raise(problems)
    return sent


def notify(
    database: Engine, channels: Channels, alert: Alert, day: datetime.date, *, topic: str
) -> None:
    """Post an alert that belongs to no incident, once, and deliver what is pending.

    A failed channel is logged, since it must not block who waits; the alert stays pending there.
    """
    post(database, channels, outbox_message(alert, day, topic=topic))
    try:
        deliver(database, channels)
    except AlertError as exc:
        _log.warning("An alert was not delivered: %s", exc)


def send_directly(channels: Channels, alert: Alert, *, cause: str) -> None:
    """Send an alert on its channels without storing it, as there is no database.

    Raises:
        AlertError: some channel failed.
    """
    problems: list[str] = []
    for channel in channels:
        try:
            if _takes(channel, cause, alert.facts):
                channel.send(alert)
        except AlertError as error:
            problems.append(str(error))
    _raise(problems)


def _takes(channel: Channel, cause: str, facts: Mapping[str, Any]) -> bool:
    """Return whether a channel receives an alert; one without a severity counts as critical."""
    return channel.route.takes(cause, facts.get("severity", "critical"))


def _pending(database: Engine, channel: Channel) -> list[OutboxMessage]:
    return outbox.pending(database, channel.name, younger_than=_EXPIRES_AFTER)


def _held(messages: Sequence[OutboxMessage]) -> set[str]:
    """Return the keys of messages that wait for the digest, in whose series no other is pending."""
    urgent = {
        message.series for message in messages if not needs_no_action(message.payload["facts"])
    }
    return {message.key for message in messages if message.series not in urgent}


def _digest(channel: str, day: datetime.date, messages: Sequence[OutboxMessage]) -> OutboxMessage:
    alerts = [Alert(key=message.key, **message.payload) for message in messages]
    return outbox_message(digest_alert(channel, day, alerts), day, topic="digest")


def _deliver_on(database: Engine, channel: Channel, problems: list[str]) -> int:
    """Send what is pending on a channel; return how many, and add what went wrong to `problems`.

    A rejected alert blocks the rest of its series; an unreachable receiver ends the attempt.
    """

    def send(message: OutboxMessage) -> None:
        channel.send(Alert(key=message.key, **message.payload))

    sent, blocked, pending = 0, set[str](), _pending(database, channel)
    held = _held(pending) if channel.route.digest else ()
    for message in pending:
        if message.series in blocked or message.key in held:
            continue
        try:
            sent += outbox.send(database, message, channel.name, send)
        except AlertError as error:
            problems.append(str(error))
            blocked.add(message.series)
            if not isinstance(error, AlertRefusedError):
                break
    if blocked:
        outbox.count_attempt(database, channel.name)
    return sent


def _raise(problems: list[str]) -> None:
    if problems:
        raise AlertError("; ".join(dict.fromkeys(problems)))
