"""Preferences: how the console looks and works for one person."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar
from zoneinfo import available_timezones

from fastapi import APIRouter, Depends, Form, Query, Request, Response
from fastapi.responses import RedirectResponse
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool

from modwatch.errors import AccessDeniedError, QueueError, ThrottledError
from modwatch.review import people
from modwatch.review.console.choices import ACTIONS, NEVER_LEFT_OUT, Preferences, preferences_of
from modwatch.review.console.desk import DeskDep, FormText, Visit, page_visit
from modwatch.review.console.i18n import LANGUAGES, N_
from modwatch.review.console.render import Page, render
from modwatch.review.people import LONGEST_PASSWORD, SHORTEST_PASSWORD

router = APIRouter(include_in_schema=False)

NOTICES = {
    "saved": N_("Saved."),
    "described": N_("Saved. Thank you."),
    "wrong": N_("The old password is wrong. Try again, or ask an admin."),
    "throttled": N_("Too many attempts. Wait a quarter of an hour, then try again."),
    "unusable": N_("That password will not do: choose a longer one that is not easily guessed."),
}

_PROBLEMS = {
    "keys": N_("Two actions have the same key, or a key is a figure or no character."),
    "timezone": N_("That time zone is unknown. Write it as Europe/Berlin."),
    "budget": N_("The budget is a number from 1 to 10,000, or empty."),
    "break_minutes": N_("The break comes after 5 to 480 minutes, or never if empty."),
}

AnyVisit = Annotated[Visit, Depends(page_visit())]
Password = Annotated[str, Form(max_length=LONGEST_PASSWORD)]


@dataclass(frozen=True, kw_only=True)
class PreferencesPage(Page):
    """`preferences.html`."""

    template: ClassVar[str] = "preferences.html"

    notice: str | None
    problem: str | None
    #: What is in the form: chosen, or refused.
    form: dict[str, Any]
    keys: dict[str, str]
    actions: dict[str, str]
    languages: dict[str, str]
    #: Reasons of comments that one may do without.
    reasons: tuple[str, ...]
    timezones: tuple[str, ...]
    reviews: bool
    shortest_password: int


@router.get("/preferences")
def show(
    request: Request,
    desk: DeskDep,
    visit: AnyVisit,
    notice: Annotated[str, Query(max_length=20)] = "",
) -> Response:
    """Return the form, filled."""
    chosen = preferences_of(visit.person.preferences)
    page = _page(desk, visit, chosen.model_dump(), chosen.all_keys, NOTICES.get(notice), None)
    return render(page, request, visit)


@router.post("/preferences")
async def save(request: Request, desk: DeskDep, visit: AnyVisit) -> Response:
    """Replace what the person has chosen, or show what cannot be."""
    sent = await request.form()
    visit.check(str(sent.get("csrf", "")))
    keys = {name: str(sent.get(f"key_{name}", "")).strip().lower() for name in ACTIONS}
    form: dict[str, Any] = {
        "language": sent.get("language") or None,
        "theme": sent.get("theme", "auto"),
        "masking": sent.get("masking", "none"),
        "timezone": str(sent.get("timezone", "")).strip() or "UTC",
        "shortcuts": "shortcuts" in sent,
        "ask": "ask" in sent,
        "budget": sent.get("budget") or None,
        "break_minutes": sent.get("break_minutes") or None,
        "opt_outs": tuple(str(each) for each in sent.getlist("opt_outs")),
        "keys": {name: key for name, key in keys.items() if key != ACTIONS[name][0]},
    }
    try:
        chosen = Preferences.model_validate(form)
    except ValidationError as exc:
        where = str((*exc.errors()[0]["loc"], "keys")[0])
        problem = _PROBLEMS.get(where, _PROBLEMS["keys"])
        return render(_page(desk, visit, form, keys, None, problem), request, visit, 422)
    content = chosen.model_dump(mode="json", exclude_defaults=True)
    await run_in_threadpool(people.save_preferences, desk.engine, visit.person.id, content)
    return RedirectResponse("./preferences?notice=saved", 303)


@router.post("/preferences/password")
def change_password(
    request: Request, desk: DeskDep, visit: AnyVisit, csrf: FormText, old: Password, new: Password
) -> Response:
    """Change one's own password; every session ends with it."""
    visit.check(csrf)
    address = request.client.host if request.client else ""
    try:
        people.change_password(desk.engine, visit.person.id, old, new, address=address)
    except ThrottledError:
        return RedirectResponse("../preferences?notice=throttled", 303)
    except AccessDeniedError:
        return RedirectResponse("../preferences?notice=wrong", 303)
    except QueueError:
        return RedirectResponse("../preferences?notice=unusable", 303)
    return RedirectResponse("../login?notice=changed", 303)


@router.post("/preferences/group")
def describe(
    desk: DeskDep, visit: AnyVisit, csrf: FormText, group: Annotated[str, Form(max_length=200)] = ""
) -> Response:
    """Keep what a person says about themselves, apart from the account; empty forgets it."""
    visit.check(csrf)
    people.describe_group(desk.engine, visit.person.id, group.strip() or None)
    return RedirectResponse("../preferences?notice=described", 303)


def _page(
    desk: DeskDep,
    visit: Visit,
    form: dict[str, Any],
    keys: dict[str, str],
    notice: str | None,
    problem: str | None,
) -> PreferencesPage:
    return PreferencesPage(
        notice=notice,
        problem=problem,
        form=form,
        keys=keys,
        actions={name: title for name, (_, title) in ACTIONS.items()},
        languages=dict(LANGUAGES),
        reasons=tuple(sorted(set(desk.lanes.reason) - NEVER_LEFT_OUT)),
        timezones=tuple(sorted(available_timezones())),
        reviews=visit.person.reviews,
        shortest_password=SHORTEST_PASSWORD,
    )
