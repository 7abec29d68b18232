"""The synthetic community as a source: days of comments, and training comments."""

import datetime as dt
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from modwatch.common.account import Account
from modwatch.common.errors import SourceError
from modwatch.data.sources.labelled import LabelledTexts
from modwatch.data.sources.landing import BATCH_ROWS, column_batch, counted
from modwatch_lab.community import annotators, grammar
from modwatch_lab.community.annotators import Person
from modwatch_lab.community.ground_truth import (
    GREETING_TOXICITY,
    Latents,
    Mixture,
    chosen,
    draw_latents,
    kind_shares,
    mentions,
)
from modwatch_lab.community.lexicon import GROUPS

#: Volume from Monday to Sunday relative to the mean day; the mean is 1.
WEEKLY = (1.02, 0.98, 0.97, 0.99, 1.01, 1.06, 0.97)

#: Relative volume of each UTC hour: lowest at 3, highest at 20.
HOURLY = (
    5, 3, 2, 1, 1, 2, 4, 7, 9, 10, 10, 11, 13, 11, 10, 10, 11, 12, 14, 16, 18, 17, 13, 8,
)  # fmt: skip

_DAY_MICROSECONDS = 24 * 3600 * 1_000_000

#: During a drift: shares of comments about new topics, and of insults with new words and phrases.
_NEW_TOPICS, _COINAGES = 0.5, 0.6

_AUTHORS = 3000
_ANSWERED = 0.6
_ANNOTATORS, _MODERATORS = 40, 8
#: A reply answers one of this many preceding comments.
_REACH = 20

_SIZE, _LATENTS, _WORDS, _METADATA, _PLATFORM, _DRIFTED = range(6)  # independent random streams
_USUAL_PLATFORM = "synthetic"
_HISTORY = 0  # the "day" of training comments; ordinals of real days are far larger


@dataclass(frozen=True, kw_only=True)
class Drift:
    """A change of the community from one day on."""

    #: First day of the drift.
    start: dt.date
    #: P(label = 1) during the drift; None: unchanged.
    prevalence: float | None = None
    #: A platform that is new on the first day, to which the drift is confined; None: it is
    #: everywhere.
    platform: str | None = None
    #: Share of the comments that come from `platform`.
    share: float = 0.4


@dataclass(frozen=True, kw_only=True)
class Community:
    """A seeded synthetic community: a Source with known ground truth.

    A day depends on the fields below and its date only, so days can be read again and in any
    order. The comments contain what is hard for a model: the same words as insult, quotation,
    negation and vegetable; sarcasm and praise; new spellings.

    >>> community = Community(seed=7, comments_per_day=50)
    >>> batch = next(community.read(dt.date(2024, 1, 1)))
    >>> batch == next(community.read(dt.date(2024, 1, 1)))
    True
    """

    seed: int = 0
    #: Mean over a week; weekdays differ, see `WEEKLY`.
    comments_per_day: float = 2000
    #: P(label = 1).
    prevalence: float = 0.09
    drift: Drift | None = None
    #: Additional defective rows, as a share of the day: duplicate ids, empty texts, wrong days.
    dirt_rate: float = 0.0

    def __post_init__(self) -> None:
        kind_shares(self.prevalence)
        if self.seed < 0 or self.comments_per_day < 0 or not 0 <= self.dirt_rate <= 1:
            raise SourceError(
                "A community requires seed ≥ 0, comments_per_day ≥ 0 and dirt_rate in [0, 1]."
            )

    @property
    def name(self) -> str:
        """The seed, for messages and provenance."""
        return f"community:{self.seed}"

    @property
    def annotators(self) -> tuple[Person, ...]:
        """Annotators of every group, with different thresholds and high flip rates."""
        return annotators.annotators(_ANNOTATORS, self.seed)

    @property
    def moderators(self) -> tuple[Person, ...]:
        """Moderators, who agree more and have low flip rates."""
        return annotators.moderators(_MODERATORS, self.seed)

    def read(self, day: dt.date, account: Account | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the comments of `day` by time, with the schema LANDED, then its defective rows."""
        return counted(self._batches(day), account)

    def _batches(self, day: dt.date) -> Iterator[pa.RecordBatch]:
        size = self._size(day)
        for block in range(_blocks(size)):
            yield self._batch(day, block, size)
        for block, first, count in self._defects(size):
            yield defective_batch(day, first, self._batch(day, block, size).slice(0, count))

    def training_comments(self, size: int) -> LabelledTexts:
        """Return `size` labelled comments from before the first day and any drift."""
        mixture = self._mixture(None)
        texts: list[str] = []
        labels = []
        for block in range(_blocks(size)):
            rows = _block_size(block, size)
            latents = draw_latents(rows, mixture, self._rng(_HISTORY, _LATENTS, block))
            texts += grammar.write(latents, self._rng(_HISTORY, _WORDS, block))
            labels.append(latents.label)
        label = np.concatenate([np.zeros(0, np.int8), *labels])
        account = Account.of(len(texts))
        return LabelledTexts(texts=tuple(texts), labels=label, account=account, invented=True)

    def label(
        self, person: Person, wanted: Sequence[str], *, round_number: int = 0
    ) -> NDArray[np.int8]:
        """Return the labels, (N,) 0 or 1, that `person` gives to the comments of N ids.

        Raises SourceError when an id is not of this community.
        """
        toxicity = np.full(len(wanted), GREETING_TOXICITY)
        own_group = np.zeros(len(wanted), np.bool_)
        for (day, block), places in self._located(wanted).items():
            latents = self._latents(day, block, self._size(day))
            positions, rows = np.array(places).T
            toxicity[positions] = latents.toxicity[rows]
            # −1, no mention, is the empty name at the end.
            own_group[positions] = np.array([*GROUPS, ""])[latents.mention[rows]] == person.group
        return annotators.simulate_labels(
            person,
            wanted,
            toxicity,
            own_group=own_group,
            round_number=round_number,
            seed=self.seed,
        )

    def _located(
        self, wanted: Sequence[str]
    ) -> Mapping[tuple[dt.date, int], list[tuple[int, int]]]:
        """Return position in `wanted` and row in the block by day and block; no defective rows."""
        places: defaultdict[tuple[dt.date, int], list[tuple[int, int]]] = defaultdict(list)
        for position, comment_id in enumerate(wanted):
            letter, day, row = self._parsed(comment_id)
            if letter == "c":
                places[day, row // BATCH_ROWS].append((position, row % BATCH_ROWS))
        return places

    def _parsed(self, comment_id: str) -> tuple[str, dt.date, int]:
        try:
            letter, day, row = parse_id(comment_id)
        except ValueError as exc:
            raise self._unknown(comment_id) from exc
        size = self._size(day)
        defects = range(size, size + sum(count for _, _, count in self._defects(size)))
        if row not in (range(size) if letter == "c" else defects):
            raise self._unknown(comment_id)
        return letter, day, row

    def _unknown(self, comment_id: str) -> SourceError:
        return SourceError(f"Comment {comment_id!r} is not of {self.name}; pass ids of its days.")

    def _defects(self, size: int) -> Iterator[tuple[int, int, int]]:
        """Yield block, first row and number of defective rows for each block that has some."""
        first = size
        for block in range(_blocks(size)):
            count = round(self.dirt_rate * _block_size(block, size))
            if count:
                yield block, first, count
            first += count

    def _size(self, day: dt.date) -> int:
        return day_size(self.comments_per_day, day, self._rng(day.toordinal(), _SIZE, 0))

    def _rng(self, day: int, stream: int, block: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, day, stream, block])

    def _mixture(self, drift: Drift | None) -> Mixture:
        if drift is None:
            return Mixture(prevalence=self.prevalence, new_topics=0.0, coinages=0.0)
        return Mixture(
            prevalence=self.prevalence if drift.prevalence is None else drift.prevalence,
            new_topics=_NEW_TOPICS,
            coinages=_COINAGES,
        )

    def _drift_on(self, day: dt.date) -> Drift | None:
        return self.drift if self.drift and day >= self.drift.start else None

    def _is_drifted(self, day: dt.date, block: int, size: int) -> NDArray[np.bool_]:
        """Return (N,) whether each comment of the block is part of a drift."""
        drift, rows = self._drift_on(day), _block_size(block, size)
        if drift is None or drift.platform is None:
            return np.full(rows, drift is not None)
        return self._rng(day.toordinal(), _PLATFORM, block).random(rows) < drift.share

    def _latents(self, day: dt.date, block: int, size: int) -> Latents:
        drift, rows = self._drift_on(day), _block_size(block, size)
        rng = self._rng(day.toordinal(), _LATENTS, block)
        if drift is None or drift.platform is None:
            return draw_latents(rows, self._mixture(drift), rng)
        usual = draw_latents(rows, self._mixture(None), rng)
        other = draw_latents(
            rows, self._mixture(drift), self._rng(day.toordinal(), _DRIFTED, block)
        )
        return chosen(self._is_drifted(day, block, size), other, usual)

    def _platforms(self, day: dt.date, block: int, size: int) -> list[str]:
        drift = self._drift_on(day)
        new = (drift and drift.platform) or _USUAL_PLATFORM
        drifted = self._is_drifted(day, block, size)
        return [new if is_new else _USUAL_PLATFORM for is_new in drifted.tolist()]

    def _batch(self, day: dt.date, block: int, size: int) -> pa.RecordBatch:
        first = block * BATCH_ROWS
        latents = self._latents(day, block, size)
        texts = grammar.write(latents, self._rng(day.toordinal(), _WORDS, block))
        rng = self._rng(day.toordinal(), _METADATA, block)
        position = (first + np.arange(len(texts)) + rng.random(len(texts))) / size
        roots, parents = threads(len(texts), rng)
        columns = {
            "origin": [self.name] * len(texts),
            "comment_id": comment_ids(day, first, len(texts)),
            "created_at": _midnight(day) + times_of_day(position),
            "text": texts,
            "platform": self._platforms(day, block, size),
            "thread_id": [f"t{day:%Y%m%d}-{first + root:07d}" for root in roots],
            "parent_text": [texts[p] if p is not None else None for p in parents],
            "language": [grammar.LEXICONS[i].language for i in latents.language.tolist()],
            "author_id": authors(len(texts), rng),
            "groups": mentions(latents),
            "label": latents.label,
        }
        return column_batch(day, first, columns)


def _blocks(size: int) -> int:
    return -(-size // BATCH_ROWS)


def _block_size(block: int, size: int) -> int:
    return min(BATCH_ROWS, size - block * BATCH_ROWS)


def _midnight(day: dt.date) -> int:
    """Return microseconds from 1970 to the beginning of `day`, UTC."""
    return (day - dt.date(1970, 1, 1)).days * _DAY_MICROSECONDS


#: Valid right-to-left text: "hello everyone, thank you for the garden".
_RIGHT_TO_LEFT = "שלום לכולם, תודה על הגינה 🌱"


def defective_batch(day: dt.date, first: int, clean: pa.RecordBatch) -> pa.RecordBatch:
    """Return defective copies of the rows of `clean`, numbered from `first` within the day.

    The defects alternate: a duplicate row, an empty text, a timestamp on the next day, and a
    right-to-left greeting with an emoji, which is valid. All but the duplicates have new ids.
    """
    rows = clean.to_pylist()
    for number, row in enumerate(rows):
        defect = number % 4
        if defect:
            row["comment_id"], row["label"] = f"x{day:%Y%m%d}-{first + number:07d}", 0
        if defect == 1:
            row["text"] = ""
        elif defect == 2:
            row["created_at"] += dt.timedelta(days=1)
        elif defect == 3:
            row.update(text=_RIGHT_TO_LEFT, language="he", groups=[])
    names = [name for name in clean.schema.names if name not in {"dt", "row"}]
    return column_batch(day, first, {name: [row[name] for row in rows] for name in names})


def day_size(mean: float, day: dt.date, rng: np.random.Generator) -> int:
    """Return the number of comments of `day`: `mean`, times a weekday factor, with 2 % noise."""
    return round(mean * WEEKLY[day.weekday()] * float(np.exp(rng.normal(0, 0.02))))


def times_of_day(position: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return microseconds since midnight at quantiles `position` in [0, 1) of the daily profile.

    >>> times_of_day(np.array([0.0, 0.999999])).tolist()[0]
    0
    """
    share = np.concatenate([[0.0], np.cumsum(HOURLY) / sum(HOURLY)])  # (25,)
    hours = np.interp(position, share, np.arange(25.0))
    since_midnight: NDArray[np.int64] = (hours * 3600e6).astype(np.int64)
    return np.minimum(since_midnight, _DAY_MICROSECONDS - 1)


def comment_ids(day: dt.date, first: int, size: int) -> list[str]:
    """Return ids made of day and row, such as `c20240101-0000000`."""
    return [f"c{day:%Y%m%d}-{first + number:07d}" for number in range(size)]


def parse_id(comment_id: str) -> tuple[str, dt.date, int]:
    """Return the letter, day and row of an id; ValueError for other text.

    >>> parse_id("c20240101-0000017")
    ('c', datetime.date(2024, 1, 1), 17)
    """
    letter, day, dash, row = comment_id[:1], comment_id[1:9], comment_id[9:10], comment_id[10:]
    if letter not in {"c", "x"} or dash != "-" or not row.isdecimal():
        raise ValueError("not an id of a community")
    return letter, dt.date.fromisoformat(day), int(row)


def threads(size: int, rng: np.random.Generator) -> tuple[list[int], list[int | None]]:
    """Return for each comment its thread's first comment, and the comment it answers, if any."""
    roots: list[int] = []
    parents: list[int | None] = []
    answers = (rng.random(size) < _ANSWERED).tolist()
    back = rng.random(size).tolist()
    for i in range(size):
        parent = i - 1 - int(back[i] * min(i, _REACH)) if answers[i] and i else None
        parents.append(parent)
        roots.append(i if parent is None else roots[parent])
    return roots, parents


def authors(size: int, rng: np.random.Generator) -> list[str]:
    """Return pseudonyms of authors; a few write most comments."""
    return [f"a{number:04d}" for number in (_AUTHORS * rng.random(size) ** 3).astype(int).tolist()]
