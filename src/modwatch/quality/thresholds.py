"""The bounds of every rule, in one place."""

from dataclasses import dataclass, fields

from modwatch.errors import SettingsError


@dataclass(frozen=True, kw_only=True)
class Thresholds:
    """Return the bounds that a day is judged by; the defaults suit a platform of any size.

    Shares lie in [0, 1]; ratios compare a day with the mean of the trailing days.

    Raises:
        SettingsError: a bound is impossible, or two of them contradict each other.

    >>> Thresholds().max_text_length
    50000
    """

    #: Longest text that goes on, in characters (code points).
    max_text_length: int = 50_000
    #: Longest comment_id that goes on, in characters.
    max_id_length: int = 256
    #: Trailing days that a day is compared with, at most.
    trailing_days: int = 14
    #: Trailing days needed before a day is compared with them at all.
    min_trailing_days: int = 3
    #: A smaller volume, as a ratio to the trailing mean, stops the run.
    collapsed_volume: float = 0.1
    #: A smaller volume, as a ratio to the trailing mean, is a warning.
    low_volume: float = 1 / 3
    #: A larger volume, as a ratio to the trailing mean, is a warning.
    high_volume: float = 3.0
    #: A larger share of quarantined rows is a warning.
    quarantined_warning: float = 0.02
    #: A larger share of quarantined rows stops the run.
    quarantined_critical: float = 0.2
    #: So many refused rows or unscored comments never stop the run, as long as others are good.
    tolerated_rows: int = 5
    #: Largest change of a column's share of nulls against the trailing days.
    null_share_change: float = 0.25
    #: Largest total variation distance between the day's languages and the trailing days'.
    language_shift: float = 0.2
    #: Fewer rows than this, today or in the trailing days together: shares are not compared.
    min_rows: int = 200
    #: A larger share of comments without a valid score stops the run.
    unscored_critical: float = 0.01
    #: Largest population stability index of the probabilities against the trailing days.
    score_shift: float = 0.2
    #: The flagged share may change by this factor against the trailing days, up or down.
    flagged_ratio: float = 3.0
    #: Fewer flagged comments than this, seen and expected: their share is not compared.
    min_flagged: int = 20
    #: Fewer scores than this, today or in the trailing days together: scores are not compared.
    min_scores: int = 500

    def __post_init__(self) -> None:
        for field in fields(self):
            if not getattr(self, field.name) > 0:
                raise SettingsError(f"the quality threshold {field.name} must be above 0")
        for name in _SHARES:
            if getattr(self, name) > 1:
                raise SettingsError(f"the quality threshold {name} must be at most 1")
        _refuse_disorder(self, "collapsed_volume", "low_volume")
        _refuse_disorder(self, "low_volume", "high_volume")
        _refuse_disorder(self, "quarantined_warning", "quarantined_critical")
        _refuse_disorder(self, "min_trailing_days", "trailing_days")


_SHARES = (
    "collapsed_volume",
    "low_volume",
    "quarantined_warning",
    "quarantined_critical",
    "null_share_change",
    "language_shift",
    "unscored_critical",
)


def _refuse_disorder(thresholds: Thresholds, smaller: str, larger: str) -> None:
    if getattr(thresholds, smaller) > getattr(thresholds, larger):
        raise SettingsError(f"the quality threshold {smaller} must not exceed {larger}")
