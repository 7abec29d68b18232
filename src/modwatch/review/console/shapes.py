"""The JSON that the API takes and gives."""

from datetime import date, datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from modwatch.review.queue import LONGEST_NOTE

#: What decides: long enough for every token and key, short enough to refuse nonsense early.
Token = Annotated[str, Field(min_length=1, max_length=200)]
Note = Annotated[str | None, Field(max_length=LONGEST_NOTE)]
Code = Annotated[str | None, Field(max_length=60, description="Of the policy; see `GET /policy`.")]


class ErrorContent(BaseModel):
    """What went wrong."""

    code: str = Field(
        description="Stable, for programs: `lease_conflict`, `item_not_found`, …",
        examples=["lease_conflict"],
    )
    message: str = Field(
        description="One sentence, for people; it ends with what to do.",
        examples=["the lease of item 7 is not yours, has run out or was used; lease the next one"],
    )


class ErrorShape(BaseModel):
    """The one shape of every error."""

    error: ErrorContent


_MEANINGS = {
    400: "The body cannot be read.",
    401: "No token or session came, or it is over.",
    403: "This person, or this token, may not.",
    404: "There is no such thing, or it was withdrawn.",
    409: "It has changed since it was read, or is another person's.",
    413: "The body is too large.",
    422: "The request says what cannot be; the message names the field, not its content.",
    429: "Too many attempts; `Retry-After` says how many seconds to wait.",
    503: "The database cannot be reached; `Retry-After` says when to try again.",
}


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return how an endpoint documents that it may refuse with these statuses.

    Whatever takes a body (413) may also find it unreadable (400).
    """
    if 413 in statuses:
        statuses = (400, *statuses)
    return {status: {"model": ErrorShape, "description": _MEANINGS[status]} for status in statuses}


class FromRecord(BaseModel):
    """A shape that is filled from a record of the queue."""

    model_config = ConfigDict(from_attributes=True)


class Asked(BaseModel):
    """A request; a field that it does not know is refused."""

    model_config = ConfigDict(extra="forbid")


class ItemShape(FromRecord):
    """One item: no score, no reason and no kind, which would sway the label."""

    id: int
    dt: date
    comment_id: str
    text: str
    parent_text: str | None
    language: str | None
    platform: str | None
    version: int


class OpinionShape(FromRecord):
    """What somebody said of an item before a lead is to settle it."""

    pseudonym: str
    action: str
    label: int | None
    policy_code: str | None
    reason: str | None
    note: str | None


class LeaseShape(FromRecord):
    """The right to decide one item until `expires_at`."""

    item: ItemShape
    token: str = Field(description="Needed to decide, extend and release; shown this once.")
    claimed_at: datetime
    expires_at: datetime
    opinions: tuple[OpinionShape, ...] = Field(
        (), description="Of an escalated item, what others said; otherwise empty."
    )


class LeasesShape(BaseModel):
    """Several leases, the first to be decided first."""

    leases: list[LeaseShape]


class LeaseRequest(Asked):
    """What to lease; without a body, the next item."""

    count: Annotated[int | None, Field(ge=1, le=3)] = Field(
        None, description="Given, the answer is a list of at most so many leases."
    )
    escalated: bool = Field(False, description="Items that a lead is to settle; for leads.")


class LeaseTokenRequest(Asked):
    """Proof that the lease is one's own."""

    lease_token: Token


class ExpiryShape(BaseModel):
    """Until when a lease holds now."""

    expires_at: datetime


class DecisionRequest(Asked):
    """A label for a leased item, a skip, or a question to a lead."""

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
    label: Literal[0, 1] | None = Field(None, description="1 toxic, 0 not; only with `label`.")
    policy_code: Code = None
    reason: Annotated[
        str | None, Field(max_length=60, description="Why it is skipped or escalated.")
    ] = None
    note: Note = None
    version: Annotated[
        int | None, Field(ge=1, le=2**31 - 1, description="That was read; refused when changed.")
    ] = None
    seconds: Annotated[
        float | None,
        Field(
            ge=0,
            le=86_400,
            allow_inf_nan=False,
            description="How long the person looked at it; default: since the claim.",
        ),
    ] = None

    @model_validator(mode="after")
    def _label_fits_action(self) -> "DecisionRequest":
        if (self.action == "label") != (self.label is not None):
            raise ValueError("a label comes with the action `label`, and only with it")
        if self.action != "label" and self.policy_code is not None:
            raise ValueError("a policy code comes with the action `label`, and only with it")
        return self


class CorrectionRequest(Asked):
    """Another label for a decided item."""

    label: Literal[0, 1]
    version: Annotated[int, Field(ge=1, le=2**31 - 1, description="Of the item as it was read.")]
    reason: Annotated[str, Field(min_length=1, max_length=60)]
    policy_code: Code = None
    note: Note = None


class DecisionShape(FromRecord):
    """A decision as it stands in the log."""

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


class DayDecisionShape(FromRecord):
    """One decision of one's own day."""

    id: int
    item_id: int
    action: str
    label: int | None
    policy_code: str | None
    reason: str | None
    seconds: float | None
    decided_at: datetime
    item_version: int = Field(description="Of the item now; a correction names it.")
    undone: bool
    undoable: bool = Field(description="Nobody has gone on with the item, and it is not too late.")


class DayShape(FromRecord):
    """One's own day."""

    date: date
    decided: int
    toxic: int
    skipped: int
    escalated: int
    per_hour: float | None = Field(description="Labels an hour of work; null before ten minutes.")
    median_seconds: float | None
    decisions: tuple[DayDecisionShape, ...] = Field(description="The last fifty, newest first.")


class CountsShape(FromRecord):
    """How many items stand where; each is in one place."""

    waiting: int
    leased: int
    decided: int
    withdrawn: int


class AgesShape(FromRecord):
    """How long undecided items have been in the queue."""

    items: int
    median_seconds: float | None
    oldest_seconds: float | None


class QueueShape(BaseModel):
    """The state of the queue."""

    counts: CountsShape
    ages: AgesShape


class MeShape(BaseModel):
    """Who asks."""

    pseudonym: str
    role: str
    scopes: list[str]
    csrf: str | None = Field(description="For the header of the page's session; null for a token.")


class HealthShape(BaseModel):
    """The answer of a probe."""

    status: Literal["ok"] = "ok"
