"""What the queue promises for each reason: hours, turns, and how many people label an item."""

import math
import random
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from modwatch.errors import SettingsError
from modwatch.review.queue.items import NewItem

#: The queue of everything that is not told apart.
GENERAL = "general"


class Lane(BaseModel):
    """What is promised for one reason."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    #: From queued to decided.
    hours: Annotated[float, Field(gt=0, le=24 * 365)] = 24.0
    #: Weight among the reasons when the next item is drawn; 0 is served when nothing else waits.
    turns: Annotated[float, Field(ge=0, le=1_000)] = 1.0
    #: Name of a queue of their own, for people who are assigned to it; unset: as `queue_by` says.
    queue: Annotated[str, Field(pattern="^[a-z0-9][a-z0-9_-]{0,49}$")] | None = None


class LowConfidence(BaseModel):
    """Which items several people label."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    uncertainty_from: Annotated[float, Field(ge=0)] = 0.26
    labels: Annotated[int, Field(ge=1, le=9)] = 2


class Lanes(BaseModel):
    """The order of service of the whole queue.

    >>> lanes = load_lanes()
    >>> lanes.of("random_slice").hours
    48.0
    >>> lanes.of("a reason of tomorrow") == Lane()
    True
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    queue_by: Literal["none", "language", "platform"] = "none"
    #: In [0, 1]: how far the first of a day is drawn ahead of the last, as a share of its hours.
    rank_pull: Annotated[float, Field(ge=0, le=1)] = 0.5
    reason: dict[str, Lane] = Field(default_factory=dict)
    low_confidence: LowConfidence = LowConfidence()

    def of(self, reason: str) -> Lane:
        """Return the lane of `reason`; one that no rule names has the defaults."""
        return self.reason.get(reason, Lane())

    def order(self, chance: random.Random) -> list[str]:
        """Return the reasons in the order of this turn, drawn by their weights.

        The first is served if it has an item, else the next; those without turns come last.
        """
        # The smallest of exponential times is at each with the chance of its weight.
        times = {
            name: chance.expovariate(lane.turns) if lane.turns else math.inf
            for name, lane in self.reason.items()
        }
        return sorted(times, key=times.__getitem__)


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where one item goes."""

    queue: str
    promised: timedelta
    labels_wanted: int


def place(item: NewItem, lanes: Lanes) -> Place:
    """Return where `lanes` put `item`."""
    lane = lanes.of(item.reason)
    by = {"none": None, "language": item.language, "platform": item.platform}[lanes.queue_by]
    unsure = item.kind == "review" and item.uncertainty >= lanes.low_confidence.uncertainty_from
    wanted = item.labels_wanted or (lanes.low_confidence.labels if unsure else 1)
    return Place(
        queue=lane.queue or by or GENERAL,
        promised=timedelta(hours=lane.hours),
        labels_wanted=wanted,
    )


@cache
def load_lanes(path: Path | None = None) -> Lanes:
    """Return the lanes that come with Modwatch, with what the file at `path` says instead.

    Raises:
        SettingsError: the file is not there, is not TOML, or says what cannot be.
    """
    content = tomllib.loads(Path(__file__).with_name("lanes.toml").read_text(encoding="utf-8"))
    if path is not None:
        content = _merged(content, _read(path))
    try:
        return Lanes.model_validate(content)
    except ValidationError as exc:
        where = ".".join(str(part) for part in exc.errors()[0]["loc"])
        raise SettingsError(
            f"the queue rules say what cannot be of {where}: {exc.errors()[0]['msg']}; mend the "
            "file that MODWATCH_QUEUE_RULES names"
        ) from None


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as exc:
        raise SettingsError(
            f"MODWATCH_QUEUE_RULES names {path}, which cannot be read as TOML "
            f"({type(exc).__name__}); mend the file or unset the variable"
        ) from None


def _merged(base: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for name, value in other.items():
        both = isinstance(value, Mapping) and isinstance(base.get(name), Mapping)
        merged[name] = _merged(base[name], value) if both else value
    return merged
