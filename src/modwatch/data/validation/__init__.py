"""Data validation: rules, results, quarantine, the day's profile, the page of the day.

A suite of Great Expectations validates the rows of a day, then the valid ones as a whole and
against the trailing days (`validate_comments`, `validate_scores`), with the expectations of a file
of the installation (`load_expectations`). Rows are split (`valid_rows`, `quarantined_rows`,
`valid_scores`), the profile is kept (`save_profile`), the result is published (`publish_result`).
No result has a text or an id.
"""

from modwatch.data.validation.comments import ValidatedComments, validate_comments
from modwatch.data.validation.own_expectations import load_expectations
from modwatch.data.validation.page import publish_result, render_index, render_page
from modwatch.data.validation.profiles import (
    earlier_ids,
    later_ids,
    profile_rows,
    read_profile,
    save_profile,
)
from modwatch.data.validation.result import InvalidRows, RuleResult, ValidationResult
from modwatch.data.validation.rows import first_origins, quarantined_rows, valid_rows
from modwatch.data.validation.rules import Rule, Thresholds
from modwatch.data.validation.scores import ValidatedScores, valid_scores, validate_scores

__all__ = [
    "InvalidRows",
    "Rule",
    "RuleResult",
    "Thresholds",
    "ValidatedComments",
    "ValidatedScores",
    "ValidationResult",
    "earlier_ids",
    "first_origins",
    "later_ids",
    "load_expectations",
    "profile_rows",
    "publish_result",
    "quarantined_rows",
    "read_profile",
    "render_index",
    "render_page",
    "save_profile",
    "valid_rows",
    "valid_scores",
    "validate_comments",
    "validate_scores",
]
