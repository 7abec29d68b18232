"""The rules of both suites, in the order in which they are tried."""

from modwatch.quality.expectations import Rule
from modwatch.quality.profile import OPTIONAL_COLUMNS
from modwatch.quality.thresholds import Thresholds
from modwatch.quality.verdict import Severity

_SOURCE = "Mend these rows at the source and run the day again; they are kept in quarantine."


def comment_row_rules(bounds: Thresholds) -> tuple[Rule, ...]:
    """Rules that each landed row is judged by alone. The first one it fails names its reason."""
    return (
        _flag("unreadable", "the source's record could be read", _SOURCE),
        _flag("missing_id", "comment_id is there and not blank", _SOURCE),
        _at_most("long_id", bounds.max_id_length, "comment_id", _SOURCE),
        _flag("nul_byte", "no text column holds a NUL byte", _SOURCE),
        _flag("missing_time", "created_at is there", _SOURCE),
        _flag(
            "time_outside_day",
            "created_at lies inside the day, in UTC",
            "Check the time zone of the source's timestamp column, then run the day again.",
        ),
        _flag("blank_text", "the text has a visible character", _SOURCE),
        _at_most("long_text", bounds.max_text_length, "text", _SOURCE),
        _flag("malformed_language", "language, if given, is shaped as a BCP 47 tag", _SOURCE),
    )


def comment_id_rules() -> tuple[Rule, ...]:
    """Rules that the rows which passed `comment_row_rules` are judged by together."""
    return (
        _flag(
            "id_of_earlier_day",
            "comment_id was not published on an earlier day",
            "The earlier day keeps the comment. If edits arrive as new rows, send each id once.",
        ),
        _flag(
            "duplicate_id",
            "comment_id occurs once in the day; the first good row keeps it",
            "Look for a file delivered twice or a query that joins rows twice.",
        ),
    )


def comment_day_rules(bounds: Thresholds) -> tuple[Rule, ...]:
    """Rules that the day's comments are judged by as a whole."""
    return (
        _within(
            "schema",
            "critical",
            (None, 0),
            "no fault",
            "the columns of the table landed are there, in their types",
            "Ingest the day again with this version of Modwatch.",
        ),
        _within(
            "volume_collapse",
            "critical",
            (bounds.collapsed_volume, None),
            f"at least {100 * bounds.collapsed_volume:g} % of the trailing mean",
            "the source delivered more than a remnant of the usual volume",
            "Check that the source was complete when the day was ingested, then run it again.",
        ),
        _within(
            "volume_shift",
            "warning",
            (bounds.low_volume, bounds.high_volume),
            f"{bounds.low_volume:.2f} to {bounds.high_volume:.2f} times the trailing mean",
            "the volume is of the usual size",
            "Ask the platform whether an event, an outage or a double delivery explains it.",
        ),
        _within(
            "empty_day",
            "warning",
            (1, None),
            "at least one comment",
            "the day has comments",
            "If comments were expected, check the source's path or query for this day.",
        ),
        _within(
            "quarantined_most",
            "critical",
            (None, bounds.quarantined_critical),
            f"at most {100 * bounds.quarantined_critical:g} %, or {bounds.tolerated_rows} rows",
            "most of the day can be used",
            "See the quarantine by reason below; mend the source and run the day again.",
        ),
        _within(
            "quarantined_many",
            "warning",
            (None, bounds.quarantined_warning),
            f"at most {100 * bounds.quarantined_warning:g} %",
            "few rows are quarantined",
            "See the quarantine by reason below.",
        ),
        _within(
            "language_shift",
            "warning",
            (None, bounds.language_shift),
            f"at most {100 * bounds.language_shift:g} % of comments in other languages than usual",
            "the mix of languages is that of the trailing days",
            "Look for a new community, a changed language detector or a lost feed.",
        ),
        *(_null_share(column, bounds) for column in OPTIONAL_COLUMNS),
    )


def score_row_rules() -> tuple[Rule, ...]:
    """Rules that each score is judged by alone."""
    remedy = "The comment is not routed. Look for it in quarantine and test the model on it."
    return (
        _flag("missing_probability", "the probability is a number", remedy),
        Rule(
            name="probability_out_of_range",
            level="row",
            severity="critical",
            bound="0 to 1",
            asks="the probability lies between 0 and 1",
            remedy=remedy,
            minimum=0,
            maximum=1,
        ),
    )


def score_day_rules(bounds: Thresholds) -> tuple[Rule, ...]:
    """Rules that the day's scores are judged by as a whole."""
    again = "Score the day again; if it happens twice, report it with this page."
    return (
        _within(
            "schema",
            "critical",
            (None, 0),
            "no fault",
            "the columns of the table scores are there, in their types",
            again,
        ),
        _within(
            "double_scores", "critical", (None, 0), "none", "each comment is scored once", again
        ),
        _within(
            "unknown_scores",
            "critical",
            (None, 0),
            "none",
            "each score belongs to a comment of the day",
            again,
        ),
        _within(
            "several_model_versions",
            "critical",
            (None, 1),
            "one version",
            "one model version scored the whole day",
            "The champion changed while the day was scored; score the day again.",
        ),
        _within(
            "unscored_many",
            "critical",
            (None, bounds.unscored_critical),
            f"at most {100 * bounds.unscored_critical:g} %, or {bounds.tolerated_rows} comments",
            "nearly every comment has a valid score",
            again,
        ),
        _within(
            "unscored",
            "warning",
            (None, 0),
            "none",
            "every comment has a valid score",
            "These comments are not routed; see the row-level rules for the reason.",
        ),
        _within(
            "score_shift",
            "warning",
            (None, bounds.score_shift),
            f"PSI of at most {bounds.score_shift:g}",
            "the probabilities are distributed as on the trailing days of this model",
            "Look at language mix and volume first, then sample the flagged comments.",
        ),
        _within(
            "flagged_shift",
            "warning",
            (1 / bounds.flagged_ratio, bounds.flagged_ratio),
            f"{1 / bounds.flagged_ratio:.2f} to {bounds.flagged_ratio:.2f} times the usual share",
            "the share of flagged comments is that of the trailing days of this model",
            "Sample the flagged comments: a raid, a new topic or a failing model look alike here.",
        ),
    )


def null_share_rule(column: str) -> str:
    """The name of the rule that watches a column's share of nulls."""
    return f"null_share_{column}"


def _null_share(column: str, bounds: Thresholds) -> Rule:
    return _within(
        null_share_rule(column),
        "warning",
        (None, bounds.null_share_change),
        f"a change of at most {100 * bounds.null_share_change:g} percentage points",
        f"{column} is as often missing as on the trailing days",
        f"Check whether the source renamed or dropped the column that feeds {column}.",
    )


def _flag(name: str, asks: str, remedy: str) -> Rule:
    return Rule(name=name, level="row", severity="critical", bound="none", asks=asks, remedy=remedy)


def _at_most(name: str, maximum: int, column: str, remedy: str) -> Rule:
    return Rule(
        name=name,
        level="row",
        severity="critical",
        bound=f"{maximum:,} characters",
        asks=f"{column} is not longer than the bound",
        remedy=remedy,
        maximum=maximum,
    )


def _within(
    name: str,
    severity: Severity,
    limits: tuple[float | None, float | None],
    bound: str,
    asks: str,
    remedy: str,
) -> Rule:
    return Rule(
        name=name,
        level="day",
        severity=severity,
        bound=bound,
        asks=asks,
        remedy=remedy,
        minimum=limits[0],
        maximum=limits[1],
    )
