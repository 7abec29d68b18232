"""The JSON that the API takes and gives."""

from datetime import date, datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from modwatch.review.queue import LONGEST_NOTE


class ErrorContent(BaseModel):
    """What went wrong."""

    code: str = Field(description="Stable, for programs: `lease_conflict`, `item_not_found`, …")
    message: str = Field(description="One sentence, for people; it ends with what to do.")


class ErrorShape(BaseModel):
    """The one shape of every error."""

    error: ErrorContent


class _FromRecord(BaseModel):
    model_config = ConfigDict(from_attributes=True)


class ItemShape(_FromRecord):
    """One item: no score, no reason and no kind, which would sway the label."""

    id: int
    dt: date
    comment_id: str
    text: str
    parent_text: str | None
    language: str | None
    platform: str | None
    version: int


class LeaseShape(_FromRecord):
    """The right to decide one item until `expires_at`."""

    item: ItemShape
    token: str
    claimed_at: datetime
    expires_at: datetime


class DecisionRequest(BaseModel):
    """A label for a leased item, or a skip."""

    model_config = ConfigDict(extra="forbid")

    lease_token: Annotated[str, Field(min_length=1, max_length=200)]
    action: Literal["label", "skip"] = "label"
    label: Literal[0, 1] | None = Field(None, description="1 toxic, 0 not; only with `label`.")
    policy_code: Annotated[str | None, Field(max_length=200)] = None
    note: Annotated[str | None, Field(max_length=LONGEST_NOTE)] = None
    seconds: Annotated[
        float | None, Field(ge=0, allow_inf_nan=False, description="Default: since the claim.")
    ] = None

    @model_validator(mode="after")
    def _label_fits_action(self) -> "DecisionRequest":
        if (self.action == "label") != (self.label is not None):
            raise ValueError("a label comes with the action `label`, and only with it")
        return self


class DecisionShape(_FromRecord):
    """A decision as it stands in the log."""

    id: int
    item_id: int
    dt: date
    comment_id: str
    action: str
    label: int | None
    seconds: float | None
    decided_at: datetime


class CountsShape(_FromRecord):
    """How many items stand where; each is in one place."""

    waiting: int
    leased: int
    decided: int
    withdrawn: int


class AgesShape(_FromRecord):
    """How long undecided items have been in the queue."""

    items: int
    median_seconds: float | None
    oldest_seconds: float | None


class QueueShape(BaseModel):
    """The state of the queue."""

    counts: CountsShape
    ages: AgesShape


class HealthShape(BaseModel):
    """The answer of a probe."""

    status: Literal["ok"] = "ok"
