"""The profile of a day: its comments and scores in counts; those of several days add up."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from modwatch.common.errors import MetricInputError
from modwatch.statistics import arguments

Counts = NDArray[np.int64]

#: Equal bins of each score. A binned score is off by at most half a bin, 0.0005 for prob and
#: 0.000125 for uncertainty, and so is a mean.
BINS = 1000

#: Lengths in characters at which a band of lengths begins, and the names of the bands.
_LENGTHS = (50, 200, 1000)
LENGTH_BANDS = ("0-49", "50-199", "200-999", "1000+")

#: Category of all that have no count of their own.
OTHERS = "(other)"

#: Scores that days are compared by, each with the upper end of its range from 0.
RANGES = {"prob": 1.0, "uncertainty": 0.25}


def histogram(scores: ArrayLike, upper: float) -> Counts:
    """Return how many scores (n,) lie in each of `BINS` equal bins of [0, `upper`], last closed.

    Raises MetricInputError for scores outside, or NaN.
    """
    parts = arguments.probabilities(arguments.column("scores", scores) / upper)
    at = np.minimum((parts * BINS).astype(np.int64), BINS - 1)
    return np.bincount(at, minlength=BINS).astype(np.int64)


def coarser(counts: Counts, bins: int) -> Counts:
    """Return the counts of a `histogram` in fewer equal bins (bins,): a divisor of `BINS`.

    >>> coarser(histogram([0.1, 0.2, 0.9], 1.0), 2).tolist()
    [2, 1]
    """
    sums: Counts = counts.reshape(bins, BINS // bins).sum(axis=1)
    return sums


def length_counts(lengths: ArrayLike) -> dict[str, int]:
    """Return how many texts have a length in each band, of lengths (n,) in characters.

    >>> length_counts([9, 90, 0])
    {'0-49': 2, '50-199': 1}
    """
    counts = np.bincount(length_bands(lengths), minlength=len(LENGTH_BANDS)).tolist()
    return {band: count for band, count in zip(LENGTH_BANDS, counts, strict=True) if count}


def length_bands(lengths: ArrayLike) -> NDArray[np.int64]:
    """Return the band of each length (n,) in characters, as a position in `LENGTH_BANDS`.

    >>> [LENGTH_BANDS[band] for band in length_bands([0, 50, 5000])]
    ['0-49', '50-199', '1000+']
    """
    bands: NDArray[np.int64] = np.digitize(np.asarray(lengths), _LENGTHS).astype(np.int64)
    return bands


def weighted_rows(order: ArrayLike, weights: ArrayLike) -> NDArray[np.int64]:
    """Return rows (m,) that, unweighted, are distributed as the weighted rows (n,).

    m is the effective sample size (Σw)²/Σw² of Kish (1965), rounded down: so many independent rows
    carry as much information as the weighted ones. Rows are drawn systematically along `order`
    (n,), without randomness: the distribution function of that column is off by at most 1/m.

    >>> weighted_rows([0.1, 0.2, 0.9], [1, 1, 1]).tolist()
    [0, 1, 2]
    >>> weighted_rows([0.1, 0.9], [3, 1]).tolist()
    [0]
    """
    given, weight = arguments.column("order", order), arguments.column("weights", weights)
    arguments.same_length(order=given, weights=weight)
    if not weight.size or weight.min() < 0 or not weight.any():
        raise MetricInputError("weights must be at least 0, some above 0; leave empty samples out")
    rows = np.argsort(given, kind="stable")
    through = np.cumsum(weight[rows])
    # A hair above the quotient, so that equal weights give every row once.
    size = int(through[-1] ** 2 / np.dot(weight, weight) * (1 + 1e-9))
    points = (np.arange(size) + 0.5) / size * through[-1]
    return np.sort(rows[np.searchsorted(through, points)])


@dataclass(frozen=True, kw_only=True)
class Profile:
    """Counts of one day, or of several together: of its comments, and of its scores."""

    #: Valid comments.
    comments: int = 0
    #: Rows that data validation quarantined.
    quarantined: int = 0
    #: Comments without it, by optional column.
    missing: Mapping[str, int] = field(default_factory=dict)
    #: Comments by category: of `language`, `platform` and `length`, the last in `LENGTH_BANDS`; and
    #: some of them by `script` and `detected_language`.
    categories: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    #: (BINS,) comments by score: of the names in `RANGES`.
    scores: Mapping[str, Counts] = field(
        default_factory=lambda: {name: np.zeros(BINS, np.int64) for name in RANGES}
    )
    #: Comments with prob > threshold.
    flagged: int = 0
    #: The one model version of all scores; None without scores, or when there are several.
    model_version: str | None = None

    @property
    def landed(self) -> int:
        """Rows that the source delivered.

        >>> Profile(comments=8, quarantined=2).landed
        10
        """
        return self.comments + self.quarantined

    @property
    def scored(self) -> int:
        """Comments with a score.

        >>> Profile().scored
        0
        """
        return int(self.scores["prob"].sum())

    def with_scores_of(self, other: "Profile") -> "Profile":
        """Return the comments of this profile with the scores of another.

        >>> Profile(comments=3).with_scores_of(Profile(comments=5, flagged=1))  # doctest: +ELLIPSIS
        Profile(comments=3, ... flagged=1, model_version=None)
        """
        return replace(
            self,
            scores=other.scores,
            flagged=other.flagged,
            model_version=other.model_version,
        )


def pooled(days: Sequence[Profile]) -> Profile:
    """Return the days as one; its model version is None when those of the scores differ."""
    versions = {day.model_version for day in days if day.scored}
    return Profile(
        comments=sum(day.comments for day in days),
        quarantined=sum(day.quarantined for day in days),
        missing=_sum([day.missing for day in days]),
        categories={
            feature: _sum([day.categories.get(feature, {}) for day in days])
            for feature in sorted({name for day in days for name in day.categories})
        },
        scores={
            name: sum((day.scores[name] for day in days), start=np.zeros(BINS, np.int64))
            for name in RANGES
        },
        flagged=sum(day.flagged for day in days),
        model_version=versions.pop() if len(versions) == 1 else None,
    )


def _sum(counts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for part in counts:
        total.update(part)
    return dict(total)
