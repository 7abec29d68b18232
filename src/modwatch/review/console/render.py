"""How a page is made: a frozen record of what it shows, its template, and what surrounds it.

    @dataclass(frozen=True, kw_only=True)
    class LeadPage(Page):
        template: ClassVar[str] = "lead.html"
        ...
    return render(LeadPage(...), request, visit)

Templates extend `base.html`, say `page.…` for the record and `shell.…` for what surrounds it, and
write every address relative to `shell.root`, so that the console also works below a path.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import ClassVar

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette._utils import get_route_path

from modwatch.review.console.choices import Preferences, preferences_of
from modwatch.review.console.desk import CSRF_HEADER, SESSION, Visit, desk_of, set_cookie
from modwatch.review.console.i18n import N_, Locale, install, negotiate
from modwatch.review.console.legible import excerpt, folded, legible
from modwatch.review.people import Moderator, rotate_session

#: Address, name, and the scopes of which one leads there; none: everybody.
NAVIGATION: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("", N_("Review"), ("review",)),
    ("day", N_("My day"), ("review",)),
    ("lead", N_("Queues"), ("lead",)),
    ("search", N_("Search"), ("decisions:read",)),
    ("records", N_("Records"), ("decisions:read",)),
    ("deliveries", N_("Deliveries"), ("deliveries",)),
    ("admin", N_("Admin"), ("admin",)),
    ("preferences", N_("Preferences"), ()),
)


class Page:
    """The record of one page; a subclass names its template and holds what it shows."""

    template: ClassVar[str]


@dataclass(frozen=True, kw_only=True)
class ErrorPage(Page):
    """`error.html`."""

    template: ClassVar[str] = "error.html"

    status: int
    code: str
    message: str


@dataclass(frozen=True, kw_only=True)
class OnwardPage(Page):
    """`onward.html`: asks for the same address once more, as a page of this site."""

    template: ClassVar[str] = "onward.html"

    #: Empty: the same.
    to: str = ""


@dataclass(frozen=True, kw_only=True)
class Shell:
    """What surrounds every page."""

    #: The way from this page to the first one, as `../`; every address begins with it.
    root: str
    #: Which entry of `navigation` this page is.
    here: str
    locale: Locale
    chosen: Preferences
    #: None: nobody has come in.
    person: Moderator | None
    #: Of the person's session, for the hidden field `csrf`; empty without one.
    csrf: str
    #: Address and name of every page that the person may open.
    navigation: tuple[tuple[str, str], ...]


def render(
    page: Page,
    request: Request,
    visit: Visit | None = None,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
) -> HTMLResponse:
    """Return `page` as HTML in the reader's language; whatever it shows is escaped.

    A session that has been in use for a while is replaced on the way.
    """
    renewed = None if visit is None else _renewed(request, visit)
    if visit is not None and renewed is not None:
        visit = replace(visit, session=renewed)
    shell = shell_of(request, visit)
    content = _environment(shell.locale).get_template(page.template).render(page=page, shell=shell)
    response = HTMLResponse(content, status, headers)
    response.headers["Vary"] = "Accept-Language, Cookie"
    if renewed is not None:
        set_cookie(request, response, SESSION, renewed)
    if visit is not None:
        response.headers[CSRF_HEADER] = visit.csrf
    return response


def _renewed(request: Request, visit: Visit) -> str | None:
    desk = desk_of(request)
    length, after = desk.options.session_length, desk.options.rotate_after
    return rotate_session(desk.engine, visit.session, length, after)


def shell_of(request: Request, visit: Visit | None = None) -> Shell:
    """Return what surrounds a page at the address of `request`."""
    person = visit.person if visit else None
    chosen = preferences_of(person.preferences if person else {})
    path = get_route_path(request.scope).strip("/")
    return Shell(
        root="../" * path.count("/") or "./",
        here=path.partition("/")[0],
        locale=negotiate(request.headers.get("accept-language"), chosen.language),
        chosen=chosen,
        person=person,
        csrf=visit.csrf if visit else "",
        navigation=tuple(
            (address, name)
            for address, name, scopes in NAVIGATION
            if person and (not scopes or any(person.may(scope) for scope in scopes))
        ),
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
    environment.filters.update(legible=legible, folded=folded, excerpt=excerpt)
    return environment
