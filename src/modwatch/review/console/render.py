"""The pages, each with a frozen record of what it shows."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from modwatch.review.items import Lease
from modwatch.review.people import Moderator
from modwatch.review.queue_health import QueueCounts


@dataclass(frozen=True, kw_only=True)
class LoginPage:
    """`login.html`."""

    #: Hidden in the form; proves that the form is ours.
    csrf: str
    #: A sentence above the form, if any.
    notice: str | None


@dataclass(frozen=True, kw_only=True)
class ReviewPage:
    """`review.html`."""

    csrf: str
    notice: str | None
    person: Moderator
    counts: QueueCounts
    #: None when nothing waits for this person.
    lease: Lease | None


@dataclass(frozen=True, kw_only=True)
class ErrorPage:
    """`error.html`."""

    status: int
    code: str
    message: str


Page = LoginPage | ReviewPage | ErrorPage

_TEMPLATES = {LoginPage: "login.html", ReviewPage: "review.html", ErrorPage: "error.html"}


def render(page: Page, status: int = 200, headers: Mapping[str, str] | None = None) -> HTMLResponse:
    """Return `page` as HTML; whatever it shows is escaped."""
    template = _environment().get_template(_TEMPLATES[type(page)])
    return HTMLResponse(template.render(page=page), status, headers)


@cache
def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
