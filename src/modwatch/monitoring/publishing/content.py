"""The tables of a day's page, read from the lake; nothing about a single comment."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from modwatch.data.lake.delta import Lake
from modwatch.data.lake.schemas import DRIFT, ESTIMATES
from modwatch.data.validation.result import CheckStore, Status, ValidationResult
from modwatch.monitoring.incidents.evaluation import active_alerts
from modwatch.monitoring.incidents.messages.incidents import ActiveAlert
from modwatch.monitoring.measurements.windows import Window, seconds_per_decision, windows
from modwatch.monitoring.publishing.days import Day
from modwatch.statistics.collaboration.what_if import what_if_table
from modwatch.statistics.drift.day_comparison import Reference
from modwatch.statistics.drift.profile import coarser, pooled

_WORST: tuple[Status, ...] = ("rejected", "warned", "passed")

#: Bins of the published histogram; a profile has twenty times as many.
_HISTOGRAM_BINS = 50


def _empty(schema: pa.Schema) -> Callable[[], pd.DataFrame]:
    return lambda: pd.DataFrame(schema.empty_table().to_pandas())


@dataclass(frozen=True, kw_only=True)
class ScoreHistogram:
    """Comments of the day and of its references per bin of prob; B bins."""

    #: (B + 1,) ascending bin edges in [0, 1].
    edges: NDArray[np.float64]
    #: (B,) comments per bin.
    counts: NDArray[np.int64]
    #: The model's threshold: a comment is flagged when prob > threshold. None: the source decided.
    threshold: float | None
    #: (B,) comments per bin of each reference, by name: `fixed`, `trailing`.
    references: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class DayTables:
    """The tables of a day's page; the part of a table without rows is left out."""

    #: Estimates of the day; like the next three, with the columns of `lake.schemas.ESTIMATES`.
    estimates: pd.DataFrame
    #: Estimates of the window that ends with the day.
    window: pd.DataFrame = field(default_factory=_empty(ESTIMATES))
    #: By the design alone: of the day, and of the window.
    own: pd.DataFrame = field(default_factory=_empty(ESTIMATES))
    window_own: pd.DataFrame = field(default_factory=_empty(ESTIMATES))
    #: Drift and queue metrics of the day: `lake.schemas.DRIFT`.
    drift: pd.DataFrame = field(default_factory=_empty(DRIFT))
    #: Costs and outcomes of other settings: `what_if.COLUMNS` of the statistics.
    what_if: pd.DataFrame | None = None
    #: What the window's labels could contradict: `lake.schemas.ASSUMPTION_CHECKS`.
    assumption_checks: pd.DataFrame | None = None
    #: The challenger compared with the champion: `lake.schemas.CHALLENGER`.
    challenger: pd.DataFrame | None = None
    #: Groups of comments: `lake.schemas.COMMENT_GROUPS`.
    comment_groups: pd.DataFrame | None = None
    #: None on a day without comments.
    scores: ScoreHistogram | None = None
    #: One row a bin with the columns `mean_prob`, `positive_rate`, `count` and, where known,
    #: `low` and `high`: the ends of the 95 % interval of `positive_rate`; as
    #: `modwatch.statistics.reliability_estimates` returns them.
    reliability: pd.DataFrame | None = None


@dataclass(frozen=True, kw_only=True)
class DayContent:
    """What decides whether the result of a day is outdated."""

    day: date
    #: Days pooled in the estimates of the window, and its length.
    pooled_days: int
    window_days: int
    tables: DayTables
    #: Of the day's comments and scores, as far as they were validated.
    results: Sequence[ValidationResult]
    #: Active at the end of the day, the most severe first.
    alerts: tuple[ActiveAlert, ...]

    @property
    def is_measured(self) -> bool:
        """Whether the day has estimates."""
        return len(self.tables.estimates) > 0

    @property
    def checks(self) -> Status:
        """The worse of the validation results."""
        statuses = {result.status for result in self.results}
        return next((status for status in _WORST if status in statuses), "passed")

    @property
    def digest(self) -> str:
        """Hash of the content of a measured day.

        Estimates count by the hash of what they were made of.
        """
        shown = self.tables
        measured = (shown.estimates, shown.window)
        digests = [table["digest"].iloc[0] if len(table) else None for table in measured]
        if shown.challenger is not None and len(shown.challenger):
            digests.append(shown.challenger["digest"].iloc[0])
        groups = "" if shown.comment_groups is None else shown.comment_groups.to_csv(index=False)
        drift = sorted(map(repr, shown.drift.to_dict("records")))
        content = repr((digests, groups, drift, self.checks, self.alerts))
        return hashlib.sha256(content.encode()).hexdigest()


def read_content(
    lake: Lake, checks: CheckStore, span: Sequence[date], window: Window
) -> DayContent:
    """Return the content of the last day of a span of days.

    `window` are the days of the span that are measured together.
    """
    day = span[-1]
    results = (checks.load("comments", day), checks.load("scores", day))
    return DayContent(
        day=day,
        pooled_days=len(window.days),
        window_days=len(span),
        tables=read_tables(lake, day),
        results=[result for result in results if result is not None],
        alerts=active_alerts(lake.table("alerts", day)),
    )


def read_tables(lake: Lake, day: date) -> DayTables:
    """Return the tables of `day` as stored."""
    rows = lake.table("estimates", day).to_pandas()

    def part(*, window: bool = False, design: bool = False) -> pd.DataFrame:
        kept = rows["window"].eq(window) & rows["design"].eq(design)
        return pd.DataFrame(rows[kept]).reset_index(drop=True)

    return DayTables(
        estimates=part(),
        window=part(window=True),
        own=part(design=True),
        window_own=part(window=True, design=True),
        drift=lake.table("drift", day).to_pandas(),
        assumption_checks=lake.table("assumption_checks", day).to_pandas(),
        challenger=lake.table("challenger", day).to_pandas(),
        comment_groups=lake.table("comment_groups", day).to_pandas(),
    )


def read_shown(
    lake: Lake, day: Day, window: Sequence[date], references: Sequence[Reference]
) -> DayTables:
    """Return the tables of a measured day with what its page draws besides.

    These are its scores next to its `references`, its calibration, and outcomes of other settings.
    """
    tables = read_tables(lake, day.day)
    curve = lake.table("reliability", day.day).to_pandas()
    (measured,) = windows(lake, [window])
    return replace(
        tables,
        what_if=_what_if(lake, measured, tables.window, day),
        scores=_histogram(lake, day, references),
        reliability=curve if day.comments and len(curve) else None,
    )


def _what_if(lake: Lake, window: Window, estimates: pd.DataFrame, day: Day) -> pd.DataFrame | None:
    """Return the outcomes of other settings on an average day of the window, if measured."""
    if not len(estimates):
        return None
    comments = [lake.count("scores", past, role="champion") for past in window.days]
    return what_if_table(
        estimates,
        comments_per_day=float(np.mean(comments)),
        seconds_per_decision=seconds_per_decision(lake, window.days),
        strategy=day.strategy,
        review_fraction=day.review_fraction,
    )


def _histogram(lake: Lake, day: Day, references: Sequence[Reference]) -> ScoreHistogram | None:
    """Return the day's scores, and those of its references as far as the same model scored them."""
    if not day.comments:
        return None
    scores = lake.table("scores", day.day, columns=["prob", "threshold"], role="champion")
    prob = scores.column("prob").to_numpy()
    counts, edges = np.histogram(prob, bins=_HISTOGRAM_BINS, range=(0.0, 1.0))
    of_references = {
        reference.name: coarser(
            pooled(reference.scored_by(day.model_version)).scores["prob"], _HISTOGRAM_BINS
        )
        for reference in references
    }
    return ScoreHistogram(
        edges=edges,
        counts=counts.astype(np.int64),
        threshold=scores.column("threshold")[0].as_py(),
        references={name: count for name, count in of_references.items() if count.any()},
    )
