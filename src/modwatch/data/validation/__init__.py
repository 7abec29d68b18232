"""Data validation: rules, results, quarantine, the day's profile, the page of the day.

Each suite validates rows, profiles the valid ones and validates that profile against those of the
trailing days (`validate_comments`, `validate_scores`). Rows are split (`valid_rows`,
`quarantined_rows`, `valid_scores`), the profile is kept (`save_profile`), the result is published
(`publish_result`). Great Expectations gets flags and numbers only: never a text or an id.
"""

from modwatch.data.validation.comments import ValidatedComments, validate_comments
from modwatch.data.validation.page import publish_result, render_index, render_page
from modwatch.data.validation.profiles import earlier_ids, profile_rows, read_profile, save_profile
from modwatch.data.validation.quarantine import quarantined_rows, valid_rows
from modwatch.data.validation.result import InvalidRows, RuleResult, ValidationResult
from modwatch.data.validation.scores import ValidatedScores, valid_scores, validate_scores
from modwatch.data.validation.thresholds import Thresholds

__all__ = [
    "InvalidRows",
    "RuleResult",
    "Thresholds",
    "ValidatedComments",
    "ValidatedScores",
    "ValidationResult",
    "earlier_ids",
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
