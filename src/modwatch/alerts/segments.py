"""Where a change of the scores is: the segment that most of it is in, added to its message."""

import datetime
from dataclasses import replace
from typing import Any

from modwatch.lake.delta import Lake
from modwatch.review.outbox.messages import OutboxMessage

#: Features and metrics that depend on the scores of a day.
_ABOUT_SCORES = {"prob", "uncertainty", "flagged", "score_checks_warned"}

#: Those about the flagged share; all others are about the distribution of the scores.
_ABOUT_FLAGS = {"flagged"}

_EVENTS = ("opened", "escalated")


def with_segment(lake: Lake, message: OutboxMessage) -> OutboxMessage:
    """Return a message that an incident of scores has opened, or is worse, with its segment.

    The message is as it was if it is about anything else, or if no segment of its day stands out.
    """
    facts = message.payload["facts"]
    if facts["event"] not in _EVENTS:
        return message
    about = str(facts.get("metric", "")), str(facts.get("subject", ""))
    leading = leading_segment(lake, message.dt, *about)
    if leading is None:
        return message
    segment = {name: value for name, value in leading.items() if name not in ("dt", "leading")}
    text = f"{message.payload['text']}\nMost of it: {leading['sentence']}."
    told = {**message.payload, "text": text, "facts": {**facts, "segment": segment}}
    return replace(message, payload=told)


def leading_segment(
    lake: Lake, day: datetime.date, metric: str, subject: str
) -> dict[str, Any] | None:
    """Return the row of `SEGMENTS` that most of a change of the scores of a day is in.

    Of a change of the flagged share, the one that explains that if there is one, else the one that
    explains the mean score; of other changes of the scores, the other way round. None: no segment
    stands out, or the metric and its subject are about anything else.
    """
    about = {metric, subject.partition(",")[0]}
    if not about & _ABOUT_SCORES:
        return None
    flags = not about.isdisjoint(_ABOUT_FLAGS)
    rows = (row for row in lake.table("segments", day).to_pylist() if row["leading"])
    return min(rows, key=lambda row: (row["measure"] == "prob") == flags, default=None)
