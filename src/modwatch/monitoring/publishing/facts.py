"""The input of a day's run in MLflow: counts, names, tables; nothing about a single comment."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from types import MappingProxyType
from typing import Literal

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from modwatch.data.lake.schemas import DRIFT, MEASUREMENTS
from modwatch.monitoring.incidents.messages.incidents import ActiveAlert


@dataclass(frozen=True, kw_only=True)
class DayFacts:
    """Counts and names of one day; everything that is not an estimate.

    >>> facts = DayFacts(
    ...     comments=2000, quarantined=10, flagged=40, routed=40, labelled=30,
    ...     model_version="3", strategy="uncertainty", review_fraction=0.02, checks="passed",
    ... )
    >>> facts.flagged_share, facts.completion
    (0.02, 0.75)
    """

    #: Comments that passed validation and were scored.
    comments: int
    #: Rows rejected by a row-level rule.
    quarantined: int
    #: Comments that were flagged.
    flagged: int
    #: Comments sent to moderators.
    routed: int
    #: Routed comments with a current label.
    labelled: int
    #: Version in the model registry.
    model_version: str
    #: Whether the model has no variance of its weights: it is deterministic, or not ours.
    deterministic: bool = False
    #: The deployed review strategy.
    strategy: str
    #: The deployed review fraction α in (0, 1].
    review_fraction: float
    #: Validation status of the day: passed | warned | rejected.
    checks: str
    #: Days pooled in the estimates of the window, and its length; 0 without a window.
    pooled_days: int = 0
    window_days: int = 0
    #: Alerts active at the end of the day, the most severe first.
    alerts: tuple[ActiveAlert, ...] = ()
    #: Hash of the content of the run, to detect an outdated one.
    digest: str = ""
    #: Pages to link from the description; None leaves the link out.
    check_page_url: str | None = None
    queue_url: str | None = None
    airflow_run_url: str | None = None

    @property
    def flagged_share(self) -> float | None:
        """Flagged over all comments, in [0, 1]; None on an empty day."""
        return self.flagged / self.comments if self.comments else None

    @property
    def completion(self) -> float | None:
        """Labelled over routed, in [0, 1]; None when nothing was routed."""
        return self.labelled / self.routed if self.routed else None


@dataclass(frozen=True, kw_only=True)
class UnmeasuredDay:
    """A day without measurements, because it was rejected or one of its tasks failed."""

    day: date
    #: `rejected`: validation failed. `failed`: a task did not complete.
    status: Literal["rejected", "failed"]
    #: What is wrong, as a sentence in Markdown without full stop; nothing from a comment.
    reason: str
    #: Comments that landed.
    landed: int
    #: Alerts active at the end of the day, the most severe first.
    alerts: tuple[ActiveAlert, ...] = ()
    #: Pages to link from the description; None leaves the link out.
    check_page_url: str | None = None
    queue_url: str | None = None
    airflow_run_url: str | None = None

    @property
    def digest(self) -> str:
        """Hash of the content of the run, to detect an outdated one."""
        content = repr((self.status, self.reason, self.landed, self.alerts))
        return hashlib.sha256(content.encode()).hexdigest()


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

    @classmethod
    def of(
        cls,
        prob: NDArray[np.floating],
        *,
        threshold: float | None,
        bins: int = 50,
        references: Mapping[str, NDArray[np.int64]] = MappingProxyType({}),
    ) -> "ScoreHistogram":
        """Return the histogram of `prob` (N,) in [0, 1] over `bins` equal bins.

        >>> ScoreHistogram.of(np.array([0.1, 0.2, 0.9]), threshold=0.5, bins=2).counts.tolist()
        [2, 1]
        """
        counts, edges = np.histogram(prob, bins=bins, range=(0.0, 1.0))
        counts = counts.astype(np.int64)
        return cls(edges=edges, counts=counts, threshold=threshold, references=references)


@dataclass(frozen=True, kw_only=True)
class DayTables:
    """The tables of a day's page; the part of a table without rows is left out."""

    #: Estimates of the day; like the next three, with the columns of `lake.schemas.MEASUREMENTS`.
    measurements: pd.DataFrame
    #: Estimates of the window that ends with the day.
    window: pd.DataFrame = field(default_factory=_empty(MEASUREMENTS))
    #: Estimates of the day before, and of the window that ends with it.
    day_before: pd.DataFrame = field(default_factory=_empty(MEASUREMENTS))
    window_before: pd.DataFrame = field(default_factory=_empty(MEASUREMENTS))
    #: Drift and queue metrics of the trailing days, the day itself last: `lake.schemas.DRIFT`.
    drift: pd.DataFrame = field(default_factory=_empty(DRIFT))
    #: Costs and outcomes of other settings: `metrics.what_if.COLUMNS`.
    what_if: pd.DataFrame | None = None
    #: The window's estimates with and without people's errors: `lake.schemas.LABEL_ERRORS`.
    label_errors: pd.DataFrame | None = None
    #: The challenger beside the champion: `lake.schemas.CHALLENGER`.
    challenger: pd.DataFrame | None = None
    #: Groups of comments: `lake.schemas.COMMENT_GROUPS`.
    comment_groups: pd.DataFrame | None = None
    #: None on a day without comments.
    scores: ScoreHistogram | None = None
    #: One row a bin with the columns `mean_prob`, `positive_rate`, `count` and, where known,
    #: `low` and `high`: the ends of the 95 % interval of `positive_rate`; as
    #: `modwatch.statistics.reliability_estimates` returns them.
    reliability: pd.DataFrame | None = None
