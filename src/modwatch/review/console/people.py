"""Users: accounts, tokens and sessions, and the audit log of accounts."""

import datetime as dt
from typing import Annotated

from fastapi import APIRouter, Depends, Form, Query, Response
from fastapi.responses import RedirectResponse

from modwatch.common.errors import ItemNotFoundError, QueueError
from modwatch.review import database
from modwatch.review.console.render import render
from modwatch.review.console.request_context import Session, form_session, page_session
from modwatch.review.console.schemas import FormText, OptionalId, RecordId
from modwatch.review.events import recent_events
from modwatch.review.people import access_tokens, accounts, changes, passwords, second_factor
from modwatch.review.people.accounts import ROLE_SCOPES
from modwatch.review.people.passwords import LONGEST_PASSWORD, SHORTEST_PASSWORD
from modwatch.review.people.pseudonyms import LONGEST_PSEUDONYM


def revoke_access(session: Session, person_id: int, token_id: int | None) -> None:
    """Revoke one token or session of a person, or without an id all their sessions.

    Raises `ItemNotFoundError` for a token of another person.
    """
    revoked = [
        token.id
        for token in access_tokens.tokens(session.engine, person_id)
        if token.id == token_id or (token_id is None and token.purpose == "session")
    ]
    if token_id is not None and not revoked:
        raise ItemNotFoundError(f"person {person_id} has no token {token_id}; see the list")
    for each in revoked:
        access_tokens.revoke_token_by_id(session.engine, each, actor_id=session.person.id)


pages = APIRouter(include_in_schema=False)
AdminSession = Annotated[Session, Depends(page_session("admin"))]
AdminForm = Annotated[Session, Depends(form_session("admin"))]
_EVENTS_PER_PAGE = 100


@pages.get("/admin")
def show_people(session: AdminSession) -> Response:
    """Return all accounts."""
    return _people(session)


@pages.post("/admin/people")
def add(session: AdminForm, pseudonym: FormText, role: FormText) -> Response:
    """Create an account, and show it."""
    try:
        made = accounts.create_moderator(
            session.engine, pseudonym, role, actor_id=session.person.id
        )
    except QueueError as exc:
        return _people(session, str(exc))
    return RedirectResponse(f"./people/{made.id}", 303)


@pages.get("/admin/people/{person_id}")
def show_person(person_id: RecordId, session: AdminSession) -> Response:
    """Return one account, its tokens and its events."""
    return _person(session, person_id)


@pages.post("/admin/people/{person_id}")
def change(
    person_id: RecordId,
    session: AdminForm,
    role: FormText = "",
    queues: Annotated[str | None, Form(max_length=20_000)] = None,
    disabled: FormText = "",
    password: Annotated[str, Form(max_length=LONGEST_PASSWORD)] = "",
    lost_device: Annotated[str, Form(alias="second_factor", max_length=100)] = "",
) -> Response:
    """Change the role, queues, password, second factor or access, whichever the form names.

    Not one's own role or access: an admin must remain. Without a queue, the person works all.
    """
    engine, actor = session.engine, session.person
    by = {"actor_id": actor.id}
    if actor.id == person_id and (disabled == "yes" or role not in ("", actor.role)):
        problem = "you cannot disable yourself or change your own role; ask another admin"
        return _person(session, person_id, problem=problem)
    try:
        if role:
            changes.change_role(engine, person_id, role, **by)
        if queues is not None:
            names = [*filter(None, map(str.strip, queues.splitlines()))]
            lanes = session.context.options.lanes
            changes.set_queues(engine, person_id, names or None, lanes=lanes, **by)
        if password:
            passwords.set_password(engine, person_id, password, **by)
        if lost_device:
            second_factor.reset(engine, person_id, **by)
        if disabled:
            (changes.disable if disabled == "yes" else changes.enable)(engine, person_id, **by)
    except QueueError as exc:
        return _person(session, person_id, problem=str(exc))
    return RedirectResponse(f"./{person_id}?notice=saved", 303)


@pages.post("/admin/people/{person_id}/tokens")
def issue_token(
    person_id: RecordId,
    session: AdminForm,
    name: FormText = "",
    days: Annotated[int | None, Form(ge=1, le=3_650)] = None,
    scopes: Annotated[list[str] | None, Form(max_length=20)] = None,
) -> Response:
    """Issue a token, and show it."""
    try:
        token = access_tokens.issue_token(
            session.engine,
            person_id,
            lifetime=None if days is None else dt.timedelta(days=days),
            name=name.strip() or None,
            scopes=scopes or None,
            actor_id=session.person.id,
        )
    except QueueError as exc:
        return _person(session, person_id, problem=str(exc))
    return _person(session, person_id, new_token=token)


@pages.post("/admin/people/{person_id}/revoke")
def revoke_of_person(
    person_id: RecordId, session: AdminForm, token_id: OptionalId = None
) -> Response:
    """Revoke one token or session of a person, or without an id all their sessions."""
    revoke_access(session, person_id, token_id)
    return RedirectResponse(f"../{person_id}?notice=revoked", 303)


@pages.get("/admin/events")
def show_events(
    session: AdminSession,
    before: Annotated[int | None, Query(ge=1, le=2**63 - 1)] = None,
) -> Response:
    """Return changes of accounts and exports, newest first."""
    events = recent_events(session.engine, before=before, limit=_EVENTS_PER_PAGE)
    more = len(events) == _EVENTS_PER_PAGE
    return render(session, "audit_log.html", events=events, before=events[-1].id if more else None)


def _people(session: Session, problem: str | None = None) -> Response:
    return render(
        session,
        "people.html",
        problem=problem,
        people=accounts.people(session.engine),
        roles=tuple(ROLE_SCOPES),
        longest=LONGEST_PSEUDONYM,
    )


def _person(
    session: Session, person_id: int, *, problem: str | None = None, new_token: str | None = None
) -> Response:
    found = [one for one in accounts.people(session.engine) if one.id == person_id]
    if not found:
        raise ItemNotFoundError(f"person {person_id} does not exist; see the list of people")
    account = found[0]
    return render(
        session,
        "person.html",
        201 if new_token else None,
        person=account,
        problem=problem,
        new_token=new_token,
        tokens=access_tokens.tokens(session.engine, person_id),
        now=database.now(session.engine),
        events=recent_events(session.engine, subject_id=person_id, limit=50),
        scopes=tuple(sorted(ROLE_SCOPES[account.role])),
        second_factor=second_factor.enrolled(session.engine, person_id),
        own=session.person.id == person_id,
        roles=tuple(ROLE_SCOPES),
        shortest_password=SHORTEST_PASSWORD,
        longest_password=LONGEST_PASSWORD,
    )
