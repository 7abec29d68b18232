"""The plan of an audit: all that decides what is drawn and how it is counted, before any is drawn.

A plan is a small JSON document in one canonical form, and its SHA-256 is its name: whoever changes
a seed, a stratum or a rule afterwards has another plan. Nothing in it depends on a clock.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import date
from typing import Any

import numpy as np

from modwatch.audit.design import Design, SideDesign
from modwatch.audit.intervals import IntervalRule
from modwatch.audit.strata import Strata
from modwatch.errors import AuditError

#: Of the document; a reader refuses what it does not know.
FORMAT = 1

SIDES = ("flagged", "unflagged")

#: Labels of the second stage of an adaptive audit are at least so many.
_LEAST_STAGE = 50


@dataclass(frozen=True, kw_only=True)
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


@dataclass(frozen=True, kw_only=True)
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


@dataclass(frozen=True, kw_only=True)
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
    options: Mapping[str, Any] | None = None

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

    def edges(self, side: str) -> Strata:
        """Return the ranges of one side."""
        inner = [each.lower for each in self.strata if each.side == side][1:]
        return Strata(method="planned", edges=tuple(edge for edge in inner if edge is not None))

    def of_side(self, side: str) -> list[int]:
        """Return the numbers of the strata of one side."""
        return [number for number, each in enumerate(self.strata) if each.side == side]

    def to_json(self) -> str:
        """Return the canonical document: sorted keys, no spare space, dates as ISO 8601."""
        fields = asdict(self) | {"format": FORMAT}
        return json.dumps(fields, sort_keys=True, separators=(",", ":"), default=date.isoformat)

    @classmethod
    def from_json(cls, text: str) -> "AuditPlan":
        """Return the plan that a document holds.

        Raises:
            AuditError: it is no plan, of another format, or not in canonical form.
        """
        try:
            fields = json.loads(text)
            if fields.pop("format") != FORMAT:
                raise AuditError("the plan is of a format that this version does not know")
            days, strata = fields.pop("population"), fields.pop("strata")
            plan = cls(
                population=tuple(
                    PopulationDay(**day | {"day": date.fromisoformat(day["day"])}) for day in days
                ),
                strata=tuple(PlannedStratum(**stratum) for stratum in strata),
                rule=IntervalRule(**fields.pop("rule")),
                **fields,
            )
        except (ValueError, TypeError, KeyError, AttributeError) as exc:
            raise AuditError(f"this is no plan of an audit ({type(exc).__name__})") from None
        if plan.to_json() != text:
            raise AuditError("the plan is not in canonical form: it was edited or reformatted")
        return plan


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


def _check(plan: AuditPlan) -> None:
    """Raise AuditError for a plan that cannot be carried out, with the reason."""
    days = [day.day for day in plan.population]
    versions = {(day.model_version, day.threshold) for day in plan.population if day.comments}
    planned = dict.fromkeys(SIDES, 0)
    for stratum in plan.strata:
        planned[stratum.side] += stratum.population
    flagged = sum(day.flagged for day in plan.population)
    unflagged = sum(day.comments for day in plan.population) - flagged
    name = plan.audit.replace("-", "").replace("_", "")
    problems = {
        "the name of the audit may hold lower-case letters, digits, - and _ alone": not (
            name.isascii() and name.isalnum() and name == name.lower() and len(plan.audit) <= 100
        ),
        "the days are not in order": days != sorted(set(days)),
        "the period has no comment": not flagged + unflagged,
        "the model or its threshold changed within the period: audit each part by itself": len(
            versions
        )
        > 1,
        "the strata do not hold the comments of the period": planned
        != {"flagged": flagged, "unflagged": unflagged},
        "a stratum is empty, or would be drawn from more often than it has comments": any(
            not 0 <= each.labels <= each.population or each.population < 1 for each in plan.strata
        ),
        "no comment would be drawn": not any(each.labels for each in plan.strata),
        "the seed is empty": not plan.seed,
        "the share of the first stage must lie in (0, 1), or be 1 without a second one": not (
            0 < plan.first_stage_share < 1
            if plan.second_stage_labels
            else plan.first_stage_share == 1
        ),
        f"a second stage needs {_LEAST_STAGE} labels": 0 < plan.second_stage_labels < _LEAST_STAGE,
        "the share of items with several labels must lie in [0, 1]": not (
            0 <= plan.several_labels_share <= 1
        ),
        "labels an item must be from 1 to 9": plan.labels_an_item not in range(1, 10),
        "the deadline must be a day or more": plan.deadline_days < 1,
        "a score is not a number": not all(np.isfinite(each.score) for each in plan.strata),
    }
    for problem, there in problems.items():
        if there:
            raise AuditError(f"audit {plan.audit!r}: {problem}")
