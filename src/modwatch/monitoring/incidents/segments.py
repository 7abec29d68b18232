"""Where a change of scores or accuracy is: the segment that most of it is in, for its message."""

import datetime
from dataclasses import asdict, replace
from typing import Any, Protocol

from modwatch.data.lake.delta import Lake
from modwatch.monitoring.incidents.rules import LEVEL_CHANGES
from modwatch.review.outbox.messages import OutboxMessage
from modwatch.statistics.live.group_falls import FallenGroup

#: Features and metrics that depend on the scores of a day.
_ABOUT_SCORES = {"prob", "uncertainty", "flagged", "score_checks_warned"}

#: Those about the flagged share; all others are about the distribution of the scores.
_ABOUT_FLAGS = {"flagged"}

_EVENTS = ("opened", "escalated")


class FallenIn(Protocol):
    """Finds the group of comments that a fall of accuracy is in."""

    def __call__(
        self, since: datetime.date, until: datetime.date, fall: float, /
    ) -> FallenGroup | None:
        """Return the group; None: the fall is spread over all comments, or labels are too few."""


def with_segment(
    lake: Lake, message: OutboxMessage, fallen_in: FallenIn | None = None
) -> OutboxMessage:
    """Return a message that an incident of scores or accuracy has opened, or is worse, with where.

    The message is as it was if it is about anything else, or if no segment of its day stands out.
    """
    facts = message.payload["facts"]
    if facts["event"] not in _EVENTS:
        return message
    segment = _segment(lake, message, fallen_in)
    if segment is None:
        return message
    text = f"{message.payload['text']}\nMost of it: {segment['sentence']}."
    told = {**message.payload, "text": text, "facts": {**facts, "segment": segment}}
    return replace(message, payload=told)


def _segment(
    lake: Lake, message: OutboxMessage, fallen_in: FallenIn | None
) -> dict[str, Any] | None:
    """Return the segment of what a message is about; it has at least a name and a sentence."""
    facts = message.payload["facts"]
    metric, subject = str(facts.get("metric", "")), str(facts.get("subject", ""))
    if metric in LEVEL_CHANGES.values():
        change = (facts.get("figure") or {}).get("value")
        if fallen_in is None or not change:
            return None
        since = datetime.date.fromisoformat(facts["since"])
        group = fallen_in(since, message.dt, -float(change))
        return None if group is None else {**asdict(group), "sentence": group.sentence()}
    leading = leading_segment(lake, message.dt, metric, subject)
    if leading is None:
        return None
    return {name: value for name, value in leading.items() if name not in ("dt", "leading")}


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
