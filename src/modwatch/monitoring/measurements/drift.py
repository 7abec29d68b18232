"""Compares a day with its references and measures its queue: the rows of the table `drift`."""

import datetime
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from itertools import chain

import pyarrow as pa
from sqlalchemy import Engine

from modwatch.data.lake.day_scores import day_scores
from modwatch.data.lake.delta import Lake
from modwatch.data.lake.schemas import DRIFT
from modwatch.data.validation.profiles import read_profile, read_profiles
from modwatch.monitoring.measurements import tables
from modwatch.monitoring.measurements.references import model_reference
from modwatch.review.queue.metrics import day_queue
from modwatch.routing.design import RoutingPolicy
from modwatch.routing.ordering import deployed_scores, stored_copies
from modwatch.statistics.collaboration.review_strategies import copies_last
from modwatch.statistics.drift.cbpe import expected_performance
from modwatch.statistics.drift.day_comparison import (
    MINIMUM_COMMENTS,
    Finding,
    Reference,
    compare,
    compare_scores,
    day_metrics,
    queue_metrics,
)
from modwatch.statistics.drift.profile import Profile

#: Population stability index against held-out comments above which scores are not taken for
#: calibrated: the bound of the alert on it.
_FAR = 1.0


def day_findings(
    lake: Lake,
    engine: Engine,
    day: datetime.date,
    *,
    references: Sequence[Reference],
    policy: RoutingPolicy,
) -> Iterator[Finding]:
    """Yield drift, volume, shares and the queue of a day.

    And before the first labels the performance that its scores promise, unless they hardly resemble
    those of the model's held-out comments.
    """
    yield from _comment_findings(lake, day, references)
    if not tables.headline(lake, day):
        yield from _promised(lake, day, policy)
    yield from queue_metrics(day_queue(engine, day))


def _promised(lake: Lake, day: datetime.date, policy: RoutingPolicy) -> Iterator[Finding]:
    scores, contradiction = day_scores(lake, day), _contradiction(lake, day)
    known = tables.recalibration(lake, day, scores.model_version)
    score = deployed_scores(lake, day, scores, policy, known)
    for finding in expected_performance(
        scores.prob,
        copies_last(score, stored_copies(lake, day, scores)),
        review_fraction=policy.review_fraction,
        flagged=scores.flagged,
    ):
        if contradiction:
            finding = replace(finding, value=None, low=None, high=None, reason=contradiction)
        yield finding


def _contradiction(lake: Lake, day: datetime.date) -> str:
    """Return what contradicts that the scores of a day are calibrated; empty if nothing does."""
    held_out, today = model_reference(lake, day), read_profile(lake, day)
    if held_out and today.scored >= MINIMUM_COMMENTS:
        psi = compare_scores(today.scores["prob"], held_out.scores["prob"])
        if psi.low > _FAR:
            return "the scores hardly resemble those of the model's held-out comments"
    return ""


def _comment_findings(
    lake: Lake, day: datetime.date, references: Sequence[Reference]
) -> Iterator[Finding]:
    """Yield drift, volume and shares; insufficient if rows landed and none was published."""
    stored, landed = read_profiles(lake, [day]).get(day), lake.count("landed", day)
    today = stored or Profile()
    (trailing,) = (
        reference.comments or () for reference in references if reference.name == "trailing"
    )
    findings = chain(compare(today, references), day_metrics(today, trailing))
    if stored is not None or not landed:
        yield from findings
        return
    reason = f"not published: {landed:,} rows landed, and they have not passed data validation"
    for finding in findings:
        n = landed if finding.metric == "volume_ratio" else 0
        yield replace(finding, value=None, low=None, high=None, n=n, reason=reason)


def refresh_queue(lake: Lake, engine: Engine, day: datetime.date) -> None:
    """Update the queue metrics of an earlier day; unchanged rows are not written again."""
    kept = lake.table("drift", day)
    rows = drift_rows(day, queue_metrics(day_queue(engine, day)))
    queue = [row for row in kept.to_pylist() if row["feature"] == "queue"]
    if kept.num_rows and sorted(map(repr, queue)) != sorted(map(repr, rows.to_pylist())):
        lake.replace("drift", day, [rows], feature="queue")


def drift_rows(day: datetime.date, findings: Iterable[Finding]) -> pa.RecordBatch:
    """Return findings about `day` as rows of DRIFT."""
    rows = [{**asdict(finding), "dt": day, "status": finding.status} for finding in findings]
    return pa.RecordBatch.from_pylist(rows, schema=DRIFT)
