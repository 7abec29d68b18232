"""The check of a day's scores."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from modwatch.lake.schemas import QUARANTINE, SCORES
from modwatch.quality.ids import IdIndex
from modwatch.quality.rules import score_day_rules, score_row_rules
from modwatch.quality.schema import bools, columns_of, schema_faults
from modwatch.quality.shift import population_stability_index, probability_histogram
from modwatch.quality.suite import Measure, judge_day, judge_rows, share_in_words
from modwatch.quality.thresholds import Thresholds
from modwatch.quality.verdict import Refusals, ScoresStatistics, Verdict, counted, trailing

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class ScoresProfile:
    """M scores of a day as numbers, beside the N comments that should have one."""

    day: date
    #: The N comments' ids.
    comment_ids: pa.ChunkedArray
    #: (M,) int64: the comment of each score, as a position in `comment_ids`; N if unknown.
    comment: NDArray[np.int64]
    #: (M,) float32; NaN where the probability is null.
    prob: NDArray[np.float32]
    #: (M,) bool
    flagged: NDArray[np.bool_]
    model_versions: tuple[str, ...]
    #: What is wrong with the columns themselves, in words; empty when nothing is.
    schema_faults: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class CheckedScores:
    """The verdict on a day's scores, and the scores that it refuses."""

    verdict: Verdict
    #: Rows of `records.QUARANTINE`, stage `scores`.
    refused: pa.RecordBatch


def profile_scores(
    batches: Iterable[pa.RecordBatch],
    *,
    day: date,
    comment_ids: Iterable[pa.Array],
    role: str = "champion",
) -> ScoresProfile:
    """A profile of the scores of one role on one day, from one pass over its batches.

    Args:
        batches: rows of `records.SCORES`, in any order; those of other roles are left out.
        day: the UTC day that they belong to.
        comment_ids: the ids of the day's checked comments, in chunks.
        role: `champion` or `challenger`.
    """
    index = IdIndex.of(list(comment_ids))
    parts = [(np.empty(0, np.int64), np.empty(0, np.float32), np.empty(0, bool))]
    versions: set[str] = set()
    faults: tuple[str, ...] = ()
    for batch in batches:
        faults = faults or schema_faults(batch.schema, SCORES)
        columns = _of_role(batch, role)
        prob = pc.fill_null(columns["prob"], float("nan")).to_numpy()
        parts.append((index.positions(columns["comment_id"]), prob, bools(columns["flagged"])))
        versions.update(columns["model_version"].drop_null().unique().to_pylist())
    comment, prob, flagged = (np.concatenate(column) for column in zip(*parts, strict=True))
    return ScoresProfile(
        day=day,
        comment_ids=index.ids,
        comment=comment,
        prob=prob,
        flagged=flagged,
        model_versions=tuple(sorted(versions)),
        schema_faults=faults,
    )


def check_scores(
    profile: ScoresProfile,
    *,
    history: Iterable[Verdict] = (),
    thresholds: Thresholds | None = None,
) -> CheckedScores:
    """The verdict on a day's scores, and the scores that it refuses.

    Args:
        profile: the day, from `profile_scores`.
        history: verdicts of other days, in any order. Those that are earlier, recent enough, not
            rejected and of the same model version are compared with.
        thresholds: the bounds; None stands for the defaults.

    Raises:
        CheckError: Great Expectations could not evaluate a rule.
    """
    bounds = thresholds or Thresholds()
    rules = score_row_rules()
    judged = judge_rows(_row_frame(profile), rules)
    refusals = Refusals(
        day=profile.day, reason=judged.first_failed, reasons=tuple(rule.name for rule in rules)
    )
    measures = _day_measures(profile, refusals, history, bounds)
    verdict = Verdict(
        suite="scores",
        day=profile.day,
        rows=len(profile.prob),
        accepted=int(np.count_nonzero(refusals.reason == 0)),
        results=(*judge_day(measures, score_day_rules(bounds)), *judged.results),
        quarantined=refusals.counts(),
        statistics=_statistics(profile, refusals),
    )
    log.info(verdict.sentence, extra={"event": "scores_checked", "status": verdict.status})
    return CheckedScores(verdict=verdict, refused=_quarantine(profile, refusals))


def accepted_scores(
    batches: Iterable[pa.RecordBatch], checked: CheckedScores
) -> Iterator[pa.RecordBatch]:
    """Batches of `records.SCORES`: those of `batches`, without the refused scores."""
    refused = checked.refused.column("comment_id")
    for batch in batches:
        columns = columns_of(batch, SCORES)
        keep = pc.invert(pc.is_in(columns["comment_id"], refused))
        yield pa.RecordBatch.from_pydict(columns, schema=SCORES).filter(keep)


def _of_role(batch: pa.RecordBatch, role: str) -> dict[str, pa.Array]:
    columns = columns_of(batch, SCORES)
    wanted = pc.equal(columns["role"], role)
    return {name: column.filter(wanted) for name, column in columns.items()}


def _row_frame(profile: ScoresProfile) -> pd.DataFrame:
    """One row per score, one column per row-level rule."""
    return pd.DataFrame(
        {
            "missing_probability": np.isnan(profile.prob),
            "probability_out_of_range": profile.prob,
        }
    )


def _statistics(profile: ScoresProfile, refusals: Refusals) -> ScoresStatistics:
    valid = refusals.reason == 0
    versions = profile.model_versions
    return ScoresStatistics(
        scores=int(valid.sum()),
        flagged=int((profile.flagged & valid).sum()),
        model_version=versions[0] if len(versions) == 1 else None,
        histogram=probability_histogram(profile.prob[valid]),
    )


def _quarantine(profile: ScoresProfile, refusals: Refusals) -> pa.RecordBatch:
    """The refused scores by their comment's id; those of unknown comments stop the day anyway."""
    known = profile.comment < len(profile.comment_ids)
    refused = np.flatnonzero((refusals.reason > 0) & known)
    ids = profile.comment_ids.take(pa.array(profile.comment[refused])).to_pylist()
    rules = [refusals.reasons[code - 1] for code in refusals.reason[refused]]
    rows = [
        {"dt": profile.day, "stage": "scores", "rule": rule, "comment_id": comment_id}
        for rule, comment_id in zip(rules, ids, strict=True)
    ]
    return pa.RecordBatch.from_pylist(rows, schema=QUARANTINE)


def _day_measures(
    profile: ScoresProfile, refusals: Refusals, history: Iterable[Verdict], bounds: Thresholds
) -> dict[str, Measure]:
    """One figure for each day-level rule."""
    comments, versions = len(profile.comment_ids), len(profile.model_versions)
    scored = np.bincount(profile.comment, minlength=comments + 1)
    valid = np.bincount(profile.comment[refusals.reason == 0], minlength=comments + 1)[:comments]
    unscored = int(np.count_nonzero(valid == 0))
    share = unscored / max(comments, 1)
    tolerated = unscored <= bounds.tolerated_rows and share < 1
    words = f"{unscored:,} of {comments:,} comments ({share_in_words(unscored, comments)})"
    today = _statistics(profile, refusals)
    usual = _same_model(today, profile.day, history, bounds)
    return {
        "schema": Measure(value=len(profile.schema_faults), words=counted(profile.schema_faults)),
        "double_scores": _count(int(np.maximum(scored[:comments] - 1, 0).sum())),
        "unknown_scores": _count(int(scored[comments])),
        "several_model_versions": _count(versions),
        "unscored_many": Measure(value=0.0 if tolerated else share, words=words),
        "unscored": Measure(value=unscored, words=words),
        "score_shift": _score_shift(today, usual, bounds),
        "flagged_shift": _flagged_shift(today, usual, bounds),
    }


def _count(value: int) -> Measure:
    return Measure(value=value, words=f"{value:,}" if value else "none")


def _same_model(
    today: ScoresStatistics, day: date, history: Iterable[Verdict], bounds: Thresholds
) -> list[ScoresStatistics]:
    """The trailing days that the same model version scored, oldest first."""
    days = trailing(history, day=day, suite="scores", days=bounds.trailing_days)
    statistics = [v.statistics for v in days if isinstance(v.statistics, ScoresStatistics)]
    return [s for s in statistics if s.model_version == today.model_version is not None]


def _score_shift(
    today: ScoresStatistics, usual: Sequence[ScoresStatistics], bounds: Thresholds
) -> Measure:
    """PSI of the day's probabilities against those of the trailing days together."""
    if (missing := _too_little(today, usual, bounds)) is not None:
        return missing
    before = [sum(counts) for counts in zip(*(day.histogram for day in usual), strict=True)]
    value = population_stability_index(today.histogram, before)
    return Measure(value=value, words=f"PSI {value:.3f} against {len(usual)} trailing days")


def _flagged_shift(
    today: ScoresStatistics, usual: Sequence[ScoresStatistics], bounds: Thresholds
) -> Measure:
    """The flagged share as a ratio to the trailing days', with half a flag added to each
    so that none at all is a finite ratio."""
    if (missing := _too_little(today, usual, bounds)) is not None:
        return missing
    scores, flagged = sum(day.scores for day in usual), sum(day.flagged for day in usual)
    expected = flagged * today.scores / scores
    if max(expected, today.flagged) < bounds.min_flagged:
        words = f"under {bounds.min_flagged} comments are flagged or expected to be"
        return Measure(value=None, words=f"not judged: {words}")
    now, before = (today.flagged + 0.5) / today.scores, (flagged + 0.5) / scores
    words = (
        f"{share_in_words(today.flagged, today.scores)} flagged, "
        f"{share_in_words(flagged, scores)} before"
    )
    return Measure(value=now / before, words=words)


def _too_little(
    today: ScoresStatistics, usual: Sequence[ScoresStatistics], bounds: Thresholds
) -> Measure | None:
    """A figure that is not judged, when there are too few days or scores to compare with."""
    if len(usual) < bounds.min_trailing_days:
        words = f"{len(usual)} trailing days of this model, {bounds.min_trailing_days} needed"
        return Measure(value=None, words=f"not judged: {words}")
    scores = min(today.scores, sum(day.scores for day in usual))
    if scores < bounds.min_scores:
        return Measure(
            value=None, words=f"not judged: {scores:,} scores, {bounds.min_scores} needed"
        )
    return None
