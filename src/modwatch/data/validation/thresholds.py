"""The bounds of every validation rule, in one place."""

from dataclasses import dataclass, fields

from modwatch.common.errors import SettingsError
from modwatch.statistics.drift.day_comparison import MINIMUM_DAYS


@dataclass(frozen=True, kw_only=True)
class Thresholds:
    """Bounds that a day is validated by; the defaults suit a platform of any size.

    Shares lie in [0, 1]. How much data a comparison needs at all is a property of the metric:
    `drift.MINIMUM_COMMENTS`.

    Raises:
        SettingsError: a bound is out of range, or two of them contradict each other.

    >>> Thresholds().max_text_length
    50000
    """

    #: Longest valid text, in characters (code points).
    max_text_length: int = 50_000
    #: Longest valid comment_id, in characters.
    max_id_length: int = 256
    #: Days before a day that it is compared with.
    trailing_days: int = 14
    #: Trailing days needed before a day is compared with them at all.
    min_trailing_days: int = MINIMUM_DAYS
    #: A smaller volume ratio to the trailing median fails the day.
    collapsed_volume: float = 0.1
    #: A smaller volume ratio to the trailing median is a warning.
    low_volume: float = 1 / 3
    #: A larger volume ratio to the trailing median is a warning.
    high_volume: float = 3.0
    #: A larger share of quarantined rows is a warning.
    quarantined_warning: float = 0.02
    #: A larger share of quarantined rows fails the day.
    quarantined_critical: float = 0.2
    #: So many quarantined rows or unscored comments never fail the day while others are valid.
    tolerated_rows: int = 5
    #: Largest change of a column's share of missing values against the trailing days.
    missing_share_change: float = 0.25
    #: Largest Jensen–Shannon divergence, in bits, of the day's languages from the trailing days'.
    language_shift: float = 0.05
    #: A larger share of comments without a valid score fails the day.
    unscored_critical: float = 0.01
    #: Largest population stability index of the probabilities against the trailing days.
    score_shift: float = 0.2
    #: Largest factor by which the flagged share may change against the trailing days.
    flagged_ratio: float = 3.0
    #: Fewer flagged comments than this, counted and expected: their share is not compared.
    min_flagged: int = 20
    #: Fewer scores than this, of the day or of the trailing days: scores are not compared.
    min_scores: int = 500

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not value > 0:
                raise SettingsError(f"Threshold {field.name} must be above 0, got {value}.")
        for name in _SHARES:
            if (value := getattr(self, name)) > 1:
                raise SettingsError(f"Threshold {name} must be at most 1, got {value}.")
        for smaller, larger in _ORDERED:
            if getattr(self, smaller) > getattr(self, larger):
                raise SettingsError(f"Threshold {smaller} must not exceed {larger}.")


_SHARES = (
    "collapsed_volume",
    "low_volume",
    "quarantined_warning",
    "quarantined_critical",
    "missing_share_change",
    "language_shift",
    "unscored_critical",
)
_ORDERED = (
    ("collapsed_volume", "low_volume"),
    ("low_volume", "high_volume"),
    ("quarantined_warning", "quarantined_critical"),
    ("min_trailing_days", "trailing_days"),
)
