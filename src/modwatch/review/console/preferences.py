"""A person's preferences for the console, and the keyboard shortcuts."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal
from zoneinfo import available_timezones

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from modwatch.review.console.i18n import N_

#: Action: default key and name.
ACTIONS: Mapping[str, tuple[str, str]] = {
    "fine": ("n", N_("Not toxic")),
    "toxic": ("t", N_("Toxic")),
    "skip": ("s", N_("Skip")),
    "escalate": ("e", N_("Escalate")),
    "undo": ("u", N_("Undo")),
    "reveal": ("r", N_("Show or hide text")),
    "note": ("m", N_("Add a note")),
    "help": ("?", N_("Help")),
}

#: Reasons that no one can opt out of: opting out would unblind audits and bias random samples.
MANDATORY_REASONS = frozenset({"audit", "random_slice"})

_Key = Annotated[str, Field(min_length=1, max_length=1)]


class Preferences(BaseModel):
    """A person's choices, or defaults."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    language: Literal["en", "de"] | None = Field(None, description="Null: the browser's language.")
    theme: Literal["auto", "light", "dark"] = "auto"
    masking: Literal["none", "blur"] = Field(
        "none", description="`blur`: comments stay blurred until revealed."
    )
    shortcuts: bool = Field(True, description="Whether single-key shortcuts are on.")
    keys: dict[str, _Key] = Field(
        default_factory=dict,
        description=f"Keys that differ from the defaults, of {', '.join(ACTIONS)}.",
    )
    ask: bool = Field(False, description="Whether shortcuts ask for a code or reason first.")
    budget: Annotated[int, Field(ge=1, le=10_000)] | None = Field(
        None, description="Toxic or revealed comments per day after which to suggest stopping."
    )
    break_minutes: Annotated[int, Field(ge=5, le=480)] | None = Field(
        None, description="Minutes of work after which to suggest a break."
    )
    opt_outs: Annotated[tuple[Annotated[str, Field(max_length=60)], ...], Field(max_length=20)] = (
        Field((), description="Reasons of comments that this person does not get.")
    )
    timezone: Annotated[str, Field(max_length=60)] = Field(
        "UTC",
        description="IANA name, for example `Europe/Berlin`; the day starts at midnight there.",
    )

    @field_validator("keys")
    @classmethod
    def _keys_fit(cls, keys: dict[str, str]) -> dict[str, str]:
        if set(keys) - set(ACTIONS):
            raise ValueError(f"unknown action; choose from {', '.join(ACTIONS)}")
        taken: dict[str, str] = {}
        for action, key in _all_keys(keys).items():
            if key.isdigit() or not key.isprintable() or key.isspace():
                raise ValueError(
                    f"the key of {action} must be a visible character other than a digit"
                )
            if taken.setdefault(key, action) != action:
                raise ValueError(
                    f"{taken[key]} and {action} have the same key; choose different ones"
                )
        return keys

    @field_validator("timezone")
    @classmethod
    def _timezone_is_known(cls, timezone: str) -> str:
        if timezone not in available_timezones():
            raise ValueError("unknown time zone; use an IANA name such as Europe/Berlin")
        return timezone

    @property
    def all_keys(self) -> dict[str, str]:
        """The key of every action, in lower case."""
        return _all_keys(self.keys)


def _all_keys(keys: Mapping[str, str]) -> dict[str, str]:
    return {action: keys.get(action, default).lower() for action, (default, _) in ACTIONS.items()}


def preferences_of(stored: Mapping[str, Any]) -> Preferences:
    """Return the stored preferences; invalid ones get their default.

    >>> preferences_of({"theme": "dark", "masking": "no longer valid"}).masking
    'none'
    """
    try:
        return Preferences.model_validate(dict(stored))
    except ValidationError as exc:
        invalid = {problem["loc"][0] for problem in exc.errors()}
        return preferences_of({name: stored[name] for name in stored.keys() - invalid})
