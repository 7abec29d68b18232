"""My activity: your decisions today, to undo or correct."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Form, Response
from fastapi.responses import RedirectResponse

from modwatch.common.errors import ItemNotFoundError, LeaseConflictError, QueueError
from modwatch.review.console.activity import Activity, activity_today
from modwatch.review.console.api import review as api
from modwatch.review.console.decision_choices import reasons_of, titles_of
from modwatch.review.console.forms import FormId, FormLabel, FormVersion
from modwatch.review.console.render import Page, render
from modwatch.review.console.request_context import ReviewForm, ReviewSession
from modwatch.review.policy.tree import check_reason

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True, kw_only=True)
class ActivityPage(Page, template="activity.html"):
    """Counts and latest decisions of today."""

    activity: Activity
    #: Title of every code, and of every reason as `action:reason`.
    titles: dict[str, str]
    #: Reasons for a correction, with their titles.
    reasons: dict[str, str]


@router.get("/day")
def show(session: ReviewSession) -> Response:
    """Return your activity today."""
    locale, timezone = session.locale, session.preferences.timezone
    page = ActivityPage(
        activity=activity_today(session.engine, session.person.id, timezone),
        titles=titles_of(session.policy, locale),
        reasons=reasons_of(session.policy, "correct", locale),
    )
    return render(page, session)


@router.post("/correct")
def correct(
    session: ReviewForm,
    decision_id: FormId,
    item_id: FormId,
    version: FormVersion,
    label: FormLabel,
    reason: Annotated[str, Form(max_length=60)],
) -> Response:
    """Replace your own label."""
    check_reason(session.policy, "correct", reason)
    key = f"page-correct-{decision_id}-{version}"
    try:
        api.correct(
            session.context,
            session.person,
            item_id,
            label=int(label),
            version=version,
            reason=reason,
            key=key,
        )
    except (LeaseConflictError, ItemNotFoundError):
        return RedirectResponse("./day?notice=conflict", 303)
    except QueueError:
        return RedirectResponse("./day?notice=refused", 303)
    return RedirectResponse("./day?notice=corrected", 303)
