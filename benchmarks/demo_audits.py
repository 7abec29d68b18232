"""Coverage of the figures of the demo's audit, redrawn over the same days.

    python benchmarks/demo_audits.py [--drift] [--seeds 300] [--first 0] [--cache FOLDER]
    python benchmarks/demo_audits.py --drift --errors 0.02 0.2

The audit of `make demo` or, with `--drift`, of `modwatch demo --drift`, in-process: the offline
model scores the synthetic days once, as in `demo_coverage.py`. Then, for each seed, the days are
routed and reviewed by the demo's moderators, whose labels recalibrate the scores for the design;
the audit is planned with the demo's number of labels, drawn by its keys, labelled and confirmed by
the demo's auditors, and its result is computed from this evidence. Scores and truth are the same
for all seeds. `--errors`: false-positive and false-negative rate of the auditors, not their own.

Printed for each figure: `given`, the share of audits with an estimate; `coverage`, how many of all
intervals, or of the bounds in their place, hold the truth; `too_high` and `too_low`, how many lie
above and below it; `first`, the coverage if first labels are taken for true; mean and standard
deviation of the estimates; the mean width. Then how many figures an audit misses at once, and how
many labels were positive. Exit status 1 if the coverage of a figure is below 93 %.
"""

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from pathlib import Path

import numpy as np
import pandas as pd
from demo_coverage import ScoredDay, Team, people, scored

from modwatch.audits.request import AuditRequest
from modwatch.statistics.audit.draw import DrawnComment, Scored, draw
from modwatch.statistics.audit.estimates import AuditEstimate
from modwatch.statistics.audit.imputation import ImputedEstimator, label_errors
from modwatch.statistics.audit.labels import AuditLabel, in_order
from modwatch.statistics.audit.plan import SIDES, AuditPlan, PopulationDay
from modwatch.statistics.audit.results import Evidence, estimator
from modwatch.statistics.audit.sample_design import ScoreCounts, design
from modwatch.statistics.recalibration import KnownLabels
from modwatch_lab.demo.datasets import DemoData, demo_data
from modwatch_lab.demo.moderators import AUDITOR_ERROR_RATES, DEMO_AUDITORS, DEMO_MODERATORS
from modwatch_lab.demo.run import AUDIT_LABELS
from modwatch_lab.simulated import SimulatedModerator

FIGURES = ("precision", "recall", "f1", "accuracy", "prevalence_unflagged", "prevalence")
FLOOR = 0.93
ROUNDING = 1e-9


def truths(label: np.ndarray, flagged: np.ndarray) -> dict[str, float]:
    """Return the true value of each figure."""
    hits, missed = int(label[flagged].sum()), int(label[~flagged].sum())
    return {
        "precision": hits / flagged.sum(),
        "recall": hits / (hits + missed),
        "f1": 2 * hits / (flagged.sum() + hits + missed),
        "accuracy": float((label == flagged).mean()),
        "prevalence_unflagged": missed / (~flagged).sum(),
        "prevalence": float(label.mean()),
    }


def known_labels(
    data: DemoData, days: Sequence[ScoredDay], threshold: float, seed: int
) -> dict[str, KnownLabels]:
    """Return by side what the demo's moderators have labelled of the routed comments."""
    team, parts = Team(people(data, seed), seed, threshold), []
    for day in days:
        reviewed = team.review(day)
        stratum = reviewed.stratum[reviewed.labelled]
        prob, label = day.prob[reviewed.labelled], reviewed.label[reviewed.labelled]
        weight = (reviewed.population / np.maximum(reviewed.sample, 1))[stratum]
        parts.append(np.stack([prob, label, weight]))
    prob, label, weight = np.concatenate(parts, axis=1)
    return {
        side: KnownLabels(
            score=prob[mine], label=label[mine].astype(np.int64), weight=weight[mine], source="demo"
        )
        for side, mine in zip(SIDES, (prob > threshold, prob <= threshold), strict=True)
        if mine.any()
    }


def planned(data: DemoData, days: Sequence[ScoredDay], threshold: float, seed: int) -> AuditPlan:
    """Return the plan of the demo's audit."""
    prob = np.concatenate([day.prob for day in days])
    request = AuditRequest(
        audit="demo", first=data.first_day, last=data.last_day, labels=AUDIT_LABELS, four_eyes=False
    )
    made = design(
        ScoreCounts.from_scores(prob[prob > threshold]),
        ScoreCounts.from_scores(prob[prob <= threshold]),
        request.first_stage_labels,
        request.options,
        known_labels(data, days, threshold, seed),
    )
    population = [
        PopulationDay(
            day=date.fromisoformat(day.name),
            comments=len(day.ids),
            flagged=int((day.prob > threshold).sum()),
            model_version="1",
            threshold=threshold,
            digest="not needed",
            texts="not needed",
        )
        for day in days
    ]
    return request.planned(population, made)


def labelled(
    plan: AuditPlan,
    drawn: Sequence[DrawnComment],
    truth: dict[str, int],
    seed: int,
    errors: tuple[float, float],
) -> Iterator[AuditLabel]:
    """Yield the labels of the demo's auditors: the third person is the lead."""
    first_seed = len(DEMO_MODERATORS) + 1 + len(DEMO_AUDITORS) * seed
    auditors = [
        SimulatedModerator(
            token="", false_positive_rate=errors[0], false_negative_rate=errors[1],
            seed=first_seed + number,
        )
        for number in range(len(DEMO_AUDITORS))
    ]  # fmt: skip
    rng = np.random.default_rng(seed)
    for comment in drawn:
        *two, lead = auditors
        turns = [*(two[place] for place in rng.permutation(2)), lead]
        labels = [item.label(comment.comment_id, truth[comment.comment_id]) for item in turns]
        number = 1 + (labels[0] in plan.confirms(comment.stratum, comment.key))
        number += number == 2 and labels[0] != labels[1]
        for turn, label in enumerate(labels[:number]):
            yield AuditLabel(
                day=comment.day,
                comment_id=comment.comment_id,
                labeller=str(turns[turn].seed),
                action="label",
                label=int(label or 0),
                decided_at=datetime.fromtimestamp(turn, UTC).isoformat(),
                decision="",
            )


def audit(
    data: DemoData,
    days: Sequence[ScoredDay],
    threshold: float,
    seed: int,
    errors: tuple[float, float],
) -> list[dict[str, object]]:
    """Return the six figures of one audit as rows."""
    plan = planned(data, days, threshold, seed)
    population = [
        Scored(
            day=date.fromisoformat(day.name),
            comment_id=day.ids,
            prob=day.prob.astype(np.float32),
            flagged=day.prob > threshold,
        )
        for day in days
    ]
    sizes = [stratum.labels for stratum in plan.strata]
    drawn = draw(plan, population, sizes, seed=f"seed {seed}")
    truth = {
        name: int(label) for day in days for name, label in zip(day.ids, day.label, strict=True)
    }
    labels = [*labelled(plan, drawn.comments, truth, seed, errors)]
    evidence = Evidence(
        plan=plan, samples=[drawn.comments], population=drawn.population, labels=labels
    )
    wanted = truths(
        np.concatenate([day.label for day in days]).astype(bool),
        np.concatenate([day.prob for day in days]) > threshold,
    )
    return [row(seed, *both, wanted[both[0].metric], len(labels)) for both in estimates(evidence)]


def estimates(evidence: Evidence) -> Iterator[tuple[AuditEstimate, AuditEstimate]]:
    """Yield the figures of the result, as `audit.results.computed`, and those of first labels."""
    plan, drawn = evidence.plan, evidence.samples[-1]
    sizes = {number: item.population for number, item in enumerate(plan.strata)}
    first = {key: item[0].label for key, item in in_order(evidence.labels).items()}
    errors = label_errors(plan, drawn, evidence.labels)
    if errors is None or errors.useless:
        raise SystemExit("the labels tell too little; no figure would be printed")
    corrected = ImputedEstimator.from_draws(estimator(evidence, errors.drawn, sizes, drawn))
    plain = estimator(evidence, first, sizes, drawn)
    for metric in FIGURES:
        yield corrected.estimate(metric), plain.estimate(metric)


def row(
    seed: int, made: AuditEstimate, first: AuditEstimate, truth: float, decisions: int
) -> dict[str, object]:
    """Return one figure and its truth; an end that is not printed cannot be wrong."""
    (low, high), (first_low, first_high) = (
        (0.0 if item.low is None else item.low, 1.0 if item.high is None else item.high)
        for item in (made, first)
    )
    return {
        "seed": seed,
        "metric": made.metric,
        "truth": truth,
        "value": np.nan if made.value is None else made.value,
        "width": high - low,
        "given": made.value is not None,
        "too_high": truth < low - ROUNDING,
        "too_low": truth > high + ROUNDING,
        "first": first_low - ROUNDING <= truth <= first_high + ROUNDING,
        "labels": made.labels,
        "positives": made.positives,
        "decisions": decisions,
    }


def report(rows: pd.DataFrame) -> list[str]:
    """Print the tables; return the floors missed."""
    rows["missed"] = rows["too_high"] | rows["too_low"]
    table = rows.groupby("metric", sort=False).agg(
        truth=("truth", "first"), mean=("value", "mean"), sd=("value", "std"),
        given=("given", "mean"), coverage=("missed", lambda item: 1 - item.mean()),
        too_high=("too_high", "mean"), too_low=("too_low", "mean"), first=("first", "mean"),
        width=("width", "mean"), labels=("labels", "mean"), positives=("positives", "mean"),
    )  # fmt: skip
    print(table.round(4).to_string())
    at_once = Counter(rows.groupby("seed")["missed"].sum())
    print("figures missed at once: " + ", ".join(f"{n}: {at_once[n]}" for n in sorted(at_once)))
    print(f"labels with confirmations: {rows['decisions'].mean():.0f}")
    return [
        f"{metric}: {share:.1%}" for metric, share in table["coverage"].items() if share < FLOOR
    ]


def main() -> int:
    """Redraw the audits; return 1 when a floor is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--drift", action="store_true")
    parser.add_argument("--seeds", type=int, default=300)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--csv", type=Path, help="write a row for each figure of each audit")
    parser.add_argument("--errors", type=float, nargs=2, default=AUDITOR_ERROR_RATES)
    default = Path(tempfile.gettempdir()) / "modwatch-demo-coverage"
    parser.add_argument("--cache", type=Path, default=default)
    options = parser.parse_args()
    start, data = time.process_time(), demo_data("synthetic", drift=options.drift)
    days, threshold = scored(data, options.cache)
    rows = []
    for seed in range(options.first, options.first + options.seeds):
        rows += audit(data, days, threshold, seed, tuple(options.errors))
        if options.csv:
            pd.DataFrame(rows).to_csv(options.csv, index=False)
    flagged = sum(int((day.prob > threshold).sum()) for day in days)
    print(f"{sum(len(day.ids) for day in days):,} comments, {flagged:,} flagged")
    missed = report(pd.DataFrame(rows))
    print(
        f"{time.process_time() - start:.0f} s of CPU; floors missed: {', '.join(missed) or 'none'}"
    )
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
