"""The data of the demos: the synthetic community, Wikipedia Talk, and Civil Comments."""

import datetime
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np

from modwatch.common.account import Account
from modwatch.common.errors import SourceError
from modwatch.data.sources.labelled import LabelledTexts
from modwatch.review.quality_control.gold import GoldComment
from modwatch.review.queue.items import content_of
from modwatch_lab import corpora
from modwatch_lab.community import Community
from modwatch_lab.corpora.corpus import Corpus
from modwatch_lab.simulated import Ratings

#: A Monday; fixed, so that all runs of a demo have the same comments and days. Which comments are
#: reviewed at random differs, as the salt of the sampling does.
FIRST_DAY = datetime.date(2026, 1, 5)

#: Training comments of the synthetic community, and gold comments of each label.
_TRAINING, _GOLD_EACH = 20_000, 100
_EVALUATION_DAYS = 2

#: Name of the audit of a demo.
AUDIT = "demo"

#: Of the drift of the synthetic community.
_NEW_PLATFORM, _DRIFTED_DAYS = "app", 3

_STREAM = "context_gc.csv.gz"
_RATED_STREAM = "comments_with_ratings.parquet"
_TRAINING_FILE = "balanced_test.csv.gz"


@dataclass(frozen=True, kw_only=True)
class DemoData:
    """The data of one demo."""

    name: str
    title: str
    days: int
    #: `MODWATCH_*` variables; the environment has precedence.
    settings: Mapping[str, str]
    #: Training comments, none in the stream.
    training: Callable[[], LabelledTexts]
    #: Expected prevalence of the stream, for training; from other sources than the stream.
    expected_prevalence: float
    #: Labelled comments that models are compared on; similar ones are left out of training.
    evaluation: Callable[[], LabelledTexts] | None = None
    #: The replayed corpus with the scores of another model, for comparison; None: no such scores.
    stream: Callable[[], Corpus] | None = None
    #: Gold comments, none in the stream.
    gold: Callable[[], tuple[GoldComment, ...]] = tuple
    #: Real ratings of the stream, which the simulated moderators give; None: they give the truth,
    #: with errors.
    ratings: Callable[[], Ratings | None] = lambda: None
    first_day: datetime.date = field(default=FIRST_DAY)

    @property
    def last_day(self) -> datetime.date:
        """The last day."""
        return self.first_day + datetime.timedelta(days=self.days - 1)

    def day_list(self) -> list[datetime.date]:
        """Return the days, in order."""
        return [self.first_day + datetime.timedelta(days=k) for k in range(self.days)]


def demo_data(name: str, *, drift: bool = False) -> DemoData:
    """Return the data of demo `name`, the value of the option `--data`.

    With `drift`, the synthetic community has another platform from its eighth day on, with insults
    that the model does not know.

    Raises:
        SourceError: the name is unknown, the published data is missing, or it cannot drift.
    """
    if drift and name != "synthetic":
        raise SourceError(f"--drift: the comments of --data {name} are real; omit the option")
    datasets = {
        "synthetic": _synthetic,
        "wikipedia_talk": _wikipedia_talk,
        "civil_comments": _civil_comments,
    }
    if name not in datasets:
        *others, last = datasets
        raise SourceError(f"--data must be {', '.join(others)} or {last}, got {name!r}")
    return _drifting(_synthetic()) if drift else datasets[name]()


def training_data(name: str) -> LabelledTexts:
    """Return the training comments of demo `name`, and the prevalence that its stream will have."""
    data = demo_data(name)
    return replace(data.training(), prevalence=data.expected_prevalence)


#: Of the entry points `modwatch.training_data`.
SYNTHETIC, WIKIPEDIA_TALK, CIVIL_COMMENTS = (
    partial(training_data, name) for name in ("synthetic", "wikipedia_talk", "civil_comments")
)


def _drifting(data: DemoData) -> DemoData:
    """Return the synthetic data with a week as before, and three days with a drift."""
    start = data.last_day + datetime.timedelta(days=1)
    drift = {
        "MODWATCH_SOURCE__DRIFT_FROM": start.isoformat(),
        "MODWATCH_SOURCE__DRIFT_PLATFORM": _NEW_PLATFORM,
    }
    return replace(
        data,
        title=f"the synthetic community, 10 days of about 2,000 comments, a drift from {start} on",
        days=data.days + _DRIFTED_DAYS,
        settings={**data.settings, **drift},
    )


def _synthetic() -> DemoData:
    seed = 7
    return DemoData(
        name="synthetic",
        title="the synthetic community, 7 days of about 2,000 comments",
        days=7,
        settings={
            "MODWATCH_SOURCE__KIND": "community",
            "MODWATCH_SOURCE__SEED": str(seed),
            "MODWATCH_SOURCE__COMMENTS_PER_DAY": "2000",
            "MODWATCH_SOURCE__DIRT_RATE": "0.005",
            "MODWATCH_SHARD_TOKENS": "45000",
        },
        training=lambda: Community(seed=seed).training_comments(_TRAINING),
        evaluation=lambda: _days_before(Community(seed=seed)),
        expected_prevalence=Community(seed=seed).prevalence,
        gold=lambda: _gold(Community(seed=seed)),
    )


def _days_before(community: Community) -> LabelledTexts:
    """Return the comments of the days before the first, with the groups that they mention."""
    days = (FIRST_DAY - datetime.timedelta(days=k) for k in range(1, _EVALUATION_DAYS + 1))
    columns = ["text", "label", "groups"]
    rows = [
        row for day in days for batch in community.read(day)
        for row in batch.select(columns).to_pylist() if row["text"]
    ]  # fmt: skip
    return LabelledTexts(
        texts=tuple(row["text"] for row in rows),
        labels=np.array([row["label"] for row in rows]),
        account=Account.of(len(rows)),
        groups=tuple(tuple(row["groups"] or ()) for row in rows),
    )


def _every_tenth(training: LabelledTexts) -> LabelledTexts:
    return training.without(np.arange(len(training.texts)) % 10 != 0, "for_training")


def _gold(community: Community) -> tuple[GoldComment, ...]:
    """Return comments of the day before the first, half of them toxic."""
    before = FIRST_DAY - datetime.timedelta(days=1)
    rows = [row for batch in community.read(before) for row in batch.to_pylist() if row["text"]]
    return tuple(
        GoldComment(source="the community's history", label=row["label"], **content_of(row))
        for label in (0, 1)
        for row in [row for row in rows if row["label"] == label][:_GOLD_EACH]
    )


def _wikipedia_talk() -> DemoData:
    path = published_file("wikipedia_talk", _STREAM)

    def stream() -> Corpus:
        return corpora.load("wikipedia_talk", path)

    def training() -> LabelledTexts:
        return corpora.training_corpus("wikipedia_talk", path.parent, stream())

    return DemoData(
        name="wikipedia_talk",
        title="real comments of Wikipedia Talk, 10 days of 1,000",
        days=10,
        settings={
            "MODWATCH_SOURCE__KIND": "replay",
            "MODWATCH_SOURCE__CORPUS": "wikipedia_talk",
            "MODWATCH_SOURCE__PATH": str(path),
            "MODWATCH_SOURCE__FIRST_DAY": FIRST_DAY.isoformat(),
            "MODWATCH_SOURCE__DAYS": "10",
            "MODWATCH_SHARD_TOKENS": "60000",
        },
        training=training,
        # Of the whole Wikipedia Talk corpus: 9.6 % (Kivlichan et al. 2021, section 4.2).
        expected_prevalence=0.096,
        evaluation=lambda: _every_tenth(training()),
        stream=stream,
    )


def _civil_comments() -> DemoData:
    path = published_file("civil_comments_cctk", _RATED_STREAM)
    folder = published_file("wikipedia_talk", _TRAINING_FILE).parent

    def stream() -> Corpus:
        return corpora.load("civil_comments_cctk", path)

    def training() -> LabelledTexts:
        """Comments of another platform than that of the stream: Wikipedia Talk."""
        return corpora.training_corpus("wikipedia_talk", folder, stream())

    return DemoData(
        name="civil_comments",
        title="30,000 real comments of Civil Comments on 5 days, labelled with real ratings",
        days=5,
        settings={
            "MODWATCH_SOURCE__KIND": "replay",
            "MODWATCH_SOURCE__CORPUS": "civil_comments_cctk",
            "MODWATCH_SOURCE__PATH": str(path),
            "MODWATCH_SOURCE__FIRST_DAY": FIRST_DAY.isoformat(),
            "MODWATCH_SHARD_TOKENS": "600000",
        },
        training=training,
        # Of the whole Civil Comments corpus: 8.0 % (Jigsaw's train.csv, at least half of the
        # ratings toxic).
        expected_prevalence=0.08,
        evaluation=lambda: _every_tenth(training()),
        ratings=lambda: _ratings(stream()),
    )


def _ratings(corpus: Corpus) -> Ratings:
    """Return the ratings of a corpus; one that is unsure does not call the comment toxic."""
    by_comment: dict[str, list[int]] = {}
    if corpus.annotations is None:
        return Ratings(by_comment=by_comment)
    votes = corpus.annotations.select(["comment_id", "label"])
    for comment_id, label in zip(*(column.to_pylist() for column in votes.columns), strict=True):
        by_comment.setdefault(comment_id, []).append(label or 0)
    return Ratings(by_comment=by_comment)


def published_file(folder: str, file: str, *, root: Path | None = None) -> Path:
    """Return the path of a published file, below `root` (default: `published_data()`).

    Raises:
        SourceError: the file does not exist.
    """
    path = (root or published_data()) / folder / file
    if not path.exists():
        raise SourceError(
            f"{path} does not exist; set MODWATCH_DATA to the folder of the published data, which "
            f"contains {folder}, or use --data synthetic"
        )
    return path


def published_data() -> Path:
    """Return the folder of published research data: MODWATCH_DATA, or `../shared/data`."""
    project = Path(__file__).resolve().parents[3]
    return Path(os.environ.get("MODWATCH_DATA", project.parent / "shared" / "data"))
