"""Where a change of scores or accuracy is: the segment that most of it is in, for its message."""

import datetime
from dataclasses import asdict, replace
from typing import Any, Protocol

from modwatch.data.lake.delta import Lake
from modwatch.monitoring.incidents.rules import LEVEL_CHANGES
from modwatch.monitoring.incidents.store import IncidentChange
from modwatch.statistics.live.group_falls import FallenGroup

#: Features and metrics that depend on the scores of a day.
_ABOUT_SCORES = {"prob", "uncertainty", "flagged", "score_checks_warned"}

#: Those about the flagged share; all others are about the distribution of the scores.
_ABOUT_FLAGS = {"flagged"}


class FallenIn(Protocol):
    """Finds the group of comments that a fall of accuracy is in."""

    def __call__(
        self, since: datetime.date, until: datetime.date, fall: float, /
    ) -> FallenGroup | None:
        """Return the group; None: the fall is spread over all comments, or labels are too few."""


def with_segment(
    lake: Lake, change: IncidentChange, fallen_in: FallenIn | None = None
) -> IncidentChange:
    """Return a change with the segment that most of a change of scores or accuracy is in.

    The change is returned as it is if the incident ends, is about anything else, or if no segment
    of its day stands out.
    """
    segment = _segment(lake, change, fallen_in) if change.record.is_active else None
    if segment is None:
        return change
    alert, sentence = change.alert, segment["sentence"]
    text = f"{alert.text}\nMost of it: {sentence}."
    return IncidentChange(
        alert=replace(alert, text=text, facts={**alert.facts, "segment": segment}),
        record=replace(change.record, text=text, segment=sentence),
    )


def _segment(
    lake: Lake, change: IncidentChange, fallen_in: FallenIn | None
) -> dict[str, Any] | None:
    """Return the segment of what a message is about; it has at least a name and a sentence."""
    facts, record = change.alert.facts, change.record
    if facts["metric"] in LEVEL_CHANGES.values():
        fall = (facts["figure"] or {}).get("value")
        if fallen_in is None or not fall:
            return None
        group = fallen_in(record.since, record.notified_on, -float(fall))
        return None if group is None else {**asdict(group), "sentence": group.sentence()}
    leading = leading_segment(lake, record.notified_on, facts["metric"], facts["subject"])
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
