"""Enrol a second factor: the one-time codes of an authenticator app."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Form, Response
from fastapi.responses import RedirectResponse

from modwatch.common.errors import AccessDeniedError, QueueError, ThrottledError
from modwatch.review.console.i18n import N_
from modwatch.review.console.render import Page, render
from modwatch.review.console.request_context import (
    SESSION_COOKIE,
    AnyForm,
    AnySession,
    Session,
    delete_cookies,
)
from modwatch.review.people import LONGEST_PASSWORD, check_password, second_factor

router = APIRouter(include_in_schema=False)

_WRONG_PASSWORD = N_("The current password is incorrect. Try again, or ask an admin.")
_WRONG_CODE = N_("That code is incorrect. Begin again, and enter the code that the app shows.")
_WAIT = N_("Too many attempts. Wait 15 minutes, then try again.")
_ENROLLED = N_("Your account has a second factor. Ask an admin to reset it first.")


@dataclass(frozen=True, kw_only=True)
class SecondFactorPage(Page, template="second_factor.html"):
    """One of the steps of the enrolment."""

    problem: str | None = None
    enrolled: bool = False
    #: Whether nothing else is open to this person before they enrol.
    required: bool = False
    #: The new secret and its address for the app; shown once.
    secret: str | None = None
    address: str | None = None
    #: Shown once.
    recovery: tuple[str, ...] = ()


@router.get("/second-factor")
def show(session: AnySession) -> Response:
    """Return the first step, or that the person is enrolled."""
    return _first(session)


@router.post("/second-factor")
def begin(
    session: AnyForm, password: Annotated[str, Form(max_length=LONGEST_PASSWORD)] = ""
) -> Response:
    """Show a new secret, after the password was entered once more."""
    try:
        check_password(session.engine, session.person.id, password)
        secret = second_factor.begin_enrolment(session.engine, session.person.id)
    except ThrottledError:
        return _first(session, _WAIT, 429)
    except AccessDeniedError:
        return _first(session, _WRONG_PASSWORD, 422)
    except QueueError:
        return _first(session, _ENROLLED, 422)
    address = second_factor.app_address(secret, session.person.pseudonym)
    return render(SecondFactorPage(secret=secret, address=address), session)


@router.post("/second-factor/confirm")
def confirm(session: AnyForm, code: Annotated[str, Form(max_length=100)] = "") -> Response:
    """Enrol, show the recovery codes, and end all sessions."""
    try:
        codes = second_factor.confirm_enrolment(session.engine, session.person.id, code)
    except ThrottledError:
        return _first(session, _WAIT, 429)
    except AccessDeniedError:
        return _first(session, _WRONG_CODE, 422)
    except QueueError:
        return RedirectResponse("../second-factor", 303)
    response = render(SecondFactorPage(recovery=tuple(codes)), session)
    delete_cookies(session.request, response, SESSION_COOKIE)
    return response


def _first(session: Session, problem: str | None = None, status: int = 200) -> Response:
    page = SecondFactorPage(
        problem=problem,
        enrolled=second_factor.enrolled(session.engine, session.person.id),
        required=session.context.options.require_second_factor and not session.person.scopes,
    )
    return render(page, session, status)
