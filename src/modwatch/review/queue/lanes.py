"""Rules of service: queue, deadline and turns by reason, and how many people label an item."""

import random
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection, Select, select
from sqlalchemy.dialects.postgresql import insert

from modwatch.review.queue.items import NewItem
from modwatch.review.tables import lane
from modwatch.settings.file import read_toml, validated
from modwatch.statistics.collaboration.review_strategies import all_review_scores

#: Turns of each review score.
_TURNS = 6

#: The queue of all items to which no rule gives another.
GENERAL = "general"


class _Rules(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Lane(_Rules):
    """The rules of one reason."""

    #: Deadline, from queued to decided.
    hours: Annotated[float, Field(gt=0, le=24 * 365)] = 24.0
    #: Weight among the reasons when the next item is chosen; 0: only when nothing else waits.
    turns: Annotated[float, Field(ge=0, le=1_000)] = 1.0
    #: A queue for this reason, to which people are assigned; unset: see `queue_by`.
    queue: Annotated[str, Field(pattern="^[a-z0-9][a-z0-9_-]{0,49}$")] | None = None


class LowConfidence(_Rules):
    """Which items several people label."""

    uncertainty_from: Annotated[float, Field(ge=0)] = 0.26
    labels: Annotated[int, Field(ge=1, le=9)] = 2


class Severe(_Rules):
    """Which escalations are served before all others, and by when."""

    #: Reasons to escalate, of the policy.
    reasons: tuple[str, ...] = ()
    #: Deadline, from escalated to resolved.
    hours: Annotated[float, Field(gt=0, le=24 * 365)] = 1.0

    def seconds(self, reason: str | None) -> float | None:
        """Return the time within which an escalation is due, in seconds; None: it is not severe.

        >>> load_lanes().severe.seconds("severe"), load_lanes().severe.seconds("context")
        (3600.0, None)
        """
        return self.hours * 3600 if reason in self.reasons else None


class Limits(_Rules):
    """How often one person may do in an hour what helps to choose comments."""

    #: Skips and escalations together; undone ones, and severe ones, which are never refused, count.
    skips_per_hour: Annotated[int, Field(ge=0)] = 60
    undos_per_hour: Annotated[int, Field(ge=0)] = 60


class Confirmations(_Rules):
    """When confirmations are served, and how their place tells nothing."""

    #: From queued to first served, for each round: among the items of the next day.
    after_hours: Annotated[float, Field(ge=0, le=24 * 7)] = 24.0
    #: One of the next so many items of a lane is served, at random; 1: the first.
    among: Annotated[int, Field(ge=1, le=1_000)] = 16


class Lanes(_Rules):
    """The order of service of the whole queue.

    >>> lanes = load_lanes()
    >>> lanes.for_reason("random_slice").hours
    48.0
    >>> lanes.for_reason("a reason of tomorrow") == Lane()
    True
    """

    queue_by: Literal["none", "language", "platform"] = "none"
    #: In [0, 1]: how much earlier the first item of a day is served than the last, as a share of
    #: its hours.
    rank_pull: Annotated[float, Field(ge=0, le=1)] = 0.5
    reason: dict[str, Lane] = Field(default_factory=dict)
    low_confidence: LowConfidence = LowConfidence()
    severe: Severe = Severe()
    limits: Limits = Limits()
    confirmations: Confirmations = Confirmations()

    def for_reason(self, reason: str) -> Lane:
        """Return the lane of `reason`, with the defaults if no rule names it."""
        return self.reason.get(reason, Lane())

    def order(self, chance: random.Random) -> list[str]:
        """Return the reasons in a random order, weighted by their turns.

        The first one that has an item is served; reasons without turns come last.
        """
        # The minimum of exponential times is at each reason with a probability equal to its weight.
        times = {
            name: (rule.turns == 0, chance.expovariate(rule.turns or 1.0))
            for name, rule in self.reason.items()
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
    rule = lanes.for_reason(item.reason)
    by = item.shown.get(lanes.queue_by)
    unsure = item.kind == "review" and item.uncertainty >= lanes.low_confidence.uncertainty_from
    wanted = item.labels_wanted or (lanes.low_confidence.labels if unsure else 1)
    return Place(
        queue=rule.queue or by or GENERAL,
        promised=timedelta(hours=rule.hours),
        labels_wanted=wanted,
    )


def register_lanes(connection: Connection, lanes: Select[tuple[str, str]]) -> None:
    """Add the queues and reasons of the query `lanes` to the table of lanes that leases walk."""
    new = insert(lane).from_select(["queue", "reason"], lanes)
    connection.execute(new.on_conflict_do_nothing())


def known_queues(connection: Connection, lanes: Lanes) -> list[str]:
    """Return the queues that a person may be assigned to, by name.

    Those are the general one, those that `lanes` name, and those that have had an item.
    """
    named = {rule.queue for rule in lanes.reason.values() if rule.queue is not None}
    return sorted({GENERAL, *named, *connection.scalars(select(lane.c.queue).distinct())})


def known_reasons(connection: Connection) -> list[str]:
    """Return the reasons for which there ever was an item, by name."""
    return sorted(connection.scalars(select(lane.c.reason).distinct()))


@cache
def load_lanes(path: Path | None = None) -> Lanes:
    """Return the lanes that come with Modwatch, with changes from the file at `path`.

    Raises:
        SettingsError: the file does not exist, is not TOML, or has an invalid value.
    """
    content = tomllib.loads(Path(__file__).with_name("lanes.toml").read_text(encoding="utf-8"))
    scores = all_review_scores().values()
    by_score = {score.name: {"hours": score.hours, "turns": _TURNS} for score in scores}
    content["reason"] = by_score | content["reason"]
    if path is not None:
        content = _merged(content, read_toml(path))
    return validated(Lanes, content, str(path or "lanes.toml"))


def _merged(base: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for name, value in other.items():
        both = isinstance(value, Mapping) and isinstance(base.get(name), Mapping)
        merged[name] = _merged(base[name], value) if both else value
    return merged
