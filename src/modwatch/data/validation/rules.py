"""The validation rules of both suites, in the order in which they are tried."""

from functools import partial

from modwatch.data.validation.profiles import OPTIONAL_COLUMNS
from modwatch.data.validation.result import Level, Severity, ValidationRule
from modwatch.data.validation.thresholds import Thresholds

#: Columns whose share of missing values is validated. Which comments mention `groups` depends on
#: what people talk about, so drift measures it and validation does not.
VALIDATED_COLUMNS = tuple(name for name in OPTIONAL_COLUMNS if name != "groups")

#: What scores are compared with.
_COMPARED = (
    "on the trailing days of this model version or, while there are too few, "
    "on its held-out comments"
)

_SOURCE = "Fix these rows at the source and run the day again. They are kept in quarantine."


def _rule(
    level: Level,
    severity: Severity,
    name: str,
    limits: tuple[float | None, float | None],
    *texts: str,
) -> ValidationRule:
    allowed, expectation, remedy = texts
    return ValidationRule(
        name=name,
        level=level,
        severity=severity,
        allowed=allowed,
        expectation=expectation,
        remedy=remedy,
        minimum=limits[0],
        maximum=limits[1],
    )


_row = partial(_rule, "row", "critical")
_critical = partial(_rule, "day", "critical")
_warning = partial(_rule, "day", "warning")


def comment_row_rules(
    bounds: Thresholds, *, own_scores: bool = False
) -> tuple[ValidationRule, ...]:
    """Return the rules for each landed row alone. The first that a row fails is its reason.

    With `own_scores`, also those for the scores that the source brings.
    """
    return (
        _flag("unreadable", "the record of the source can be read", _SOURCE),
        _flag("missing_id", "comment_id is present and not blank", _SOURCE),
        _at_most("long_id", bounds.max_id_length, "comment_id", _SOURCE),
        _flag("nul_byte", "no text column contains a NUL byte", _SOURCE),
        _flag("missing_time", "created_at is present", _SOURCE),
        _flag(
            "time_outside_day",
            "created_at is within the day, in UTC",
            "Check the time zone of the source's timestamp column, then run the day again.",
        ),
        _flag("blank_text", "the text has at least one visible character", _SOURCE),
        _at_most("long_text", bounds.max_text_length, "text", _SOURCE),
        _flag("malformed_language", "language is empty or a BCP 47 tag", _SOURCE),
        *(_own_score_rules() if own_scores else ()),
    )


def _own_score_rules() -> tuple[ValidationRule, ...]:
    return (
        _flag("missing_probability", "prob, the score of the source, is a number", _SOURCE),
        _row("probability_out_of_range", (0, 1), "0 to 1", "prob is in [0, 1]", _SOURCE),
        _flag("missing_decision", "flagged, the decision of the source, is present", _SOURCE),
        _flag(
            "malformed_model_version",
            "model_version is 1 to 100 letters, digits or any of . _ : @ / + -",
            _SOURCE,
        ),
    )


def comment_id_rules() -> tuple[ValidationRule, ...]:
    """Return the rules for the ids of the rows that passed `comment_row_rules`."""
    return (
        _flag(
            "id_of_earlier_day",
            "comment_id is not among the comments of earlier days",
            "The earlier day keeps the comment. If edits arrive as new rows, send each id once.",
        ),
        _flag(
            "duplicate_id",
            "comment_id occurs once in the day; the first valid row keeps it",
            "The first valid row is kept, the others are in quarantine. Look for a file that was "
            "delivered twice, or for a join that duplicates rows. Where texts differ, send only "
            "the version that counts, and run the day again.",
        ),
    )


def comment_day_rules(
    bounds: Thresholds, *, own_scores: bool = False
) -> tuple[ValidationRule, ...]:
    """Return the rules for the day's comments as a whole."""
    one_version = _critical(
        "several_model_versions",
        (None, 1),
        "one version",
        "the source names one model version for the whole day",
        "Let the source name one version a day: switch models at midnight UTC, or name a version "
        "that stands for all rules and models of the day.",
    )
    return (
        _schema("landed", "Ingest the day again with this version of Modwatch."),
        *_volume_rules(bounds),
        *_quarantine_rules(bounds),
        _warning(
            "language_shift",
            (None, bounds.language_shift),
            f"Jensen–Shannon divergence of at most {bounds.language_shift:g} bits",
            "the mix of languages is similar to that of the trailing days",
            "Look for a new community, a changed language detection or a missing feed.",
        ),
        *(_missing_share(column, bounds) for column in VALIDATED_COLUMNS),
        *((one_version,) if own_scores else ()),
    )


def _volume_rules(bounds: Thresholds) -> tuple[ValidationRule, ...]:
    return (
        _critical(
            "volume_collapse",
            (bounds.collapsed_volume, None),
            f"at least {100 * bounds.collapsed_volume:g} % of the trailing median",
            "the source delivered a substantial part of its usual volume",
            "Check that the source was complete when the day was ingested, then run the day again.",
        ),
        _warning(
            "volume_shift",
            (bounds.low_volume, bounds.high_volume),
            f"{bounds.low_volume:.2f} to {bounds.high_volume:.2f} times the trailing median",
            "the volume is close to that of the trailing days",
            "Look for an event, an outage or a double delivery at the platform.",
        ),
        _warning(
            "empty_day",
            (1, None),
            "at least one comment",
            "the day has comments",
            "If comments were expected, check the path or query of the source for this day.",
        ),
    )


def _quarantine_rules(bounds: Thresholds) -> tuple[ValidationRule, ...]:
    return (
        _critical(
            "quarantined_most",
            (None, bounds.quarantined_critical),
            f"at most {100 * bounds.quarantined_critical:g} %, or {bounds.tolerated_rows} rows",
            "most rows are valid",
            "See the quarantine by reason below, fix the source and run the day again.",
        ),
        _warning(
            "quarantined_many",
            (None, bounds.quarantined_warning),
            f"at most {100 * bounds.quarantined_warning:g} %",
            "few rows are quarantined",
            "See the quarantine by reason below.",
        ),
    )


def score_row_rules() -> tuple[ValidationRule, ...]:
    """Return the rules for each score alone."""
    remedy = "The comment is not routed. Find it in quarantine and run the model on it."
    return (
        _flag("missing_probability", "the probability is a number", remedy),
        _row("probability_out_of_range", (0, 1), "0 to 1", "the probability is in [0, 1]", remedy),
    )


def score_day_rules(bounds: Thresholds) -> tuple[ValidationRule, ...]:
    """Return the rules for the day's scores as a whole."""
    again = "Score the day again. If it fails again, report it with this page."
    return (
        _schema("scores", again),
        _critical("double_scores", (None, 0), "none", "each comment is scored once", again),
        _critical(
            "unknown_scores", (None, 0), "none", "each score belongs to a comment of the day", again
        ),
        _critical(
            "stale_scores",
            (None, 0),
            "none",
            "each score is of the comment as it is now",
            "The day was read anew while it was scored. Score the day again.",
        ),
        _critical(
            "several_model_versions",
            (None, 1),
            "one version",
            "one model version, with one threshold, scored the whole day",
            "The champion or its threshold changed while the day was scored. Score the day again.",
        ),
        *_unscored_rules(bounds, again),
        _warning(
            "score_shift",
            (None, bounds.score_shift),
            f"PSI of at most {bounds.score_shift:g}",
            f"the probabilities are distributed as {_COMPARED}",
            "Check the language mix and the volume first, then sample the flagged comments.",
        ),
        _warning(
            "flagged_shift",
            (1 / bounds.flagged_ratio, bounds.flagged_ratio),
            f"{1 / bounds.flagged_ratio:.2f} to {bounds.flagged_ratio:.2f} times the usual share",
            f"the flagged share is as {_COMPARED}",
            "Sample the flagged comments: look for a raid, a new topic or a failing model.",
        ),
    )


def _unscored_rules(bounds: Thresholds, remedy: str) -> tuple[ValidationRule, ...]:
    return (
        _critical(
            "unscored_many",
            (None, bounds.unscored_critical),
            f"at most {100 * bounds.unscored_critical:g} %, or {bounds.tolerated_rows} comments",
            "nearly every comment has a valid score",
            remedy,
        ),
        _warning(
            "unscored",
            (None, 0),
            "none",
            "every comment has a valid score",
            "These comments are not routed. See the row-level rules for the reason.",
        ),
    )


def missing_share_rule(column: str) -> str:
    """Return the name of the rule on a column's share of missing values."""
    return f"missing_share_{column}"


def _missing_share(column: str, bounds: Thresholds) -> ValidationRule:
    return _warning(
        missing_share_rule(column),
        (-bounds.missing_share_change, bounds.missing_share_change),
        f"a change of at most {100 * bounds.missing_share_change:g} percentage points",
        f"{column} is missing as often as on the trailing days",
        f"Check whether the source renamed or dropped the column of {column}.",
    )


def _schema(table: str, remedy: str) -> ValidationRule:
    expectation = f"the table {table} has all columns, with their types"
    return _critical("schema", (None, 0), "no fault", expectation, remedy)


def _flag(name: str, expectation: str, remedy: str) -> ValidationRule:
    return _row(name, (None, None), "none", expectation, remedy)


def _at_most(name: str, maximum: int, column: str, remedy: str) -> ValidationRule:
    expectation = f"{column} is not longer than the limit"
    return _row(name, (None, maximum), f"{maximum:,} characters", expectation, remedy)
