"""Your own account: who you are, your activity today, your preferences."""

from fastapi import APIRouter, Request

from modwatch.review import people
from modwatch.review.console.activity import activity_today
from modwatch.review.console.preferences import Preferences, preferences_of
from modwatch.review.console.request_context import (
    SESSION_COOKIE,
    ContextDep,
    PersonDep,
    ReviewerDep,
    csrf_of,
)
from modwatch.review.console.schemas import DaySchema, MeSchema, error_responses

router = APIRouter(prefix="/api/v1/me", tags=["me"], responses=error_responses(401, 503))


@router.get("")
def read_me(request: Request, person: PersonDep) -> MeSchema:
    """Return the owner of the token or session, with their scopes."""
    by_token = "authorization" in request.headers
    return MeSchema(
        pseudonym=person.pseudonym,
        role=person.role,
        scopes=sorted(person.scopes),
        csrf=None if by_token else csrf_of(request.cookies.get(SESSION_COOKIE, "")),
    )


@router.get("/day", responses=error_responses(403))
def read_day(context: ContextDep, person: ReviewerDep) -> DaySchema:
    """Return your activity today, without kinds and scores."""
    chosen = preferences_of(person.preferences)
    return activity_today(context.engine, person.id, chosen.timezone)


@router.get("/preferences")
def read_preferences(person: PersonDep) -> Preferences:
    """Return your preferences, including defaults."""
    return preferences_of(person.preferences)


@router.put("/preferences", responses=error_responses(413, 422))
def write_preferences(chosen: Preferences, context: ContextDep, person: PersonDep) -> Preferences:
    """Replace your preferences; two actions with the same key are invalid."""
    people.save_preferences(
        context.engine, person.id, chosen.model_dump(mode="json", exclude_unset=True)
    )
    return chosen
