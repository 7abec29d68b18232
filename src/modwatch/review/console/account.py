"""Your own account: who you are, settings, password and second factor."""

from typing import Annotated, Any
from zoneinfo import available_timezones

from fastapi import APIRouter, Form, Request, Response
from fastapi.responses import RedirectResponse
from pydantic import BaseModel, Field, ValidationError
from starlette.concurrency import run_in_threadpool

from modwatch.common.errors import AccessDeniedError, QueueError, ThrottledError, WeakPasswordError
from modwatch.review import database
from modwatch.review.console.i18n import LANGUAGES, N_
from modwatch.review.console.people import revoke_access
from modwatch.review.console.preferences import ACTIONS, MANDATORY_REASONS, Preferences
from modwatch.review.console.render import render
from modwatch.review.console.request_context import (
    SESSION_COOKIE,
    AccountForm,
    AccountSession,
    PersonDep,
    Session,
    csrf_of,
    delete_cookies,
)
from modwatch.review.console.schemas import OptionalId, error_responses
from modwatch.review.people import access_tokens, changes, passwords, second_factor
from modwatch.review.people.passwords import LONGEST_PASSWORD, SHORTEST_PASSWORD, check_password
from modwatch.review.queue.lanes import known_reasons


class MeSchema(BaseModel):
    """The owner of the token or session."""

    pseudonym: str
    role: str
    scopes: list[str]
    csrf: str | None = Field(
        description="CSRF token of the pages' session; null for a bearer token."
    )


api = APIRouter(prefix="/api/v1/me", tags=["me"], responses=error_responses(401, 503))


@api.get("")
def read_me(request: Request, person: PersonDep) -> MeSchema:
    """Return the owner of the token or session, with their scopes."""
    by_token = "authorization" in request.headers
    return MeSchema(
        pseudonym=person.pseudonym,
        role=person.role,
        scopes=sorted(person.scopes),
        csrf=None if by_token else csrf_of(request.cookies.get(SESSION_COOKIE, "")),
    )


pages = APIRouter(include_in_schema=False)

_PROBLEMS = {
    "keys": N_(
        "Two actions have the same key, or a key is not a visible character other than a digit."
    ),
    "timezone": N_("Unknown time zone. Use a name such as Europe/Berlin."),
    "budget": N_("The daily limit must be between 1 and 10,000, or empty."),
    "break_minutes": N_("The break reminder must be between 5 and 480 minutes, or empty."),
}

#: Read once: they are files.
_TIMEZONES = tuple(sorted(available_timezones()))

Password = Annotated[str, Form(max_length=LONGEST_PASSWORD)]


@pages.get("/preferences")
def show(session: AccountSession) -> Response:
    """Return the form with the current settings."""
    chosen = session.preferences
    return _preferences_page(session, chosen.model_dump(), chosen.all_keys)


@pages.post("/preferences")
async def save(session: AccountForm) -> Response:
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
        "opt_outs": tuple(str(reason) for reason in sent.getlist("opt_outs")),
        "keys": {name: key for name, key in keys.items() if key != ACTIONS[name][0]},
    }
    try:
        chosen = Preferences.model_validate(form)
    except ValidationError as exc:
        field = str((*exc.errors()[0]["loc"], "keys")[0])
        problem = _PROBLEMS.get(field, _PROBLEMS["keys"])
        return _preferences_page(session, form, keys, problem)
    content = chosen.model_dump(mode="json", exclude_defaults=True)
    await run_in_threadpool(changes.save_preferences, session.engine, session.person.id, content)
    return RedirectResponse("./preferences?notice=saved", 303)


@pages.post("/preferences/password")
def change_password(session: AccountForm, old: Password, new: Password) -> Response:
    """Change your own password, which ends all your sessions and access tokens."""
    try:
        passwords.change_password(session.engine, session.person.id, old, new)
    except ThrottledError:
        return RedirectResponse("../preferences?notice=throttled", 303)
    except AccessDeniedError:
        return RedirectResponse("../preferences?notice=wrong", 303)
    except WeakPasswordError as exc:
        return RedirectResponse(f"../preferences?notice={exc.weakness}", 303)
    except QueueError:
        return RedirectResponse("../preferences?notice=unusable", 303)
    return RedirectResponse("../login?notice=changed", 303)


@pages.post("/preferences/revoke")
def revoke(session: AccountForm, token_id: OptionalId = None) -> Response:
    """Revoke one of your tokens or sessions, or without an id all your sessions."""
    revoke_access(session, session.person.id, token_id)
    return RedirectResponse("../preferences?notice=revoked", 303)


@pages.post("/preferences/group")
def describe(session: AccountForm, group: Annotated[str, Form(max_length=200)] = "") -> Response:
    """Save a self-description, separate from the account; an empty one deletes it."""
    changes.describe_group(session.engine, session.person.id, group.strip() or None)
    return RedirectResponse("../preferences?notice=described", 303)


def _preferences_page(
    session: Session, form: dict[str, Any], keys: dict[str, str], problem: str | None = None
) -> Response:
    with session.engine.connect() as connection:
        reasons = known_reasons(connection)
    return render(
        session,
        "preferences.html",
        problem=problem,
        form=form,
        keys=keys,
        reasons=tuple(reason for reason in reasons if reason not in MANDATORY_REASONS),
        tokens=access_tokens.tokens(session.engine, session.person.id),
        now=database.now(session.engine),
        actions=ACTIONS,
        languages=LANGUAGES,
        timezones=_TIMEZONES,
        shortest_password=SHORTEST_PASSWORD,
    )


_WRONG_PASSWORD = N_("The current password is incorrect. Try again, or ask an admin.")
_WRONG_CODE = N_("That code is incorrect. Begin again, and enter the code that the app shows.")
_WAIT = N_("Too many attempts. Wait 15 minutes, then try again.")
_ENROLLED = N_("Your account has a second factor. Ask an admin to reset it first.")


@pages.get("/second-factor")
def show_second_factor(session: AccountSession) -> Response:
    """Return the first step, or that the person is enrolled."""
    return _first(session)


@pages.post("/second-factor")
def begin(
    session: AccountForm, password: Annotated[str, Form(max_length=LONGEST_PASSWORD)] = ""
) -> Response:
    """Show a new secret, after the password was entered once more."""
    try:
        check_password(session.engine, session.person.id, password)
        secret = second_factor.begin_enrolment(session.engine, session.person.id)
    except ThrottledError:
        return _first(session, _WAIT, 429)
    except AccessDeniedError:
        return _first(session, _WRONG_PASSWORD)
    except QueueError:
        return _first(session, _ENROLLED)
    address = second_factor.app_address(secret, session.person.pseudonym)
    return render(
        session,
        "second_factor.html",
        problem=None,
        recovery=(),
        secret=secret,
        address=address,
    )


@pages.post("/second-factor/confirm")
def confirm(session: AccountForm, code: Annotated[str, Form(max_length=100)] = "") -> Response:
    """Enrol, show the recovery codes, and end all sessions."""
    try:
        codes = second_factor.confirm_enrolment(session.engine, session.person.id, code)
    except ThrottledError:
        return _first(session, _WAIT, 429)
    except AccessDeniedError:
        return _first(session, _WRONG_CODE)
    except QueueError:
        return RedirectResponse("../second-factor", 303)
    response = render(session, "second_factor.html", problem=None, recovery=codes)
    delete_cookies(session.request, response, SESSION_COOKIE)
    return response


def _first(session: Session, problem: str | None = None, status: int | None = None) -> Response:
    return render(
        session,
        "second_factor.html",
        status,
        problem=problem,
        recovery=(),
        secret=None,
        enrolled=second_factor.enrolled(session.engine, session.person.id),
        required=session.context.options.require_second_factor and session.person.may_enrol_only,
    )
