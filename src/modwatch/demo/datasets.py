"""The data of the two demos: the synthetic community, and comments from Wikipedia Talk."""

import datetime
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from modwatch.errors import SourceError
from modwatch.ingest import corpora
from modwatch.ingest.community import Community
from modwatch.ingest.community.metadata import comment_ids
from modwatch.ingest.corpora.corpus import Corpus, LabelledTexts
from modwatch.review.quality_control.gold import GoldComment

#: A Monday; fixed, so that all runs of a demo have the same results.
FIRST_DAY = datetime.date(2026, 1, 5)

#: Training comments of the synthetic community, and gold comments of each label.
_TRAINING, _GOLD_EACH = 20_000, 20

_STREAM = "context_gc.csv.gz"


@dataclass(frozen=True, kw_only=True)
class DemoData:
    """The data of one demo."""

    name: str
    title: str
    days: int
    #: `MODWATCH_*` variables; the environment has precedence.
    settings: Mapping[str, str]
    #: Training comments, none of which is in the stream.
    training: Callable[[], LabelledTexts]
    #: Expected prevalence of the stream, for training; from other sources than the stream.
    expected_prevalence: float
    #: The replayed corpus, with the scores of another model for comparison; None: no corpus.
    stream: Callable[[], Corpus] | None = None
    #: Gold comments, none of which is in the stream.
    gold: Callable[[], tuple[GoldComment, ...]] = tuple
    first_day: datetime.date = field(default=FIRST_DAY)

    @property
    def last_day(self) -> datetime.date:
        """The last day."""
        return self.first_day + datetime.timedelta(days=self.days - 1)

    def day_list(self) -> list[datetime.date]:
        """Return the days, in order."""
        return [self.first_day + datetime.timedelta(days=k) for k in range(self.days)]


def demo_data(name: str) -> DemoData:
    """Return the data of demo `name`, the value of the option `--data`.

    Raises:
        SourceError: the name is unknown, or the published data is missing.
    """
    datasets = {"synthetic": _synthetic, "wikipedia_talk": _wikipedia_talk}
    if name not in datasets:
        raise SourceError(f"--data must be {' or '.join(datasets)}, got {name!r}")
    return datasets[name]()


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
            "MODWATCH_SHARD_ROWS": "1200",
        },
        training=lambda: Community(seed=seed).training_comments(_TRAINING),
        expected_prevalence=Community(seed=seed).prevalence,
        gold=lambda: _gold(Community(seed=seed).training_comments(_TRAINING)),
    )


def _gold(training: LabelledTexts) -> tuple[GoldComment, ...]:
    """Return training comments, half of them toxic, with ids like those of the stream."""
    rows = [
        int(row)
        for label in (1, 0)
        for row in np.flatnonzero(training.labels == label)[:_GOLD_EACH]
    ]
    before = FIRST_DAY - datetime.timedelta(days=1)
    return tuple(
        GoldComment(
            comment_id=comment_id,
            text=training.texts[row],
            label=int(training.labels[row]),
            source="the community's history",
        )
        for row in sorted(rows)
        for comment_id in comment_ids(before, row, 1)
    )


def _wikipedia_talk() -> DemoData:
    folder = published_data() / "wikipedia_talk"
    if not (folder / _STREAM).exists():
        raise SourceError(
            f"{folder / _STREAM} does not exist; set MODWATCH_DATA to the folder of the published "
            "data, which contains wikipedia_talk, or use --data synthetic"
        )
    return DemoData(
        name="wikipedia_talk",
        title="real comments of Wikipedia Talk, 10 days of 1,000",
        days=10,
        settings={
            "MODWATCH_SOURCE__KIND": "replay",
            "MODWATCH_SOURCE__CORPUS": "wikipedia_talk",
            "MODWATCH_SOURCE__PATH": str(folder / _STREAM),
            "MODWATCH_SOURCE__FIRST_DAY": FIRST_DAY.isoformat(),
            "MODWATCH_SOURCE__DAYS": "10",
            "MODWATCH_SHARD_ROWS": "600",
        },
        training=lambda: corpora.training_corpus(
            "wikipedia_talk", folder, corpora.load("wikipedia_talk", folder / _STREAM)
        ),
        # Of the whole Wikipedia Talk corpus: 9.6 % (Kivlichan et al. 2021, section 4.2).
        expected_prevalence=0.096,
        stream=lambda: corpora.load("wikipedia_talk", folder / _STREAM),
    )


def published_data() -> Path:
    """Return the folder of published research data: MODWATCH_DATA, or `../shared/data`."""
    project = Path(__file__).resolve().parents[3]
    return Path(os.environ.get("MODWATCH_DATA", project.parent / "shared" / "data"))
