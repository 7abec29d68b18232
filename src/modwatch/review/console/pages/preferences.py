"""Settings: appearance, well-being, shortcuts and password of one person."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any
from zoneinfo import available_timezones

from fastapi import APIRouter, Form, Response
from fastapi.responses import RedirectResponse
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool

from modwatch.common.errors import AccessDeniedError, QueueError, ThrottledError, WeakPasswordError
from modwatch.review import people
from modwatch.review.console.i18n import LANGUAGES, N_
from modwatch.review.console.preferences import (
    ACTIONS,
    MANDATORY_REASONS,
    Preferences,
)
from modwatch.review.console.render import Page, render
from modwatch.review.console.request_context import AnyForm, AnySession, Session
from modwatch.review.people import LONGEST_PASSWORD, SHORTEST_PASSWORD

router = APIRouter(include_in_schema=False)

_PROBLEMS = {
    "keys": N_(
        "Two actions have the same key, or a key is not a visible character other than a digit."
    ),
    "timezone": N_("Unknown time zone. Use a name such as Europe/Berlin."),
    "budget": N_("The daily limit must be between 1 and 10,000, or empty."),
    "break_minutes": N_("The break reminder must be between 5 and 480 minutes, or empty."),
}

Password = Annotated[str, Form(max_length=LONGEST_PASSWORD)]


@dataclass(frozen=True, kw_only=True)
class PreferencesPage(Page, template="preferences.html"):
    """All settings of one person."""

    problem: str | None
    #: Content of the form: saved, or invalid.
    form: dict[str, Any]
    keys: dict[str, str]
    #: Reasons that a person can opt out of.
    reasons: tuple[str, ...]
    reviews: bool
    actions: Mapping[str, tuple[str, str]] = field(default_factory=lambda: ACTIONS)
    languages: Mapping[str, str] = field(default_factory=lambda: LANGUAGES)
    timezones: tuple[str, ...] = tuple(sorted(available_timezones()))
    shortest_password: int = SHORTEST_PASSWORD


@router.get("/preferences")
def show(session: AnySession) -> Response:
    """Return the form with the current settings."""
    chosen = session.preferences
    page = _page(session, chosen.model_dump(), chosen.all_keys)
    return render(page, session)


@router.post("/preferences")
async def save(session: AnyForm) -> Response:
    """Save the settings, or show what is invalid."""
    sent = await session.request.form()
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
        field = str((*exc.errors()[0]["loc"], "keys")[0])
        problem = _PROBLEMS.get(field, _PROBLEMS["keys"])
        return render(_page(session, form, keys, problem), session, 422)
    content = chosen.model_dump(mode="json", exclude_defaults=True)
    await run_in_threadpool(people.save_preferences, session.engine, session.person.id, content)
    return RedirectResponse("./preferences?notice=saved", 303)


@router.post("/preferences/password")
def change_password(session: AnyForm, old: Password, new: Password) -> Response:
    """Change your own password, which ends all your sessions."""
    try:
        people.change_password(session.engine, session.person.id, old, new)
    except ThrottledError:
        return RedirectResponse("../preferences?notice=throttled", 303)
    except AccessDeniedError:
        return RedirectResponse("../preferences?notice=wrong", 303)
    except WeakPasswordError as exc:
        return RedirectResponse(f"../preferences?notice={exc.weakness}", 303)
    except QueueError:
        return RedirectResponse("../preferences?notice=unusable", 303)
    return RedirectResponse("../login?notice=changed", 303)


@router.post("/preferences/group")
def describe(session: AnyForm, group: Annotated[str, Form(max_length=200)] = "") -> Response:
    """Save a self-description, separate from the account; an empty one deletes it."""
    people.describe_group(session.engine, session.person.id, group.strip() or None)
    return RedirectResponse("../preferences?notice=described", 303)


def _page(
    session: Session, form: dict[str, Any], keys: dict[str, str], problem: str | None = None
) -> PreferencesPage:
    return PreferencesPage(
        problem=problem,
        form=form,
        keys=keys,
        reasons=tuple(sorted(set(session.context.options.lanes.reason) - MANDATORY_REASONS)),
        reviews=session.person.reviews,
    )
