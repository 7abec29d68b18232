"""What a person has chosen for the console, and the keys that decide."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal
from zoneinfo import available_timezones

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from modwatch.review.console.i18n import N_

#: What a key may do, its key unless the person chose another, and its name.
ACTIONS: Mapping[str, tuple[str, str]] = {
    "fine": ("n", N_("Not toxic")),
    "toxic": ("t", N_("Toxic")),
    "skip": ("s", N_("Skip")),
    "escalate": ("e", N_("Ask a lead")),
    "undo": ("u", N_("Undo")),
    "reveal": ("r", N_("Show or hide the text")),
    "note": ("m", N_("Write a note")),
    "help": ("?", N_("Help")),
}

#: Nobody leaves these out: who left out all else would know what is an audit, and a sample from
#: which people choose is none.
NEVER_LEFT_OUT = frozenset({"audit", "random_slice"})

_Key = Annotated[str, Field(min_length=1, max_length=1)]


class Preferences(BaseModel):
    """What a person has chosen; what they have not chosen has its default."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    language: Literal["en", "de"] | None = Field(None, description="Null: as the browser asks.")
    theme: Literal["auto", "light", "dark"] = "auto"
    masking: Literal["none", "blur"] = Field(
        "none", description="`blur`: a comment is shown when its reader asks."
    )
    shortcuts: bool = Field(True, description="Whether single characters decide.")
    keys: dict[str, _Key] = Field(
        default_factory=dict, description=f"Keys other than the usual, of {', '.join(ACTIONS)}."
    )
    ask: bool = Field(False, description="Whether the keys ask for a code or reason first.")
    budget: Annotated[int, Field(ge=1, le=10_000)] | None = Field(
        None, description="Toxic or revealed comments a day after which a stop is proposed."
    )
    break_minutes: Annotated[int, Field(ge=5, le=480)] | None = Field(
        None, description="Minutes of work after which a break is proposed."
    )
    opt_outs: Annotated[tuple[Annotated[str, Field(max_length=60)], ...], Field(max_length=20)] = (
        Field((), description="Reasons of comments that this person is not served.")
    )
    timezone: Annotated[str, Field(max_length=60)] = Field(
        "UTC", description="Where the person's day begins at midnight, as `Europe/Berlin`."
    )

    @field_validator("keys")
    @classmethod
    def _keys_fit(cls, keys: dict[str, str]) -> dict[str, str]:
        unknown = sorted(set(keys) - set(ACTIONS))
        if unknown:
            raise ValueError("there is an unknown action")
        taken: dict[str, str] = {}
        for action, key in _all_keys(keys).items():
            if key.isdigit() or not key.isprintable() or key.isspace():
                raise ValueError(f"the key of {action} must be a character, and no figure")
            if taken.setdefault(key, action) != action:
                raise ValueError(f"{taken[key]} and {action} have the same key; choose another")
        return keys

    @field_validator("timezone")
    @classmethod
    def _timezone_is_known(cls, timezone: str) -> str:
        if timezone not in available_timezones():
            raise ValueError("the time zone is unknown; write it as Europe/Berlin")
        return timezone

    @property
    def all_keys(self) -> dict[str, str]:
        """The key of every action, in lower case."""
        return _all_keys(self.keys)


def _all_keys(keys: Mapping[str, str]) -> dict[str, str]:
    return {action: keys.get(action, usual).lower() for action, (usual, _) in ACTIONS.items()}


def preferences_of(stored: Mapping[str, Any]) -> Preferences:
    """Return what a person has chosen; stored choices that cannot be any more do not count.

    >>> preferences_of({"theme": "dark", "masking": "of an older version"}).masking
    'none'
    """
    try:
        return Preferences.model_validate(dict(stored))
    except ValidationError:
        kept = Preferences()
        for name in stored.keys() & Preferences.model_fields.keys():
            try:
                kept = Preferences.model_validate(
                    kept.model_dump(exclude_unset=True) | {name: stored[name]}
                )
            except ValidationError:
                continue
        return kept
