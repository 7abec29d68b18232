"""One's own account: who one is, one's day, one's choices."""

from fastapi import APIRouter, Request

from modwatch.review import people
from modwatch.review.console.choices import Preferences, preferences_of
from modwatch.review.console.day import my_day
from modwatch.review.console.desk import SESSION, DeskDep, PersonDep, ReviewerDep, csrf_of
from modwatch.review.console.shapes import DayShape, MeShape, refusals

router = APIRouter(prefix="/api/v1/me", tags=["me"], responses=refusals(401, 503))


@router.get("")
def read_me(request: Request, person: PersonDep) -> MeShape:
    """Return who asks, and what they may."""
    by_token = "authorization" in request.headers
    return MeShape(
        pseudonym=person.pseudonym,
        role=person.role,
        scopes=sorted(person.scopes),
        csrf=None if by_token else csrf_of(request.cookies.get(SESSION, "")),
    )


@router.get("/day", responses=refusals(403))
def read_day(desk: DeskDep, person: ReviewerDep) -> DayShape:
    """Return what one has done today; no kind, no score."""
    chosen = preferences_of(person.preferences)
    return DayShape.model_validate(my_day(desk.engine, person.id, chosen.timezone))


@router.get("/preferences")
def read_preferences(person: PersonDep) -> Preferences:
    """Return what one has chosen, defaults included."""
    return preferences_of(person.preferences)


@router.put("/preferences", responses=refusals(413, 422))
def write_preferences(chosen: Preferences, desk: DeskDep, person: PersonDep) -> Preferences:
    """Replace what one has chosen; two actions with one key are refused."""
    people.save_preferences(
        desk.engine, person.id, chosen.model_dump(mode="json", exclude_unset=True)
    )
    return chosen
