"""What a day was, as handed to MLflow: counts, names, links; nothing of a single comment."""

from dataclasses import dataclass
from datetime import datetime

import numpy as np
import pandas as pd
from numpy.typing import NDArray


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


@dataclass(frozen=True, kw_only=True)
class ScoreHistogram:
    """How many comments of the day fall in each of B bins of prob."""

    #: (B + 1,) ascending bin edges in [0, 1].
    edges: NDArray[np.float64]
    #: (B,) comments per bin.
    counts: NDArray[np.int64]
    #: The model's threshold: a comment is flagged when prob > threshold.
    threshold: float

    @classmethod
    def of(
        cls, prob: NDArray[np.floating], *, threshold: float, bins: int = 50
    ) -> "ScoreHistogram":
        """Return the histogram of `prob` (N,) in [0, 1] over `bins` equal bins.

        >>> ScoreHistogram.of(np.array([0.1, 0.2, 0.9]), threshold=0.5, bins=2).counts.tolist()
        [2, 1]
        """
        counts, edges = np.histogram(prob, bins=bins, range=(0.0, 1.0))
        return cls(edges=edges, counts=counts.astype(np.int64), threshold=threshold)


@dataclass(frozen=True, kw_only=True)
class DayPictures:
    """What the day's figures are drawn from, beside the measurements; None leaves one out."""

    scores: ScoreHistogram | None = None
    #: One row a bin with the columns `mean_prob`, `positive_rate`, `count` of
    #: `metrics.calibration.reliability_curve` and, where known, `low` and `high`: the ends of the
    #: 95 % interval of `positive_rate`.
    reliability: pd.DataFrame | None = None
