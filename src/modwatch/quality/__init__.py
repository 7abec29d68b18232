"""Whether a day can be trusted: rules, verdict, quarantine, page.

A check is four steps: profile the batches (`profile_comments`, `profile_scores`), judge the
profile (`check_comments`, `check_scores`), part the rows (`accepted_rows`, `refused_rows`,
`accepted_scores`), and show what was found (`render_page`). Great Expectations judges profiles,
which hold flags and numbers only: it never sees a text or an id.
"""

from modwatch.quality.comments import CheckedComments, check_comments
from modwatch.quality.page import render_index, render_page
from modwatch.quality.profile import CommentsProfile, profile_comments
from modwatch.quality.quarantine import accepted_rows, refused_rows
from modwatch.quality.scores import (
    CheckedScores,
    ScoresProfile,
    accepted_scores,
    check_scores,
    profile_scores,
)
from modwatch.quality.thresholds import Thresholds
from modwatch.quality.verdict import Refusals, RuleResult, Verdict, rejection

__all__ = [
    "CheckedComments",
    "CheckedScores",
    "CommentsProfile",
    "Refusals",
    "RuleResult",
    "ScoresProfile",
    "Thresholds",
    "Verdict",
    "accepted_rows",
    "accepted_scores",
    "check_comments",
    "check_scores",
    "profile_comments",
    "profile_scores",
    "refused_rows",
    "rejection",
    "render_index",
    "render_page",
]
