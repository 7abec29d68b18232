"""The plan of an audit: everything that decides the sample and the estimates, frozen beforehand.

A plan is a JSON document in canonical form, identified by its SHA-256: a changed seed, stratum or
option is another plan. It contains no timestamps.
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

from modwatch.common.errors import AuditError, DesignError
from modwatch.statistics.audit.allocation import MINIMUM
from modwatch.statistics.audit.confirmation_rules import ConfirmationRule
from modwatch.statistics.audit.sample_design import Design, SideDesign, Strata
from modwatch.statistics.audit.share_interval import IntervalOptions
from modwatch.statistics.label_truth import SHARED, ErrorEvidence
from modwatch.statistics.recalibration import Calibration

#: Format of the document; others are rejected.
FORMAT = 1

SIDES = ("flagged", "unflagged")

#: Minimum labels of the second stage of an adaptive audit.
_LEAST_STAGE = 50

#: Maximum comments of a day, which a float represents exactly.
_MAX_COMMENTS = 2**40

_NAME = re.compile("[a-z0-9][a-z0-9_-]{0,99}")

#: A document must have exactly these fields, with these types.
_STRICT = ConfigDict(
    strict=True, extra="forbid", allow_inf_nan=False, revalidate_instances="always"
)


@dataclass(frozen=True, kw_only=True, config=_STRICT)
class PopulationDay:
    """The comments of one UTC day of the audited period, and how the model decided them."""

    day: date
    comments: int
    flagged: int
    model_version: str
    #: A comment is flagged when prob > threshold; None: the source brought the decisions,
    #: which need not follow from the scores.
    threshold: float | None
    #: SHA-256 over id, score and decision of all comments in any order; see `draw.day_digest`.
    digest: str
    #: Hash of all comments and commitments to their texts; see `draw.texts_digest`.
    texts: str
    #: What the model says of its origin; empty if it says nothing.
    model_origin: str = ""


@dataclass(frozen=True, kw_only=True, config=_STRICT)
class PlannedStratum:
    """A range of scores on one side of the decision, and its labels."""

    #: flagged | unflagged
    side: str
    #: lower ≤ score < upper; None where the range is open.
    lower: float | None
    upper: float | None
    #: Comments in the range.
    population: int
    #: Comments drawn in the first stage.
    labels: int
    #: Expected share of positives: mean score, recalibrated by `AuditPlan.calibrations`.
    score: float


@dataclass(frozen=True, kw_only=True, config=_STRICT)
class AuditPlan:
    """A frozen plan.

    >>> day = PopulationDay(day=date(2026, 1, 5), comments=100, flagged=0, model_version="3",
    ...                     threshold=0.5, digest="00", texts="11")
    >>> stratum = PlannedStratum(side="unflagged", lower=None, upper=None, population=100,
    ...                          labels=10, score=0.02)
    >>> plan = AuditPlan(audit="2026-01", population=(day,), strata=(stratum,))
    >>> plan.digest == AuditPlan.from_json(plan.to_json()).digest
    True
    """

    #: Name of the audit: lower-case letters, digits, `-` and `_`.
    audit: str
    #: The days of the period, in order.
    population: tuple[PopulationDay, ...]
    #: Flagged strata first, each side by ascending score.
    strata: tuple[PlannedStratum, ...]
    rule: IntervalOptions = field(default_factory=IntervalOptions)
    #: Labels of the second stage; 0 for a single-stage audit.
    second_stage_labels: int = 0
    #: Fixed weight in (0, 1] of the first stage in the estimate.
    first_stage_share: float = 1.0
    #: By side: the first labels that other people confirm. Empty: labels count as true.
    confirmations: Mapping[str, ConfirmationRule] = field(default_factory=dict)
    #: Largest probability, in [0, 1), that a second person makes an error of a first one, which the
    #: intervals of an audit with confirmations allow for.
    shared_false_positive: float = SHARED[0]
    shared_false_negative: float = SHARED[1]
    #: Days until the labelling ends without the labels that are missing.
    deadline_days: int = 14
    #: Options of the design, from `design.DesignOptions`.
    options: Mapping[str, bool | int | float | str | None] | None = None
    #: Whether planner, approver and signer must be different people.
    four_eyes: bool = True
    #: Name of a public random value of the future, such as `drand quicknet round 20000000`, that
    #: the seed depends on, too; empty for none.
    public_value: str = ""
    #: By side: how the scores were recalibrated for the design, and from which labels. Estimates do
    #: not depend on it.
    calibrations: Mapping[str, Calibration] = field(default_factory=dict)

    def __post_init__(self) -> None:
        raise_on_invalid_name(self.audit)
        problems = chain(_period_problems(self), _strata_problems(self), _option_problems(self))
        if problem := next(problems, None):
            raise AuditError(f"audit {self.audit[:100]!r}: {problem}")

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON, in hexadecimal."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    @property
    def missing_days(self) -> tuple[date, ...]:
        """Days of the period without scores, which the audit does not cover."""
        return tuple(day.day for day in self.population if not day.comments)

    @property
    def stated_errors(self) -> ErrorEvidence:
        """What is stated about errors of the annotators."""
        return ErrorEvidence.sharing(self.shared_false_positive, self.shared_false_negative)

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
    def model(self) -> str:
        """The version of the model, with its origin if that is known."""
        origin = next((day.model_origin for day in self.population if day.model_origin), "")
        return f"{self.model_version}{origin and f' ({origin})'}"

    @property
    def threshold(self) -> float | None:
        """A comment of the period is flagged when prob > threshold; None: as the source decided."""
        return next(day.threshold for day in self.population if day.comments)

    @property
    def stages(self) -> int:
        """Number of stages: 1, or 2 for an adaptive audit."""
        return 2 if self.second_stage_labels else 1

    def confirms(self, stratum: int, key: int) -> tuple[int, ...]:
        """Return which first labels of a comment other people confirm, by its random number."""
        rule = self.confirmations.get(self.strata[stratum].side)
        return rule.confirmed(key) if rule else ()

    def edges(self, side: str) -> Strata:
        """Return the ranges of one side."""
        inner = [stratum.lower for stratum in self.strata if stratum.side == side][1:]
        return Strata(edges=tuple(edge for edge in inner if edge is not None))

    def calibration_of(self, side: str) -> Calibration:
        """Return how the scores of one side were recalibrated for the design."""
        return self.calibrations.get(side, Calibration())

    def of_side(self, side: str) -> list[int]:
        """Return the indices of the strata of one side."""
        return [number for number, stratum in enumerate(self.strata) if stratum.side == side]

    def to_json(self) -> str:
        """Return the canonical document: sorted keys, no whitespace, dates in ISO 8601."""
        fields = _plans.dump_python(self, mode="json") | {"format": FORMAT}
        return json.dumps(fields, sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> "AuditPlan":
        """Return the plan in a document.

        Raises:
            AuditError: the text is not a plan, has another format, or is not in canonical form.
        """
        try:
            fields = json.loads(text)
            known = fields.pop("format") == FORMAT
            plan = _plans.validate_json(json.dumps(fields)) if known else None
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as exc:
            raise AuditError(f"The file is not an audit plan ({type(exc).__name__}).") from None
        except DesignError as exc:
            raise AuditError(f"The file is not an audit plan: {exc}") from None
        if plan is None:
            raise AuditError(f"The format of the plan is not {FORMAT}.")
        if plan.to_json() != text:
            raise AuditError("The plan is not in canonical form: it was edited or reformatted.")
        return plan


_plans = TypeAdapter(AuditPlan)


def planned_strata(made: Design) -> tuple[PlannedStratum, ...]:
    """Return the strata of a design in the form of a plan."""
    sides = zip(SIDES, (made.flagged, made.unflagged), strict=True)
    return tuple(stratum for name, side in sides if side for stratum in _planned(name, side))


def planned_calibrations(made: Design) -> dict[str, Calibration]:
    """Return how the scores of each side were recalibrated for a design."""
    sides = zip(SIDES, (made.flagged, made.unflagged), strict=True)
    return {name: side.calibration for name, side in sides if side}


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
            f"audit {audit[:100]!r}: the name of the audit may only contain lower-case letters, "
            "digits, - and _, and must start with a letter or digit"
        )


def _period_problems(plan: AuditPlan) -> Iterator[str]:
    """Yield problems of the days."""
    days = [day.day for day in plan.population]
    if days != sorted(set(days)):
        yield "the days are not in order"
    if any(not 0 <= day.flagged <= day.comments <= _MAX_COMMENTS for day in plan.population):
        yield "the number of comments or flagged comments of a day is out of range"
    if not any(day.comments for day in plan.population):
        yield "the period has no comments"
    versions = {(day.model_version, day.threshold) for day in plan.population if day.comments}
    if len(versions) > 1:
        yield "the model or its threshold changed within the period; audit each part separately"
    if any(day.comments and not day.texts for day in plan.population):
        yield "a day has no digest of its texts"
    thresholds = [day.threshold for day in plan.population if day.threshold is not None]
    if any(not 0 <= threshold <= 1 for threshold in thresholds):
        yield "the threshold must be in [0, 1]"


def _strata_problems(plan: AuditPlan) -> Iterator[str]:
    """Yield problems of the strata."""
    sides = [stratum.side for stratum in plan.strata]
    if sides != sorted(sides) or not {*sides} <= {*SIDES}:  # flagged < unflagged
        yield "each stratum must be flagged or unflagged, the flagged ones first"
    for side in SIDES:
        mine = [stratum for stratum in plan.strata if stratum.side == side]
        if mine and not _is_contiguous(mine):
            yield f"the {side} strata are not contiguous ranges, open at both ends"
    if any(not 0 <= stratum.score <= 1 for stratum in plan.strata):
        yield "a mean score is outside [0, 1]"
    if any(
        not 0 <= stratum.labels <= stratum.population or not stratum.population
        for stratum in plan.strata
    ):
        yield "a stratum is empty, or has more labels than comments"
    flagged = sum(day.flagged for day in plan.population)
    unflagged = sum(day.comments for day in plan.population) - flagged
    sizes = [
        sum(stratum.population for stratum in plan.strata if stratum.side == side) for side in SIDES
    ]
    if sizes != [flagged, unflagged]:
        yield "the strata do not add up to the comments of the period"
    if not any(stratum.labels for stratum in plan.strata):
        yield "no comments would be drawn"


def _is_contiguous(strata: list[PlannedStratum]) -> bool:
    """Return whether each range starts at the end of the one before, and both ends are open."""
    met = [below.upper for below, _ in pairwise(strata)]
    edges = [edge for edge in met if edge is not None]
    return (
        strata[0].lower is None
        and strata[-1].upper is None
        and edges == [above.lower for _, above in pairwise(strata)]
        and all(below < above for below, above in pairwise(edges))
    )


def _option_problems(plan: AuditPlan) -> Iterator[str]:
    """Yield problems of the texts, the stages, the labels and the deadline."""
    texts = [plan.public_value]
    for day in plan.population:
        texts += [day.texts, day.model_version, day.model_origin, day.digest]
    texts += [*(plan.options or {}), *map(str, (plan.options or {}).values())]
    texts += [calibration.source for calibration in plan.calibrations.values()]
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:
        yield "a text is not valid Unicode: it contains a lone surrogate"
    share, second = plan.first_stage_share, plan.second_stage_labels
    if not (0 < share < 1 if second else share == 1):
        yield "the share of the first stage must be in (0, 1), or 1 without a second stage"
    least = max(_LEAST_STAGE, MINIMUM * len(plan.of_side("unflagged")))
    if second and (second < least or not plan.of_side("unflagged")):
        yield f"a second stage needs unflagged comments and at least {least} labels"
    if not {*plan.confirmations} <= {*SIDES}:
        yield "only labels of flagged and unflagged comments can be confirmed"
    if not {*plan.calibrations} <= {*SIDES}:
        yield "only flagged and unflagged scores can be recalibrated"
    if any(
        not 0 <= calibration.positives <= calibration.labels
        for calibration in plan.calibrations.values()
    ):
        yield "a recalibration has more positives than labels"
    shared = (plan.shared_false_positive, plan.shared_false_negative)
    if not all(0 <= share < 1 for share in shared):
        yield "the shares of shared errors must be in [0, 1)"
    if plan.deadline_days < 1:
        yield "the deadline must be at least 1 day"
