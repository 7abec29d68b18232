"""The comments of an audit's period, as they were scored and decided, streamed from the lake."""

import datetime
from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from modwatch.audit.design import ScoreCounts
from modwatch.audit.draw import Scored, ScoreHistogram, day_digest
from modwatch.audit.plan import PopulationDay
from modwatch.errors import AuditError
from modwatch.lake.delta import Lake

#: Columns by which an audit's figures are told apart.
TRAITS = ("language", "platform", "groups")

_ONE_DAY = datetime.timedelta(days=1)


def days_between(first: datetime.date, last: datetime.date) -> list[datetime.date]:
    """Return the days of a period, both ends included.

    Raises:
        AuditError: the period ends before it begins.
    """
    if last < first:
        raise AuditError(f"the period ends on {last}, before it begins on {first}")
    return [first + number * _ONE_DAY for number in range((last - first).days + 1)]


def survey(
    lake: Lake, days: list[datetime.date]
) -> tuple[tuple[PopulationDay, ...], ScoreCounts, ScoreCounts]:
    """Return the days, and the scores of flagged and of unflagged comments.

    Raises:
        AuditError: a day has comments without scores, or scores of several models.
    """
    flagged, unflagged = ScoreHistogram(), ScoreHistogram()
    found = []
    for day in days:
        counted = _Counted(scored(lake, day, traits=False), flagged, unflagged)
        digest = day_digest(counted)
        _refuse_missing(lake, day, counted.comments)
        version, threshold = _model(lake, day)
        found.append(
            PopulationDay(
                day=day,
                comments=counted.comments,
                flagged=counted.flagged,
                model_version=version,
                threshold=threshold,
                digest=digest,
            )
        )
    return tuple(found), flagged.counts(), unflagged.counts()


class _Counted:
    """Counts a day's comments and their scores while they stream by."""

    def __init__(
        self, parts: Iterable[Scored], flagged: ScoreHistogram, unflagged: ScoreHistogram
    ) -> None:
        self.comments = self.flagged = 0
        self._parts, self._histograms = parts, (flagged, unflagged)

    def __iter__(self) -> Iterator[Scored]:
        for part in self._parts:
            for histogram, inside in zip(
                self._histograms, (part.flagged, ~part.flagged), strict=True
            ):
                histogram.add(part.prob[inside])
            self.comments += part.prob.size
            self.flagged += int(part.flagged.sum())
            yield part


def scored(lake: Lake, day: datetime.date, *, traits: bool = True) -> Iterator[Scored]:
    """Yield the scored comments of `day`, with their traits when asked for."""
    told = _Traits(lake, day) if traits else None
    names = ["comment_id", "prob", "flagged"]
    for batch in lake.read("scores", day, columns=names, role="champion"):
        ids = batch.column("comment_id")
        yield Scored(
            day=day,
            comment_id=ids.to_pylist(),
            prob=batch.column("prob").to_numpy(),
            flagged=batch.column("flagged").to_numpy(zero_copy_only=False),
            traits=told.of(ids) if told is not None else {},
        )


class _Traits:
    """The traits of a day's comments, to be had for their scores in the order of these."""

    def __init__(self, lake: Lake, day: datetime.date) -> None:
        self._lake, self._day = lake, day
        self._told = lake.table("comments", day, columns=["comment_id", *TRAITS])
        self._done = 0
        self._where: pa.ChunkedArray | None = None

    def of(self, ids: pa.Array) -> dict[str, list[tuple[str, ...]]]:
        """Return the values of each trait of the next comments."""
        rows = self._told.slice(self._done, len(ids))
        if self._where is not None or not rows.column("comment_id").combine_chunks().equals(ids):
            rows = self._told.take(self._places().slice(self._done, len(ids)))
        self._done += len(ids)
        return {name: _values(rows.column(name)) for name in TRAITS}

    def _places(self) -> pa.ChunkedArray:
        """Return where each score's comment is: scores may lie in another order."""
        if self._where is None:
            scores = self._lake.table(
                "scores", self._day, columns=["comment_id"], role="champion"
            ).column(0)
            known = self._told.column("comment_id").combine_chunks()
            self._where = pc.index_in(scores, known)
        return self._where


def _values(column: pa.ChunkedArray) -> list[tuple[str, ...]]:
    """Return the values of each comment, in order and each once; none for a missing one."""
    encoded = column.combine_chunks()
    if pa.types.is_list(column.type):
        return [tuple(sorted({one for one in each or () if one})) for each in encoded.to_pylist()]
    encoded = encoded.dictionary_encode()
    words = [(each,) if each else () for each in encoded.dictionary.to_pylist()] + [()]
    return [words[code] for code in encoded.indices.fill_null(len(words) - 1).to_pylist()]


def _refuse_missing(lake: Lake, day: datetime.date, scores: int) -> None:
    comments = lake.count("comments", day)
    if comments != scores:
        raise AuditError(
            f"{day} has {comments} comments and {scores} scores; run score_comments for that day, "
            "or audit a period without it"
        )


def _model(lake: Lake, day: datetime.date) -> tuple[str, float]:
    """Return version and threshold of the model that scored the day; of an empty day none."""
    names = ["model_version", "threshold"]
    found = {
        (row["model_version"], row["threshold"])
        for batch in lake.read("scores", day, columns=names, role="champion")
        for row in pa.Table.from_batches([batch]).group_by(names).aggregate([]).to_pylist()
    }
    if len(found) > 1:
        raise AuditError(f"several models scored {day}; run score_comments for it once more")
    return found.pop() if found else ("", 0.5)
