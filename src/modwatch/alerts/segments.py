"""Where a change of the scores is: the segment that most of it is in, added to its message."""

from dataclasses import replace

from modwatch.lake.delta import Lake
from modwatch.review.outbox.messages import OutboxMessage

#: Features and metrics that depend on the scores of a day.
_ABOUT_SCORES = {"prob", "uncertainty", "flagged", "score_checks_warned"}

_EVENTS = ("opened", "escalated")


def with_segment(lake: Lake, message: OutboxMessage) -> OutboxMessage:
    """Return a message that an incident of scores has opened, or is worse, with its segment.

    The message is as it was if it is about anything else, or if no segment of its day stands out.
    """
    facts = message.payload["facts"]
    about = {facts.get("metric"), str(facts.get("subject", "")).partition(",")[0]}
    if facts["event"] not in _EVENTS or not about & _ABOUT_SCORES:
        return message
    rows = lake.table("segments", message.dt).to_pylist()
    leading = next((row for row in rows if row["leading"]), None)
    if leading is None:
        return message
    segment = {name: value for name, value in leading.items() if name not in ("dt", "leading")}
    text = f"{message.payload['text']}\nMost of it: {leading['sentence']}."
    told = {**message.payload, "text": text, "facts": {**facts, "segment": segment}}
    return replace(message, payload=told)
