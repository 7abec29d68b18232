"""Audits of made-up comments, carried out in memory."""

import datetime
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from modwatch.audits import evidence, files
from modwatch.audits.publication import Publication
from modwatch.audits.seeds import LOG, NUMBER, seed_of
from modwatch.audits.verify import planned_sizes, read_evidence
from modwatch.statistics.audit.confirmation_rules import ConfirmationRule
from modwatch.statistics.audit.draw import DrawnComment, Scored, day_digest, draw
from modwatch.statistics.audit.labels import AuditLabel, Outcome, key_of, labels_demanded
from modwatch.statistics.audit.plan import (
    SIDES,
    AuditPlan,
    PlannedStratum,
    PopulationDay,
    planned_calibrations,
    planned_strata,
)
from modwatch.statistics.audit.results import computed, to_json
from modwatch.statistics.audit.sample_design import DesignOptions, ScoreCounts, design
from modwatch_lab.audit_designs import simulate

FIRST = datetime.date(2026, 1, 5)
NOW = datetime.datetime(2026, 2, 1, tzinfo=datetime.UTC)
LANGUAGES = ("de", "en", "fr")

#: Seed of draws whose plan nobody approved.
SEED = "a seed"

#: Who takes the steps that not everyone may take.
ACTORS = {"approved": "eve", "signed_off": "fay"}

ALL_CONFIRMED = dict.fromkeys(SIDES, ConfirmationRule(negative=1.0, positive=1.0))
CONFIRMED = {
    "flagged": ConfirmationRule(negative=1.0, positive=0.3),
    "unflagged": ConfirmationRule(negative=0.25, positive=1.0),
}


@dataclass(frozen=True, kw_only=True)
class Comments:
    """A population of some days, its labels known."""

    parts: tuple[Scored, ...]
    truth: Mapping[str, int]
    recall: float
    threshold: float


def make_comments(
    size: int = 6000, days: int = 3, prevalence: float = 0.05, score: str = "sharp", seed: int = 1
) -> Comments:
    """Return `size` comments, spread over `days` days, in several parts a day."""
    made = simulate(prevalence=prevalence, score=score, comments=size, seed=seed)
    score_ = np.concatenate([made.flagged.score, made.unflagged.score]).astype(np.float32)
    label = np.concatenate([made.flagged.label, made.unflagged.label])
    threshold = float(score_[made.flagged.label.size :].max(initial=0))
    flagged = score_ > threshold
    order = np.random.default_rng(seed).permutation(size)
    ids = [f"c{number}" for number in range(size)]
    parts = []
    for number, rows in enumerate(np.array_split(order, 2 * days)):
        language = [(LANGUAGES[row % 3],) if row % 7 else () for row in rows.tolist()]
        parts.append(
            Scored(
                day=FIRST + datetime.timedelta(days=number // 2),
                comment_id=[ids[row] for row in rows],
                prob=score_[rows],
                flagged=flagged[rows],
                traits={"language": language},
            )
        )
    truth = {ids[row]: int(label[row]) for row in range(size)}
    recall = float(label[flagged].sum() / label.sum())
    return Comments(parts=tuple(parts), truth=truth, recall=recall, threshold=threshold)


def days_of(parts: Sequence[Scored], threshold: float) -> tuple[PopulationDay, ...]:
    """Return the days of some comments as a plan holds them."""
    return tuple(
        PopulationDay(
            day=day,
            comments=sum(part.prob.size for part in parts if part.day == day),
            flagged=int(sum(part.flagged.sum() for part in parts if part.day == day)),
            model_version="7",
            threshold=threshold,
            digest=day_digest([part for part in parts if part.day == day]),
            texts="00",
        )
        for day in sorted({part.day for part in parts})
    )


def plan_of(
    parts: Sequence[Scored], edges: Mapping[str, Sequence[float]], labels: int, **changes: object
) -> AuditPlan:
    """Return a plan with strata between these edges, `labels` of each or all that it has.

    Comments are flagged above 0.5. Edges are scores of their side, other than its smallest.
    """
    prob = np.concatenate([part.prob for part in parts]).astype(np.float64)
    strata: list[PlannedStratum] = []
    for side, inside in (("flagged", prob > 0.5), ("unflagged", prob <= 0.5)):
        bounds = [None, *sorted(edges.get(side, ())), None]
        for lower, upper in pairwise(bounds) if inside.any() else ():
            scores = prob[inside & (prob >= (lower or 0)) & (prob < (upper or 2))]
            strata.append(
                PlannedStratum(
                    side=side, lower=lower, upper=upper, population=scores.size,
                    labels=min(labels, scores.size), score=float(scores.mean()),
                )
            )  # fmt: skip
    fields: dict[str, object] = {
        "audit": "small",
        "population": days_of(parts, 0.5),
        "strata": tuple(strata),
    }
    return AuditPlan(**(fields | changes))  # type: ignore[arg-type]


def make_plan(comments: Comments, labels: int = 400, **changes: object) -> AuditPlan:
    """Return a plan for these comments."""
    prob = np.concatenate([part.prob for part in comments.parts]).astype(np.float64)
    flagged = np.concatenate([part.flagged for part in comments.parts])
    made = design(
        ScoreCounts.from_scores(prob[flagged]),
        ScoreCounts.from_scores(prob[~flagged]),
        labels,
        DesignOptions(),
    )
    fields: dict[str, object] = {
        "audit": "2026-01",
        "population": days_of(comments.parts, comments.threshold),
        "strata": planned_strata(made),
        "calibrations": planned_calibrations(made),
    }
    return AuditPlan(**(fields | changes))  # type: ignore[arg-type]


def label_all(drawn: Sequence[DrawnComment], truth: Mapping[str, int]) -> list[AuditLabel]:
    """Return the labels of a person who makes no errors."""
    return [
        AuditLabel(
            day=comment.day, comment_id=comment.comment_id, labeller="ann", action="label",
            label=truth[comment.comment_id], decided_at=NOW.isoformat(), decision="00",
        )
        for comment in drawn
    ]  # fmt: skip


def label_twice(labels: Sequence[AuditLabel], number: int) -> list[AuditLabel]:
    """Return the labels, of which the first so many are given by another person, too."""
    return [*labels, *(replace(label, labeller="bob") for label in labels[:number])]


def outcomes_of(drawn: Sequence[DrawnComment], labels: Sequence[AuditLabel]) -> list[Outcome]:
    """Return what became of each comment: decided if it has a label."""
    given = Counter(key_of(label) for label in labels)
    return [
        Outcome(
            day=comment.day, comment_id=comment.comment_id, labels=given[key_of(comment)],
            outcome="decided" if given[key_of(comment)] else "waiting",
        )
        for comment in drawn
    ]  # fmt: skip


@dataclass
class Auditor:
    """Carries an audit out, step by step, into a folder that is a dictionary."""

    comments: Comments
    plan: AuditPlan
    folder: dict[str, bytes] = field(default_factory=dict)
    chain: list[evidence.Event] = field(default_factory=list)
    people: Callable[..., list[AuditLabel]] = label_all

    @property
    def seed(self) -> str:
        """The seed of the draw, which the approval fixed."""
        return seed_of(self.plan, self.chain)

    def record(
        self, action: str, note: str = "", facts: Mapping[str, str] | None = None, **content: bytes
    ) -> None:
        made = {name.replace("__", ".").replace("_", "-"): item for name, item in content.items()}
        event = evidence.following(
            self.chain, audit=self.plan.audit, action=action, actor=ACTORS.get(action, "eva"),
            at=NOW, files=made, note=note,
            facts={LOG: 64 * "a", NUMBER: 64 * "b"} if action == "approved" else facts,
        )  # fmt: skip
        self.folder |= made
        self.chain.append(event)
        self.folder[files.CHAIN] = evidence.written(self.chain).encode()
        self.folder[files.NOTES] = evidence.written_notes(self.chain)

    def begin(self) -> None:
        self.record("planned", plan__json=self.plan.to_json().encode())
        self.record("approved")

    def draw_and_label(
        self, stage: int = 1, sample: bytes | None = None, *, stop: bool = False
    ) -> None:
        """Draw and label a stage; a forger's `sample` takes the place of the drawn one."""
        sizes = planned_sizes(self.plan, self.folder, stage)
        drawn = draw(self.plan, self.comments.parts, sizes, self.seed)
        content = sample or files.write_sample(drawn.comments)
        self.record(
            "drawn",
            **{
                f"sample_{stage}__csv": content,
                f"population_{stage}__csv": files.write_population(drawn.population),
            },
        )
        self.label(stage, files.read_sample(content), stop=stop)

    def label(self, stage: int, drawn: Sequence[DrawnComment], *, stop: bool = False) -> None:
        """Seal the labels of a stage: those of `people`, and the confirmations of the plan."""
        labels = self.people(drawn, self.comments.truth)
        first = {key_of(label): label for label in reversed(labels)}
        given = Counter(key_of(label) for label in labels)
        labels += [
            replace(first[key_of(comment)], labeller="bob")
            for comment in drawn
            if key_of(comment) in first
            and given[key_of(comment)]
            < labels_demanded(self.plan, comment, [first[key_of(comment)]])
        ]
        note, facts = (evidence.stopping(""), {evidence.STOPPED: "yes"}) if stop else ("", {})
        self.record(
            "labelled",
            note,
            facts,
            **{
                f"labels_{stage}__csv": files.write_labels(labels),
                f"outcomes_{stage}__csv": files.write_outcomes(outcomes_of(drawn, labels)),
            },
        )

    def finish(self) -> None:
        self.record("estimated", result__json=to_json(computed(read_evidence(self.folder))))
        self.record("signed_off")
        publication = Publication(version="another")  # so that the report is not written again
        self.record(
            "published", report__html=b"<!doctype html>", publication__json=publication.to_json()
        )


def finished(*, stages: int = 1, **changes: object) -> Auditor:
    """Return an audit that was carried out; `changes` are fields of its plan."""
    comments = make_comments()
    more: dict[str, object] = (
        {"second_stage_labels": 200, "first_stage_share": 0.6} if stages > 1 else {}
    )
    auditor = Auditor(comments=comments, plan=make_plan(comments, **(more | changes)))
    auditor.begin()
    for stage in range(1, stages + 1):
        auditor.draw_and_label(stage)
    auditor.finish()
    return auditor
