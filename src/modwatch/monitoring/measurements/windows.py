"""Which days of a trailing window are measured together, and what is known of them.

A day has few labels and wide intervals; a window of them has narrow ones.
"""

import datetime
import hashlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow.compute as pc

from modwatch.data.lake.delta import Lake
from modwatch.monitoring.measurements.tables import measured_digest

#: Share of a day's labels that must be in before it is measured together with others. On a day
#: that people have barely begun each label stands for so many comments that it blurs them all.
RIPE = 0.5


@dataclass(frozen=True, kw_only=True)
class Window:
    """The days that are measured together with a last one."""

    #: The day that the window ends with, measured with the others or not.
    last: datetime.date
    #: In order; none when the last day was not routed.
    days: tuple[datetime.date, ...]
    #: Hash of the measurements of these days; None without days.
    digest: str | None


@dataclass(frozen=True, kw_only=True)
class _Day:
    """What decides whether a day belongs to a window."""

    #: The model that scored it; empty when it was not routed, or held no comment.
    model_version: str = ""
    ripe: bool = False
    digest: str | None = None


def windows(lake: Lake, spans: Iterable[Sequence[datetime.date]]) -> Iterator[Window]:
    """Yield the window of every span of days; what a day holds is looked up once.

    Measured together are the days of a span that the last one's model scored and that have at least
    `RIPE` of their labels, from the top as from the slice.
    """
    known: dict[datetime.date, _Day] = {}
    for span in spans:
        known.update({day: _look(lake, day) for day in span if day not in known})
        yield _window(span, known)


def seconds_per_decision(lake: Lake, days: Collection[datetime.date]) -> float | None:
    """Return how long the median decision on these days took; None when that is not known."""
    taken = lake.table("labels", days, columns=["seconds"]).column(0).to_pandas()
    return float(taken.median()) if taken.notna().any() else None


def _window(span: Sequence[datetime.date], known: dict[datetime.date, _Day]) -> Window:
    model = known[span[-1]].model_version
    days = tuple(day for day in span if known[day].ripe and known[day].model_version == model)
    digests = [(day.isoformat(), known[day].digest) for day in days]
    digest = hashlib.sha256(repr(digests).encode()).hexdigest() if days else None
    return Window(last=span[-1], days=days, digest=digest)


def _look(lake: Lake, day: datetime.date) -> _Day:
    digest = measured_digest(lake, day)
    if digest is None:
        return _Day()
    model = lake.table("routing_design", day, columns=["model_version"]).column(0)
    if not len(model):
        return _Day()
    return _Day(model_version=str(model[0]), ripe=is_ripe(lake, day), digest=digest)


def is_ripe(lake: Lake, day: datetime.date) -> bool:
    """Return whether enough of the top's and enough of the slice's labels are in."""
    routed = lake.table("routed", day, columns=["comment_id", "stratum"])
    labels = lake.table("labels", day, columns=["comment_id"])
    labelled = pc.is_in(routed.column("comment_id"), labels.column("comment_id")).to_numpy()
    in_top = routed.column("stratum").to_numpy() == 0
    parts = [labelled[part] for part in (in_top, ~in_top) if part.any()]
    return bool(parts) and all(part.mean() >= RIPE for part in parts)
