"""What an audit reads from the lake and the decision log: scores, texts and labels.

The comments of its period are streamed as they were scored and decided.
"""

import datetime
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import Engine, select
from tqdm import tqdm

from modwatch.audits.folder import AuditFolder
from modwatch.audits.review_items import audit_labels, queued_comments
from modwatch.common.columns import grouped
from modwatch.common.errors import AuditError
from modwatch.common.text import ERASED
from modwatch.data.lake.day_scores import model_origin
from modwatch.data.lake.delta import Lake
from modwatch.data.lake.erasure import text_commitments
from modwatch.review.queue.intake import recorded_erasures
from modwatch.review.queue.items import NewItem, content_columns, content_of
from modwatch.review.tables import event
from modwatch.statistics.audit.draw import (
    DrawnComment,
    Scored,
    ScoreHistogram,
    day_digest,
    texts_digest,
)
from modwatch.statistics.audit.labels import AuditLabel, Outcome, changed, key_of
from modwatch.statistics.audit.plan import SIDES, AuditPlan, PopulationDay
from modwatch.statistics.audit.sample_design import ScoreCounts
from modwatch.statistics.recalibration import KnownLabels

#: Columns whose values an audit reports on separately.
TRAITS = (*grouped(), "groups")

_SCORE = ["comment_id", "prob", "flagged"]
_MODEL = ["model_version", "threshold"]

#: Days before the period whose labels are used where the period itself has none.
_DAYS_BEFORE = 28


def survey(
    lake: Lake, days: list[datetime.date]
) -> tuple[tuple[PopulationDay, ...], ScoreCounts, ScoreCounts]:
    """Return the days, and the scores of flagged and of unflagged comments.

    Raises:
        AuditError: a day has comments without scores, or scores of several models.
    """
    flagged, unflagged = ScoreHistogram(), ScoreHistogram()
    columns = [*_SCORE, *_MODEL]
    surveyed = []
    for day in tqdm(days, desc="Reading scores", unit="day", disable=None):
        comments = lake.count("comments", day)
        scores = lake.read("scores", day, columns=columns, role="champion")
        counted = _CountedDay(day, scores, flagged, unflagged)
        digests = day_digest(counted), texts_digest(text_commitments(lake, day))
        surveyed.append(counted.summary(*digests, comments, model_origin(lake, day)))
    return tuple(surveyed), flagged.counts(), unflagged.counts()


def removed_days(database: Engine, lake: Lake, plan: AuditPlan) -> list[datetime.date]:
    """Return the days of a period whose comments are no longer kept, as it was recorded.

    Without the event, a missing day is one that somebody deleted.
    """
    removed = _removed(database)
    return [day for day in absent_days(lake, plan) if removed(day)]


def _removed(database: Engine) -> Callable[[datetime.date], bool]:
    """Return whether retention removed a day, as its last event says."""
    row = event.c
    query = select(row.details).where(row.action == "erase", row.details.has_key("before"))
    with database.connect() as connection:
        last = connection.scalar(query.order_by(row.position.desc()).limit(1)) or {}
    before, held = str(last.get("before", "")), str(last.get("held"))
    return lambda day: day.isoformat() < before and day.isoformat() not in held


def absent_days(lake: Lake, plan: AuditPlan) -> list[datetime.date]:
    """Return the days of a period that had comments and have none in the lake."""
    kept = set(lake.days("comments"))
    return [one.day for one in plan.population if one.comments and one.day not in kept]


class _CountedDay:
    """Counts a day's comments, scores and models while they stream by."""

    def __init__(
        self,
        day: datetime.date,
        batches: Iterable[pa.RecordBatch],
        flagged: ScoreHistogram,
        unflagged: ScoreHistogram,
    ) -> None:
        self._day, self._batches = day, batches
        self._histograms = (flagged, unflagged)
        self._comments = self._flagged = 0
        self._models: set[tuple[str, float | None]] = set()

    def __iter__(self) -> Iterator[Scored]:
        for batch in self._batches:
            part = _scored(self._day, batch)
            for histogram, side in zip(
                self._histograms, (part.flagged, ~part.flagged), strict=True
            ):
                histogram.add(part.prob[side])
            self._comments += part.prob.size
            self._flagged += int(part.flagged.sum())
            models = pa.Table.from_batches([batch.select(_MODEL)]).group_by(_MODEL).aggregate([])
            self._models |= {(row["model_version"], row["threshold"]) for row in models.to_pylist()}
            yield part

    def summary(self, digest: str, texts: str, comments: int, origin: str) -> PopulationDay:
        """Return the day for a plan; AuditError unless one model scored all its `comments`."""
        if comments != self._comments:
            raise AuditError(
                f"{self._day} has {comments} comments and {self._comments} scores; run "
                "score_comments for that day, or audit a period without it, as comments are kept "
                "for MODWATCH_KEEP_COMMENTS days"
            )
        if len(self._models) > 1:
            raise AuditError(
                f"several models scored {self._day}; run score_comments for it once more"
            )
        version, threshold = next(iter(self._models), ("", 0.5))
        return PopulationDay(
            day=self._day,
            comments=comments,
            flagged=self._flagged,
            model_version=version,
            threshold=threshold,
            digest=digest,
            texts=texts,
            model_origin=origin,
        )


def known_labels(lake: Lake, days: Sequence[PopulationDay]) -> dict[str, KnownLabels]:
    """Return by side what people have labelled of the comments that were routed on `days`.

    Every day's routed comments, the top and the random slice, are a random sample of it with known
    inclusion probabilities. Where no comment of the period has a label, those of the 28 days before
    are returned, if the same model scored them; where those have none, nothing.
    """
    model = next((day.model_version for day in days if day.comments), "")
    first = days[0].day
    before = [first - datetime.timedelta(days=back) for back in range(_DAYS_BEFORE, 0, -1)]
    for period in ([day.day for day in days], before):
        parts = [part for day in period if not (part := _routed_labels(lake, day, model)).empty]
        if parts:
            every = pd.concat(parts, ignore_index=True)
            source = f"labels of the comments routed from {period[0]} to {period[-1]}"
            return {
                side: KnownLabels(
                    score=rows["prob"].to_numpy(np.float64),
                    label=rows["label"].to_numpy(np.int64),
                    weight=rows["weight"].to_numpy(np.float64),
                    source=source,
                )
                for side, flagged in zip(SIDES, (True, False), strict=True)
                if len(rows := every[every["flagged"] == flagged])
            }
    return {}


def _routed_labels(lake: Lake, day: datetime.date, model: str) -> pd.DataFrame:
    """Return prob, flagged, label and weight of the labelled comments that `day` routed."""
    routed = lake.table("routed", day, columns=["comment_id", "stratum", "model_version"])
    labels = lake.table("labels", day, columns=["comment_id", "label"])
    known: pd.DataFrame = routed.to_pandas().merge(labels.to_pandas(), on="comment_id")
    known = known[known["model_version"] == model]
    if known.empty:
        return known
    design = lake.table("routing_design", day, columns=["stratum", "population"]).to_pandas()
    # Labels may be missing: those of a stratum stand for all of its comments.
    size = known["stratum"].map(design.set_index("stratum")["population"])
    known["weight"] = size / known.groupby("stratum")["comment_id"].transform("size")
    wanted = pa.array(known["comment_id"])
    batches = lake.read("scores", day, columns=_SCORE, role="champion")
    parts = [batch.filter(pc.is_in(batch.column("comment_id"), wanted)) for batch in batches]
    # A comment without a current score carries no information on the period.
    return known.merge(pa.Table.from_batches(parts).to_pandas(), on="comment_id")


def population(lake: Lake, plan: AuditPlan) -> Iterator[Scored]:
    """Yield the scores of the period of a plan, day by day."""
    for day in tqdm(plan.population, desc="Reading scores", unit="day", disable=None):
        yield from scored(lake, day.day)


def scored(lake: Lake, day: datetime.date) -> Iterator[Scored]:
    """Yield the scored comments of `day` with their traits."""
    traits = _Traits(lake, day)
    for batch in lake.read("scores", day, columns=_SCORE, role="champion"):
        yield _scored(day, batch, traits.following(batch.column("comment_id")))


def _scored(
    day: datetime.date,
    batch: pa.RecordBatch,
    traits: Mapping[str, list[tuple[str, ...]]] = MappingProxyType({}),
) -> Scored:
    return Scored(
        day=day,
        comment_id=batch.column("comment_id").to_pylist(),
        prob=batch.column("prob").to_numpy(),
        flagged=batch.column("flagged").to_numpy(zero_copy_only=False),
        traits=traits,
    )


class _Traits:
    """The traits of a day's comments, in the order of their scores."""

    def __init__(self, lake: Lake, day: datetime.date) -> None:
        self._lake, self._day = lake, day
        self._comments = lake.table("comments", day, columns=["comment_id", *TRAITS])
        self._done = 0
        self._where: pa.ChunkedArray | None = None

    def following(self, ids: pa.Array) -> dict[str, list[tuple[str, ...]]]:
        """Return the values of each trait of the next comments."""
        rows = self._comments.slice(self._done, len(ids))
        if self._where is not None or not rows.column("comment_id").combine_chunks().equals(ids):
            rows = self._comments.take(self._places().slice(self._done, len(ids)))
        self._done += len(ids)
        return {name: _values(rows.column(name)) for name in TRAITS}

    def _places(self) -> pa.ChunkedArray:
        """Return where each score's comment is: scores may lie in another order."""
        if self._where is None:
            scores = self._lake.table(
                "scores", self._day, columns=["comment_id"], role="champion"
            ).column(0)
            known = self._comments.column("comment_id").combine_chunks()
            self._where = pc.index_in(scores, known)
        return self._where


def _values(column: pa.ChunkedArray) -> list[tuple[str, ...]]:
    """Return the values of each comment, in order and each once; none for a missing one."""
    encoded = column.combine_chunks()
    if pa.types.is_list(column.type):
        return [tuple(sorted({one for one in words or () if one})) for words in encoded.to_pylist()]
    encoded = encoded.dictionary_encode()
    words = [(word,) if word else () for word in encoded.dictionary.to_pylist()] + [()]
    return [words[code] for code in encoded.indices.fill_null(len(words) - 1).to_pylist()]


def label_problems(database: Engine, audit: str, folder: AuditFolder) -> Iterator[str]:
    """Yield how many labels were changed after they were sealed, and how many were left out.

    Labellers may correct their decisions and do not know which were for an audit, so a label may
    change after it was sealed. The sealed file stays as it is. Of labels that were left out, time
    does not matter: what is not decided when labels are sealed is withdrawn, and the time of the
    sealing stands in the files, whose writer could have set it.
    """
    stage = folder.times("labelled")
    if not stage:
        return
    sealed, current = folder.labels(stage), audit_labels(database, audit)
    if number := len(changed(sealed, current)):
        yield (
            f"the labels of {_comments(number)} were changed in the decision log after they were "
            "sealed"
        )
    drawn = {key_of(comment) for comment in folder.sample(stage)}
    given = {key_of(label) for label in current} & drawn
    if number := len(given - {key_of(label) for label in sealed}):
        yield (
            f"{_comments(number)} of the sample {'has' if number == 1 else 'have'} labels in the "
            "decision log, and none in the files: labels were left out, which moves every figure"
        )


def queue_problems(database: Engine, lake: Lake, audit: str, folder: AuditFolder) -> Iterator[str]:
    """Yield the differences between the sample, the queue and the texts of the lake.

    What is only drawn, and not yet queued, is no difference.
    """
    queued = queued_comments(database, audit)
    stage, sealed = folder.times("drawn"), folder.times("labelled")
    drawn = folder.sample(stage) if stage else ()
    keys = {key_of(comment) for comment in drawn}
    if number := len(queued.keys() - keys):
        yield (
            f"{_comments(number)} in the queue of the audit {_are(number)} not in the sample: they "
            "were labelled, or may be, and were never drawn"
        )
    due = {key_of(comment) for comment in folder.sample(sealed)} if sealed else set()
    if number := len(due - queued.keys()):
        yield (
            f"{_comments(number)} of the sample {_are(number)} missing from the queue, although "
            "the labels are sealed: these comments cannot have been labelled"
        )
    outcomes = folder.outcomes(sealed) if sealed else ()
    said = {key_of(one) for one in outcomes if one.outcome == "erased"}
    if said and (number := len(said - recorded_erasures(database).keys())):
        yield (
            f"{_comments(number)} of the sample {_are(number)} said to be erased, and no erasure "
            "of the log names them: labels were avoided"
        )
    texts, removed = _texts(lake, drawn), _removed(database)
    number = sum(
        (item.text, item.parent_text) != (texts[key]["text"], texts[key]["parent_text"])
        for key, item in queued.items()
        if key in texts and not (item.text == ERASED and removed(key[0]))  # its comments go next
    )
    if number:
        yield (
            f"{_comments(number)} in the queue {_are(number)} shown with other words than the lake "
            "has: people labelled something else than the model scored"
        )


def outcomes(
    database: Engine, audit: str, drawn: Sequence[DrawnComment], labels: Iterable[AuditLabel]
) -> list[Outcome]:
    """Return what became of every drawn comment, in the order of the draw.

    Raises:
        AuditError: a comment is not queued.
    """
    queued = queued_comments(database, audit)
    given = Counter(key_of(label) for label in labels)
    missing = sum(key_of(comment) not in queued for comment in drawn)
    if missing:
        raise AuditError(f"audit {audit!r}: {_comments(missing)} of the sample are not queued")
    found = {key: item.outcome for key, item in queued.items()}
    # Else somebody only wrote that the text was erased.
    unnamed = {key for key, outcome in found.items() if outcome == "erased"}
    if unnamed:
        unnamed -= recorded_erasures(database).keys()
        found |= dict.fromkeys(unnamed, "withdrawn")
    return [
        Outcome(
            day=comment.day,
            comment_id=comment.comment_id,
            outcome=found[key_of(comment)],
            labels=given[key_of(comment)],
        )
        for comment in drawn
    ]


def raise_on_changed_labels(database: Engine, audit: str, folder: AuditFolder) -> None:
    """Raise AuditError when a label was changed after it was sealed, or left out."""
    for problem in label_problems(database, audit, folder):
        raise AuditError(f"audit {audit!r}: {problem}; cancel the audit and plan another")


def _comments(number: int) -> str:
    return "1 comment" if number == 1 else f"{number} comments"


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def queue_items(
    lake: Lake, plan: AuditPlan, drawn: Sequence[DrawnComment], sizes: Sequence[int]
) -> list[tuple[datetime.date, NewItem]]:
    """Return the drawn comments as the queue takes them, in the order of the draw.

    `sizes` (H,) are the comments of each stratum that all stages so far draw: over the stratum's
    comments, that is the probability with which each of them had to be drawn by now.
    """
    texts = _texts(lake, drawn)
    return [
        (
            comment.day,
            NewItem(
                **texts[comment.day, comment.comment_id],
                kind="audit",
                reason="audit",
                stratum=comment.stratum,
                inclusion_probability=sizes[comment.stratum]
                / plan.strata[comment.stratum].population,
                rank=rank,
                review_score=0.0,
                prob=comment.score,
                uncertainty=comment.score * (1 - comment.score),
                model_version=plan.model_version,
                labels_wanted=1,
                confirms=plan.confirms(comment.stratum, comment.key),
            ),
        )
        for rank, comment in enumerate(drawn, 1)
    ]


def _texts(
    lake: Lake, drawn: Sequence[DrawnComment]
) -> dict[tuple[datetime.date, str], dict[str, Any]]:
    """Return what people are shown of each drawn comment."""
    texts: dict[tuple[datetime.date, str], dict[str, Any]] = {}
    columns = content_columns(lake.columns)
    for day in sorted({comment.day for comment in drawn}):
        wanted = {comment.comment_id for comment in drawn if comment.day == day}
        for row in lake.comments(day, wanted, columns=columns):
            texts[day, row["comment_id"]] = content_of(row, lake.columns)
    return texts
