"""The result of a day: one row of the table `days`, from which all pages and MLflow are written."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from modwatch.common.text import named_model
from modwatch.data.lake.day_scores import DEMONSTRATION
from modwatch.data.lake.delta import Lake
from modwatch.data.lake.schemas import DAYS
from modwatch.monitoring.incidents.evaluation import active_alerts
from modwatch.monitoring.incidents.messages.incidents import ActiveAlert
from modwatch.statistics.live.figures import ALONE, FIGURES, TOGETHER, keys

NORMAL, CRITICAL = "normal", "critical"

#: `checks` of a day on which a task failed before all comments were validated and scored.
NOT_VALIDATED = "none"

#: `checks`, and status, of a day of which nothing was ingested, and on which no task failed.
NOT_RUN = "not run"

#: `checks`, and status, of a day that was measured and had no rows.
NO_COMMENTS = "no comments"

#: What a list of days has of the window, by heading: the keys of the figures, the model's first.
HEADINGS = {
    f"window {FIGURES[key].short or FIGURES[key].title}": FIGURES[key].name
    for group in (ALONE, TOGETHER)
    for key in keys(of_day=True, group=group)
}

_NOTEWORTHY = (CRITICAL, "warning")


@dataclass(frozen=True, kw_only=True)
class KeyFigure:
    """A figure of a day, by its key in `keys.KEYS`."""

    value: float
    #: The ends of the 95 % interval of an estimate; None of what is counted.
    low: float | None = None
    high: float | None = None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval; None without one."""
        return None if self.low is None or self.high is None else (self.low, self.high)


@dataclass(frozen=True, kw_only=True)
class Day:
    """A row of `lake.schemas.DAYS`, with the alerts that were active at the end of the day.

    >>> day = Day(day=date(2026, 1, 5), checks="passed", comments=2000, routed=40, labelled=30)
    >>> day.status, day.completion
    ('normal', 0.75)
    """

    day: date
    #: Validation status: passed | warned | rejected | `NOT_VALIDATED` | `NOT_RUN` |
    #: `NO_COMMENTS`.
    checks: str
    #: Why the day was not measured, as a sentence in Markdown without full stop; else empty.
    reason: str = ""
    #: Rows of the source.
    landed: int = 0
    #: Comments that passed validation and were scored, and rows that a row-level rule rejected.
    comments: int = 0
    quarantined: int = 0
    flagged: int = 0
    #: Comments sent to moderators, and those with a current label.
    routed: int = 0
    labelled: int = 0
    #: Version in the model registry; empty on a day without scores.
    model_version: str = ""
    #: What pages say of the model wherever they show its figures; may be empty.
    model_origin: str = ""
    #: Whether the model has no variance of its weights: it is deterministic, or not ours.
    deterministic: bool = False
    #: The deployed review strategy, and the review fraction α in (0, 1].
    strategy: str = ""
    review_fraction: float = 0.0
    #: Days pooled in the estimates of the window, and its length; 0 without a window.
    pooled_days: int = 0
    window_days: int = 0
    #: By key.
    figures: Mapping[str, KeyFigure] = field(default_factory=dict)
    #: The most severe first.
    alerts: tuple[ActiveAlert, ...] = ()
    #: Hash of all that the day's run in MLflow shows.
    digest: str = ""

    @property
    def is_measured(self) -> bool:
        """Whether the day has estimates."""
        return not self.reason

    @property
    def status(self) -> str:
        """`normal`, `rejected`, `failed`, `not run`, `no comments`, or the alerts' severity.

        Where `normal` would speak of a demonstration model, it is that its figures mean nothing.

        A severity comes with the day since when.

        An alert of severity `info` and the warning of a validation rule, which has an alert rule
        of its own when it lasts, leave a day normal. Of several severities it is the highest.

        >>> late = ActiveAlert(rule="queue_old", subject="", severity="warning",
        ...                    since=date(2026, 1, 5), description="")
        >>> day = date(2026, 1, 6)
        >>> Day(day=day, checks="passed", alerts=(late,)).status
        'warning since 2026-01-05'
        >>> Day(day=day, checks="rejected", alerts=(late,)).status
        'rejected'
        """
        if self.checks in ("rejected", NOT_RUN):
            return self.checks
        if self.checks == NOT_VALIDATED:
            return "failed"
        for severity in _NOTEWORTHY:
            since = [alert.since for alert in self.alerts if alert.severity == severity]
            if since:
                return f"{severity} since {min(since)}"
        if self.checks == NO_COMMENTS:
            return NO_COMMENTS
        return DEMONSTRATION if self.model_origin == DEMONSTRATION else NORMAL

    @property
    def is_bad(self) -> bool:
        """Whether the day is marked in red: rejected, failed, or with a critical alert."""
        return self.status.startswith((CRITICAL, "rejected", "failed"))

    @property
    def flagged_share(self) -> float | None:
        """Flagged over all comments, in [0, 1]; None on an empty day."""
        return self.flagged / self.comments if self.comments else None

    @property
    def model(self) -> str:
        """The version of the model, and its origin where that must be known; may be empty.

        >>> Day(day=date(2026, 1, 5), checks="passed", model_version="1", model_origin="old").model
        '1 (old)'
        """
        return named_model(self.model_version, self.model_origin)

    @property
    def completion(self) -> float | None:
        """Labelled over routed, in [0, 1]; None when nothing was routed."""
        return self.labelled / self.routed if self.routed else None

    @property
    def columns(self) -> dict[str, str]:
        """What a list of days shows, by heading: counts, and estimates with their intervals.

        Estimates are those of the window that ends with the day; when there is none, those of the
        day, marked so.
        """
        if not self.is_measured:
            return {"comments": f"{self.landed:,} landed" if self.landed else "not known"}
        return {
            "comments": f"{self.comments:,}",
            "labels": f"{self.labelled:,} of {self.routed:,}",
            **{heading: self._in_short(name) for heading, name in HEADINGS.items()},
        }

    def _in_short(self, key: str) -> str:
        """Return an estimate and its interval in as few characters as possible."""
        of_day = not self.pooled_days
        figure = self.figures.get(f"single_day/{key.partition('/')[2]}" if of_day else key)
        if figure is None:
            return "insufficient"
        ends = figure.interval and "({:.2f}–{:.2f})".format(*figure.interval)
        return f"{'day: ' * of_day}{figure.value:.3f} {ends or ''}".rstrip()


_STORED = {field.name for field in fields(Day)} & set(DAYS.names) - {"figures"}


def read_days(lake: Lake, *, last: int = 0) -> list[Day]:
    """Return the days of the table `days` in order; with `last`, at most so many, the newest."""
    stored = lake.days("days")[-last:]
    alerts = lake.table("alerts", stored)
    return [
        _from_row(row, active_alerts(alerts.filter(pc.field("dt") == row["dt"])))
        for row in lake.table("days", stored).to_pylist()
    ]


def recorded_digests(lake: Lake, first: date, last: date) -> dict[date, str]:
    """Return the digests of the recorded days from `first` to `last`."""
    rows = lake.rows_between("days", first, last, ["dt", "digest"])
    return {row["dt"]: row["digest"] for row in rows}


def save_day(lake: Lake, day: Day) -> None:
    """Replace the row of a day."""
    row = {name: getattr(day, name) for name in _STORED}
    figures = [{"key": key, **asdict(figure)} for key, figure in day.figures.items()]
    row |= {"dt": day.day, "status": day.status, "figures": figures}
    lake.replace("days", day.day, [pa.RecordBatch.from_pylist([row], schema=DAYS)])


def _from_row(row: Mapping[str, Any], alerts: tuple[ActiveAlert, ...]) -> Day:
    figures = {figure.pop("key"): KeyFigure(**figure) for figure in row["figures"]}
    counts = {name: row[name] for name in _STORED}
    return Day(day=row["dt"], figures=figures, alerts=alerts, **counts)
