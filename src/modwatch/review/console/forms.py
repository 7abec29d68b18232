"""Fields of the pages' forms, and messages about invalid ones."""

import secrets
from typing import Annotated, Literal

from fastapi import Form
from pydantic import ValidationError

from modwatch.common.errors import QueueError
from modwatch.review.queue import LONGEST_NOTE

FormText = Annotated[str, Form(max_length=400)]
FormKey = Annotated[str, Form(min_length=1, max_length=200)]
FormId = Annotated[int, Form(ge=1, le=2**63 - 1)]
OptionalId = Annotated[int | None, Form(ge=1, le=2**63 - 1)]
FormVersion = Annotated[int, Form(ge=1, le=2**31 - 1)]
FormLabel = Annotated[Literal["0", "1"], Form()]
FormCode = Annotated[str, Form(max_length=60)]
FormNote = Annotated[str, Form(max_length=LONGEST_NOTE)]


def new_key() -> str:
    """Return an idempotency key for a form, so that a double submit takes effect once."""
    return f"page-{secrets.token_urlsafe(16)}"


def problem_of(error: QueueError | ValidationError) -> str:
    """Return what is wrong with a form: names of invalid fields, never their content."""
    if isinstance(error, QueueError):
        return str(error)
    names = sorted({str((*each["loc"], "form")[0]) for each in error.errors()})
    return f"Invalid fields: {', '.join(names)}. Correct them and try again."
