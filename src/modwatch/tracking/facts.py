"""What a day was, as handed to MLflow: counts, names, links; nothing of a single comment."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from modwatch.alerts.messages import StandingAlert
from modwatch.lake.schemas import DRIFT, MEASUREMENTS


@dataclass(frozen=True, kw_only=True)
class DayFacts:
    """The facts of one day that are no estimates.

    >>> facts = DayFacts(
    ...     comments=2000, quarantined=10, flagged=40, routed=40, labelled=30,
    ...     model_version="3", strategy="uncertainty", review_fraction=0.02, checks="passed",
    ... )
    >>> facts.flagged_share, facts.completion
    (0.02, 0.75)
    """

    #: Comments that passed the checks and were scored.
    comments: int
    #: Rows refused by a row-level rule.
    quarantined: int
    #: Comments with prob > threshold of the model.
    flagged: int
    #: Comments sent to people.
    routed: int
    #: Routed comments with a standing label.
    labelled: int
    #: Version in the model registry.
    model_version: str
    #: The deployed review strategy.
    strategy: str
    #: The deployed review fraction α in (0, 1].
    review_fraction: float
    #: Verdict of the day's checks: passed | warned | rejected.
    checks: str
    #: Days that the estimates of the window are made of, and days that it is long; 0 without one.
    pooled_days: int = 0
    window_days: int = 0
    #: Incidents that stand at the end of the day, the most severe first.
    alerts: tuple[StandingAlert, ...] = ()
    #: Hash of what the measurement was made of: tells whether MLflow shows the latest.
    digest: str = ""
    #: Pages to link from the description; None leaves the link out.
    check_page_url: str | None = None
    queue_url: str | None = None
    airflow_run_url: str | None = None
    #: When the day was measured (UTC), to tell a fresh page from a stale one.
    published_at: datetime | None = None

    @property
    def flagged_share(self) -> float | None:
        """Flagged over all comments, in [0, 1]; None on an empty day."""
        return self.flagged / self.comments if self.comments else None

    @property
    def completion(self) -> float | None:
        """Labelled over routed, in [0, 1]; None when nothing was routed."""
        return self.labelled / self.routed if self.routed else None


def _no_measurements() -> pd.DataFrame:
    return pd.DataFrame(MEASUREMENTS.empty_table().to_pandas())


def _no_drift() -> pd.DataFrame:
    return pd.DataFrame(DRIFT.empty_table().to_pandas())


@dataclass(frozen=True, kw_only=True)
class DayTables:
    """The tables that a day's page is made of; one without rows leaves its part out."""

    #: Estimates of the day; as all of these, with the columns of `records.MEASUREMENTS`.
    measurements: pd.DataFrame
    #: Estimates of the window that ends with the day.
    window: pd.DataFrame = field(default_factory=_no_measurements)
    #: Estimates of the day before, and of the window that ends with it.
    day_before: pd.DataFrame = field(default_factory=_no_measurements)
    window_before: pd.DataFrame = field(default_factory=_no_measurements)
    #: Drift and health of the trailing days, the day itself last: columns of `records.DRIFT`.
    drift: pd.DataFrame = field(default_factory=_no_drift)
    #: Costs and outcomes of other settings: columns of `metrics.what_if.COLUMNS`.
    what_if: pd.DataFrame | None = None
    #: The window's estimates corrected for moderators' errors: `records.MODERATOR_ERROR`.
    moderator_error: pd.DataFrame | None = None


@dataclass(frozen=True, kw_only=True)
class ScoreHistogram:
    """How the comments of the day, and of what it is compared with, spread over B bins of prob."""

    #: (B + 1,) ascending bin edges in [0, 1].
    edges: NDArray[np.float64]
    #: (B,) comments per bin.
    counts: NDArray[np.int64]
    #: The model's threshold: a comment is flagged when prob > threshold.
    threshold: float
    #: (B,) comments per bin of each reference, by name: `fixed`, `trailing`.
    references: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        prob: NDArray[np.floating],
        *,
        threshold: float,
        bins: int = 50,
        references: Mapping[str, NDArray[np.int64]] | None = None,
    ) -> "ScoreHistogram":
        """Return the histogram of `prob` (N,) in [0, 1] over `bins` equal bins.

        >>> ScoreHistogram.of(np.array([0.1, 0.2, 0.9]), threshold=0.5, bins=2).counts.tolist()
        [2, 1]
        """
        counts, edges = np.histogram(prob, bins=bins, range=(0.0, 1.0))
        return cls(
            edges=edges,
            counts=counts.astype(np.int64),
            threshold=threshold,
            references=references or {},
        )


@dataclass(frozen=True, kw_only=True)
class DayPictures:
    """What else the day's figures are drawn from; None leaves one out."""

    scores: ScoreHistogram | None = None
    #: One row a bin with the columns `mean_prob`, `positive_rate`, `count` and, where known,
    #: `low` and `high`: the ends of the 95 % interval of `positive_rate`; as
    #: `modwatch.metrics.reliability_estimates` returns them.
    reliability: pd.DataFrame | None = None
