"""JSON schemas that several endpoints share: errors, items, leases, decisions, activity."""

from datetime import date, datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from modwatch.review.queue import LONGEST_NOTE
from modwatch.review.queue.items import Lease
from modwatch.review.queue.metrics import QueueAges

#: Long enough for every token and key.
Token = Annotated[str, Field(min_length=1, max_length=200)]
Note = Annotated[str | None, Field(max_length=LONGEST_NOTE)]
Code = Annotated[str | None, Field(max_length=60, description="Of the policy; see `GET /policy`.")]


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
    429: "Too many attempts, with `Retry-After` in seconds; or too many items are held.",
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


class LeasesSchema(BaseModel):
    """Several leases, in the order to decide them."""

    leases: list[Lease]


class LeaseRequest(RequestSchema):
    """Which items to lease; without a body, the next item."""

    count: Annotated[int | None, Field(ge=1, le=3)] = Field(
        None, description="Maximum number of leases; if given, the response is a list."
    )
    escalated: bool = Field(False, description="Lease an escalated item; for leads.")


class LeaseTokenRequest(RequestSchema):
    """The token of a lease."""

    lease_token: Token


class ExpirySchema(BaseModel):
    """When a lease expires."""

    expires_at: datetime


class DecisionRequest(RequestSchema):
    """A label for a leased item, a skip or an escalation."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"lease_token": "…", "action": "label", "label": 1, "policy_code": "threat"},
                {"lease_token": "…", "action": "skip", "reason": "language"},
            ]
        }
    )

    lease_token: Token
    action: Literal["label", "skip", "escalate"] = "label"
    label: Literal[0, 1] | None = Field(
        None, description="1 toxic, 0 not toxic; only with the action `label`."
    )
    policy_code: Code = None
    reason: Annotated[
        str | None,
        Field(max_length=60, description="Why it is skipped or escalated; see `GET /policy`."),
    ] = None
    note: Note = None
    version: Annotated[
        int | None, Field(ge=1, le=2**31 - 1, description="As read; a changed item is a conflict.")
    ] = None
    seconds: Annotated[
        float | None,
        Field(
            ge=0,
            le=86_400,
            allow_inf_nan=False,
            description="Time spent on it; default: since the claim.",
        ),
    ] = None

    @model_validator(mode="after")
    def _label_fits_action(self) -> "DecisionRequest":
        if (self.action == "label") != (self.label is not None):
            raise ValueError("`label` is required with the action `label`, and invalid with others")
        if self.action != "label" and self.policy_code is not None:
            raise ValueError("`policy_code` is only valid with the action `label`")
        return self


class CorrectionRequest(RequestSchema):
    """A new label for a decided item."""

    label: Literal[0, 1]
    version: Annotated[int, Field(ge=1, le=2**31 - 1, description="Of the item as read.")]
    reason: Annotated[str, Field(min_length=1, max_length=60)]
    policy_code: Code = None
    note: Note = None


class DecisionSchema(RecordSchema):
    """A decision in the log."""

    id: int
    item_id: int
    dt: date
    comment_id: str
    action: str
    label: int | None
    policy_version: str | None
    policy_code: str | None
    reason: str | None
    seconds: float | None
    refers_to: int | None
    decided_at: datetime


class DayDecisionSchema(RecordSchema):
    """One of your decisions today."""

    id: int
    item_id: int
    action: str
    label: int | None
    policy_code: str | None
    reason: str | None
    seconds: float | None
    decided_at: datetime
    item_version: int = Field(description="Current version of the item; needed for a correction.")
    undone: bool
    undoable: bool = Field(description="Within the time limit, and the item has not changed since.")


class DaySchema(RecordSchema):
    """Your activity today."""

    date: date
    decided: int
    toxic: int
    skipped: int
    escalated: int
    per_hour: float | None = Field(
        description="Labels per hour since the first; null in the first ten minutes."
    )
    median_seconds: float | None
    decisions: tuple[DayDecisionSchema, ...] = Field(description="The last fifty, newest first.")


class CountsSchema(RecordSchema):
    """Number of items by state; each item has one."""

    waiting: int
    leased: int
    decided: int
    withdrawn: int


class QueueSchema(BaseModel):
    """Counts and ages of the queue."""

    counts: CountsSchema
    ages: QueueAges


class MeSchema(BaseModel):
    """The owner of the token or session."""

    pseudonym: str
    role: str
    scopes: list[str]
    csrf: str | None = Field(
        description="CSRF token of the pages' session; null for a bearer token."
    )


class HealthSchema(BaseModel):
    """Response of a probe."""

    status: Literal["ok"] = "ok"
