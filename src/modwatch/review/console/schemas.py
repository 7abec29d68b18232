"""Types that several endpoints share: fields of requests and forms, and error responses."""

import secrets
from typing import Annotated, Any, Literal

from fastapi import Depends, Form, Header, Path, Request
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from modwatch.common.errors import QueueError
from modwatch.review.queue.deciding import LONGEST_NOTE

#: Long enough for every token and key.
Token = Annotated[str, Field(min_length=1, max_length=200)]
Note = Annotated[str | None, Field(max_length=LONGEST_NOTE)]
Code = Annotated[str | None, Field(max_length=60, description="Of the policy.")]


class ErrorContent(BaseModel):
    """Code and message of an error."""

    code: str = Field(
        description="Stable, for programs: `lease_conflict`, `item_not_found`, …",
        examples=["lease_conflict"],
    )
    message: str = Field(
        description="One sentence for people: what is wrong, and what to do.",
        examples=["the lease of item 7 is not yours, has run out or was used; lease the next one"],
    )


class ErrorSchema(BaseModel):
    """The body of every error response."""

    error: ErrorContent


_MEANINGS = {
    400: "The body cannot be read.",
    401: "The token or session is missing, invalid or expired.",
    403: "The person or token lacks the required scope.",
    404: "Not found, or withdrawn.",
    409: "Changed since it was read, or held by another person.",
    413: "The body is too large.",
    422: "Invalid request; the message names the field, not its content.",
    429: "Too many attempts, with `Retry-After` in seconds; or too many items are held, or were "
    "skipped, escalated or undone in an hour.",
    503: "The database is unavailable; `Retry-After` is the number of seconds to wait.",
}


def error_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the OpenAPI documentation of these error statuses.

    An endpoint with a body (413) may also get one that it cannot read (400).
    """
    if 413 in statuses:
        statuses = (400, *statuses)
    return {status: {"model": ErrorSchema, "description": _MEANINGS[status]} for status in statuses}


class RecordSchema(BaseModel):
    """A response built from the attributes of a record."""

    model_config = ConfigDict(from_attributes=True)


class RequestSchema(BaseModel):
    """A request body; unknown fields are invalid."""

    model_config = ConfigDict(extra="forbid")


RecordId = Annotated[int, Path(ge=1, le=2**63 - 1)]

IdempotencyKey = Annotated[
    str,
    Header(
        min_length=1,
        max_length=200,
        description="Any string, new for each decision; send the same one on a retry.",
        examples=["3f1c9a52-next"],
    ),
]

FormText = Annotated[str, Form(max_length=400)]
FormKey = Annotated[str, Form(min_length=1, max_length=200)]
FormId = Annotated[int, Form(ge=1, le=2**63 - 1)]
OptionalId = Annotated[int | None, Form(ge=1, le=2**63 - 1)]
FormVersion = Annotated[int, Form(ge=1, le=2**31 - 1)]
FormLabel = Annotated[Literal[0, 1], BeforeValidator(int), Form()]
FormCode = Annotated[str, Form(max_length=60)]
FormNote = Annotated[str, Form(max_length=LONGEST_NOTE)]


async def _fields(request: Request) -> dict[str, str]:
    sent = await request.form()
    return {name: value for name, value in sent.items() if isinstance(value, str)}


#: All texts of a form, by name; for forms whose fields a schema validates.
FormFields = Annotated[dict[str, str], Depends(_fields)]


def new_key() -> str:
    """Return an idempotency key for a form, so that a double submit takes effect once."""
    return f"page-{secrets.token_urlsafe(16)}"


def problem_of(error: QueueError | ValidationError) -> str:
    """Return what is wrong with a form: names of invalid fields, never their content."""
    if isinstance(error, QueueError):
        return str(error)
    names = sorted({str((*problem["loc"], "form")[0]) for problem in error.errors()})
    return f"Invalid fields: {', '.join(names)}. Correct them and try again."
