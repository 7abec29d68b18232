"""Pages as HTML: the shell around each, its navigation, display names and notices."""

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette._utils import get_route_path

from modwatch.review.console.i18n import N_, Locale, install, negotiate
from modwatch.review.console.preferences import Preferences
from modwatch.review.console.request_context import CSRF_HEADER, SESSION_COOKIE, Session, set_cookie
from modwatch.review.console.text_rendering import excerpt, fold, mark_invisible
from modwatch.review.people.accounts import ACCOUNT, Moderator
from modwatch.review.people.sessions import rotate_session
from modwatch.review.queue.items import own_facts
from modwatch.statistics.collaboration.review_strategies import all_review_scores

#: Path, name, and scopes: a person needs one of them.
NAVIGATION: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("", N_("Review"), ("review",)),
    ("day", N_("My activity"), ("review",)),
    ("lead", N_("Queues"), ("lead",)),
    ("search", N_("Search"), ("decisions:read",)),
    ("records", N_("Decision log"), ("decisions:read",)),
    ("deliveries", N_("Webhook deliveries"), ("deliveries",)),
    ("admin", N_("Users"), ("admin",)),
    ("preferences", N_("Settings"), (ACCOUNT,)),
)


@dataclass(frozen=True, kw_only=True)
class Shell:
    """What surrounds every page."""

    #: Relative path from this page to the first one, such as `../`.
    root: str
    #: First part of this page's path; marks the entry of `navigation`.
    here: str
    locale: Locale
    chosen: Preferences
    #: None: no one is signed in.
    person: Moderator | None
    #: CSRF token for the hidden field `csrf`; empty without a session.
    csrf: str
    #: Path and name of every page that the person may open.
    navigation: tuple[tuple[str, str], ...]
    #: Message after a redirect, if any.
    notice: str | None
    #: The model that scores, where its origin must be known; else empty.
    model: str


def render(
    session: Session, template: str, status: int | None = None, /, **content: Any
) -> HTMLResponse:
    """Return the page of a template for a signed-in person, in their language.

    Without a `status`, it is 422 for a page with a `problem`. Rotates the token of a session that
    has been in use for a while.
    """
    status = status or (422 if content.get("problem") else 200)
    request, rotated = session.request, rotate_session(session.engine, session.token)
    if rotated is not None:
        session = replace(session, token=rotated)
    response = _response(request, session, template, content, status)
    if rotated is not None:
        set_cookie(request, response, SESSION_COOKIE, rotated)
    response.headers[CSRF_HEADER] = session.csrf
    return response


def render_public(
    request: Request, template: str, status: int = 200, /, **content: Any
) -> HTMLResponse:
    """Return the page of a template for anybody, in the browser's language."""
    return _response(request, None, template, content, status)


def _response(
    request: Request,
    session: Session | None,
    template: str,
    content: Mapping[str, Any],
    status: int,
) -> HTMLResponse:
    """Return the template filled with `content`, all of it escaped."""
    shell = _shell(request, session)
    page = SimpleNamespace(**content)
    text = _environment(shell.locale).get_template(template).render(page=page, shell=shell)
    return HTMLResponse(text, status, {"Vary": "Accept-Language, Cookie"})


def _shell(request: Request, session: Session | None) -> Shell:
    person = session.person if session else None
    path = get_route_path(request.scope).strip("/")
    here = path.partition("/")[0]
    model = request.app.state.model() if session else ""
    return Shell(
        root="../" * path.count("/") or "./",
        here=here,
        locale=session.locale if session else negotiate(request.headers.get("accept-language")),
        chosen=session.preferences if session else Preferences(),
        person=person,
        csrf=session.csrf if session else "",
        navigation=tuple(
            (address, name)
            for address, name, scopes in NAVIGATION
            if person and any(person.may(scope) for scope in scopes)
        ),
        notice=NOTICES.get(here, {}).get(request.query_params.get("notice", "")),
        model=model if "(" in model else "",
    )


@cache
def _environment(locale: Locale) -> Environment:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    install(environment, locale)
    environment.filters.update(
        mark_invisible=mark_invisible, fold=fold, excerpt=excerpt, own_facts=own_facts
    )
    environment.globals.update(display_names=DISPLAY_NAMES, timedelta=dt.timedelta)
    return environment


#: Names of statuses, reasons, actions and roles; a value without a name is shown unchanged.
DISPLAY_NAMES: Mapping[str, str] = {
    # Statuses.
    "waiting": N_("waiting"),
    "blocked": N_("blocked"),
    "escalated": N_("escalated"),
    "decided": N_("decided"),
    "withdrawn": N_("withdrawn"),
    "closed": N_("dismissed"),
    # Why an item was sent.
    **{name: score.reason for name, score in all_review_scores().items()},
    "random_slice": N_("random sample"),
    "retest": N_("retest"),
    "gold": N_("gold comment"),
    "audit": N_("audit"),
    "confirmation": N_("confirmation"),
    "imported": N_("imported"),
    "review": N_("review"),
    # Events of an item.
    "queued": N_("queued"),
    "label": N_("labelled"),
    "adjudicate": N_("resolved by a lead"),
    "correct": N_("corrected"),
    "skip": N_("skipped"),
    "escalate": N_("escalated"),
    "undo": N_("undone"),
    "close": N_("dismissed"),
    "reopen": N_("restored"),
    # States of a bulk dismissal.
    "closing": N_("in progress"),
    "bringing back": N_("being restored"),
    "brought back": N_("restored"),
    # Roles.
    "moderator": N_("moderator"),
    "lead": N_("lead"),
    "auditor": N_("auditor"),
    "ops": N_("ops"),
    "admin": N_("admin"),
}

#: Messages after a redirect, by the first part of the page's path and `?notice=`.
NOTICES: Mapping[str, Mapping[str, str]] = {
    "": {
        "conflict": N_(
            "That comment is no longer assigned to you: the time limit expired, or it was "
            "withdrawn or already decided. Nothing was lost; here is the next one."
        ),
        "undone": N_("Undone. Decide again."),
        "late": N_("This can no longer be undone. Correct it in My activity instead."),
    },
    "day": {
        "corrected": N_("Corrected. The log keeps both decisions."),
        "conflict": N_(
            "The comment has changed since, so your correction was not saved. Ask a lead."
        ),
        "refused": N_("This label cannot be corrected here. Ask a lead."),
    },
    "items": {"corrected": N_("Corrected. The log keeps both decisions.")},
    "lead": {
        "released": N_("Released. The comment is back in the queue."),
        "settled": N_("Resolved."),
        "gone": N_(
            "That comment is not available: someone else has it, or it is already resolved."
        ),
        "back": N_("Released without a decision."),
    },
    "deliveries": {"resent": N_("Queued for delivery.")},
    "admin": {"saved": N_("Saved."), "revoked": N_("Access revoked.")},
    "preferences": {
        "saved": N_("Saved."),
        "revoked": N_("Access revoked."),
        "described": N_("Saved. Thank you."),
        "wrong": N_("The current password is incorrect. Try again, or ask an admin."),
        "throttled": N_("Too many attempts. Wait 15 minutes, then try again."),
        "unusable": N_("A password must have at least 12 characters. Choose a longer one."),
        # Why a new password is easy to guess.
        "own_name": N_(
            "That password contains your pseudonym. Use four or more unrelated words, or a "
            "password manager."
        ),
        "common": N_(
            "That password is, or resembles, one that many people use. Use four or more unrelated "
            "words, or a password manager."
        ),
        "repeats": N_(
            "That password repeats characters or words. Use four or more unrelated words, or a "
            "password manager."
        ),
        "sequence": N_(
            "That password follows the alphabet or the keyboard. Use four or more unrelated words, "
            "or a password manager."
        ),
        "predictable": N_(
            "That password is easy to guess. Use four or more unrelated words, or a password "
            "manager."
        ),
    },
    "login": {
        "ended": N_("Your session has expired. Sign in again to continue."),
        "changed": N_("Your password was changed. Sign in with the new one."),
        "provider": N_("Sign-in with your organisation failed. Try again, or ask an admin."),
    },
}
