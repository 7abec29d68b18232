"""The plan of an audit: all that decides what is drawn and how it is counted, before any is drawn.

A plan is a small JSON document in one canonical form, and its SHA-256 is its name: whoever changes
a seed, a stratum or a rule afterwards has another plan. Nothing in it depends on a clock.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from datetime import date
from itertools import chain, pairwise

from pydantic import ConfigDict, TypeAdapter
from pydantic.dataclasses import dataclass

from modwatch.audit.allocation import MINIMUM
from modwatch.audit.design import Design, SideDesign
from modwatch.audit.intervals import IntervalRule
from modwatch.audit.strata import Strata
from modwatch.errors import AuditError, DesignError

#: Of the document; a reader refuses what it does not know.
FORMAT = 1

SIDES = ("flagged", "unflagged")

#: Labels of the second stage of an adaptive audit are at least so many.
_LEAST_STAGE = 50

#: Comments of a day; far beyond any, and a float holds it exactly.
_MOST = 2**40

_NAME = re.compile("[a-z0-9][a-z0-9_-]{0,99}")

#: A document holds these fields, all of them and of these types, or it is no plan.
_STRICT = ConfigDict(
    strict=True, extra="forbid", allow_inf_nan=False, revalidate_instances="always"
)


@dataclass(frozen=True, kw_only=True, config=_STRICT)
class PopulationDay:
    """The comments of one UTC day that an audit is about, and how they were decided."""

    day: date
    comments: int
    flagged: int
    model_version: str
    #: Flagged is prob > threshold.
    threshold: float
    #: SHA-256 over id, score and decision of all comments, in no order; see `draw.day_digest`.
    digest: str


@dataclass(frozen=True, kw_only=True, config=_STRICT)
class PlannedStratum:
    """A range of scores on one side of the decision, and how many of it are drawn."""

    #: flagged | unflagged
    side: str
    #: lower ≤ score < upper; None where the range is open.
    lower: float | None
    upper: float | None
    #: Comments of the range.
    population: int
    #: Comments drawn in the first stage.
    labels: int
    #: Mean score, recalibrated when a prevalence was expected.
    score: float


@dataclass(frozen=True, kw_only=True, config=_STRICT)
class AuditPlan:
    """A frozen plan.

    >>> day = PopulationDay(day=date(2026, 1, 5), comments=100, flagged=0, model_version="3",
    ...                     threshold=0.5, digest="00")
    >>> stratum = PlannedStratum(side="unflagged", lower=None, upper=None, population=100,
    ...                          labels=10, score=0.02)
    >>> plan = AuditPlan(audit="2026-01", population=(day,), strata=(stratum,), seed="s")
    >>> plan.digest == AuditPlan.from_json(plan.to_json()).digest
    True
    """

    #: Name of the audit: lower-case letters, digits, `-` and `_`.
    audit: str
    #: The days of the period, in order.
    population: tuple[PopulationDay, ...]
    #: Flagged strata first, each side by rising score.
    strata: tuple[PlannedStratum, ...]
    #: Makes the draw; from a source of randomness that the planner does not control.
    seed: str
    rule: IntervalRule = field(default_factory=IntervalRule)
    #: Labels of the second stage; 0 for an audit of one stage.
    second_stage_labels: int = 0
    #: Fixed weight of the first stage in (0, 1] in the estimate.
    first_stage_share: float = 1.0
    #: Share in [0, 1] of the items that several people label without knowing of each other.
    several_labels_share: float = 0.2
    #: How many people label those.
    labels_an_item: int = 2
    #: Days after which people are no longer waited for.
    deadline_days: int = 14
    #: What the design was made by: options of `design.DesignOptions`.
    options: Mapping[str, bool | int | float | str | None] | None = None

    def __post_init__(self) -> None:
        _check(self)

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON, in hexadecimal."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    @property
    def first(self) -> date:
        """First day of the period."""
        return self.population[0].day

    @property
    def last(self) -> date:
        """Last day of the period, included."""
        return self.population[-1].day

    @property
    def model_version(self) -> str:
        """The model that scored all comments of the period."""
        return next(day.model_version for day in self.population if day.comments)

    @property
    def threshold(self) -> float:
        """A comment of the period is flagged when prob > threshold."""
        return next(day.threshold for day in self.population if day.comments)

    @property
    def stages(self) -> int:
        """How often the audit draws: once, or twice when it is adaptive."""
        return 2 if self.second_stage_labels else 1

    def edges(self, side: str) -> Strata:
        """Return the ranges of one side."""
        inner = [each.lower for each in self.strata if each.side == side][1:]
        return Strata(method="planned", edges=tuple(edge for edge in inner if edge is not None))

    def of_side(self, side: str) -> list[int]:
        """Return the numbers of the strata of one side."""
        return [number for number, each in enumerate(self.strata) if each.side == side]

    def to_json(self) -> str:
        """Return the canonical document: sorted keys, no spare space, dates as ISO 8601."""
        fields = _plans.dump_python(self, mode="json") | {"format": FORMAT}
        return json.dumps(fields, sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> "AuditPlan":
        """Return the plan that a document holds.

        Raises:
            AuditError: it is no plan, of another format, or not in canonical form.
        """
        try:
            fields = json.loads(text)
            told = fields.pop("format")
            plan = _plans.validate_json(json.dumps(fields)) if told == FORMAT else None
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as exc:
            raise AuditError(f"this is no plan of an audit ({type(exc).__name__})") from None
        except DesignError as exc:
            raise AuditError(f"this is no plan of an audit: {exc}") from None
        if plan is None:
            raise AuditError("the plan is of a format that this version does not know")
        if plan.to_json() != text:
            raise AuditError("the plan is not in canonical form: it was edited or reformatted")
        return plan


_plans = TypeAdapter(AuditPlan)


def planned_strata(made: Design) -> tuple[PlannedStratum, ...]:
    """Return the strata of a design as a plan holds them."""
    sides = zip(SIDES, (made.flagged, made.unflagged), strict=True)
    return tuple(stratum for name, side in sides if side for stratum in _planned(name, side))


def _planned(name: str, side: SideDesign) -> list[PlannedStratum]:
    bounds = [None, *side.strata.edges, None]
    return [
        PlannedStratum(
            side=name,
            lower=bounds[number],
            upper=bounds[number + 1],
            population=int(side.population[number]),
            labels=int(side.labels[number]),
            score=float(side.score[number]),
        )
        for number in range(len(side.strata))
    ]


def raise_on_invalid_name(audit: str) -> None:
    """Raise AuditError unless `audit` can be the name of an audit and of its folder."""
    if not _NAME.fullmatch(audit):
        raise AuditError(
            f"audit {audit[:100]!r}: the name of the audit may contain lower-case letters, digits, "
            "- and _ only, and starts with a letter or digit"
        )


def _check(plan: AuditPlan) -> None:
    """Raise AuditError for a plan that cannot be carried out, with the first reason."""
    raise_on_invalid_name(plan.audit)
    for problem in chain(_of_period(plan), _of_strata(plan), _of_rules(plan)):
        raise AuditError(f"audit {plan.audit[:100]!r}: {problem}")


def _of_period(plan: AuditPlan) -> Iterator[str]:
    """Yield what is wrong with the days."""
    days = [day.day for day in plan.population]
    if days != sorted(set(days)):
        yield "the days are not in order"
    if any(not 0 <= day.flagged <= day.comments <= _MOST for day in plan.population):
        yield "a day has more flagged comments than comments, or a number that cannot be"
    if not any(day.comments for day in plan.population):
        yield "the period has no comment"
    versions = {(day.model_version, day.threshold) for day in plan.population if day.comments}
    if len(versions) > 1:
        yield "the model or its threshold changed within the period: audit each part by itself"
    if any(not 0 <= day.threshold <= 1 for day in plan.population):
        yield "the threshold must lie in [0, 1]"


def _of_strata(plan: AuditPlan) -> Iterator[str]:
    """Yield what is wrong with the strata."""
    sides = [each.side for each in plan.strata]
    if sides != sorted(sides) or not {*sides} <= {*SIDES}:  # flagged < unflagged
        yield "each stratum must be flagged or unflagged, the flagged ones first"
    for side in SIDES:
        mine = [each for each in plan.strata if each.side == side]
        if mine and not _is_row(mine):
            yield f"the {side} strata are not ranges that follow each other, open at both ends"
    if any(not 0 <= each.score <= 1 for each in plan.strata):
        yield "a mean score is outside [0, 1]"
    if any(not 0 <= each.labels <= each.population or not each.population for each in plan.strata):
        yield "a stratum is empty, or would be drawn from more often than it has comments"
    flagged = sum(day.flagged for day in plan.population)
    unflagged = sum(day.comments for day in plan.population) - flagged
    held = [sum(each.population for each in plan.strata if each.side == side) for side in SIDES]
    if held != [flagged, unflagged]:
        yield "the strata do not hold the comments of the period"
    if not any(each.labels for each in plan.strata):
        yield "no comment would be drawn"


def _is_row(strata: list[PlannedStratum]) -> bool:
    """Return whether each range begins where the one before it ends, and both ends are open."""
    met = [below.upper for below, _ in pairwise(strata)]
    edges = [edge for edge in met if edge is not None]
    return (
        strata[0].lower is None
        and strata[-1].upper is None
        and edges == [above.lower for _, above in pairwise(strata)]
        and all(below < above for below, above in pairwise(edges))
    )


def _of_rules(plan: AuditPlan) -> Iterator[str]:
    """Yield what is wrong with the seed, the stages, the labels and the deadline."""
    if not plan.seed:
        yield "the seed is empty"
    texts = [plan.seed, *(plan.options or {}), *map(str, (plan.options or {}).values())]
    try:
        "".join([*texts, *(day.model_version + day.digest for day in plan.population)]).encode()
    except UnicodeEncodeError:
        yield "a text of it is no Unicode: it holds half of a character"
    share, second = plan.first_stage_share, plan.second_stage_labels
    if not (0 < share < 1 if second else share == 1):
        yield "the share of the first stage must lie in (0, 1), or be 1 without a second one"
    least = max(_LEAST_STAGE, MINIMUM * len(plan.of_side("unflagged")))
    if second and (second < least or not plan.of_side("unflagged")):
        yield f"a second stage needs unflagged comments, and {least} labels at least"
    if not 0 <= plan.several_labels_share <= 1:
        yield "the share of items with several labels must lie in [0, 1]"
    if not 1 <= plan.labels_an_item <= 9:
        yield "labels an item must be from 1 to 9"
    if plan.deadline_days < 1:
        yield "the deadline must be a day or more"
