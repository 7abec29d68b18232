"""The two demos: the synthetic community, and real comments from Wikipedia Talk."""

import datetime
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from modwatch.errors import SourceError
from modwatch.ingest.community.metadata import comment_ids
from modwatch.ingest.corpora.corpus import Corpus, LabelledTexts
from modwatch.review.checks.gold import GoldComment

#: A Monday, fixed so that two demos give the same figures.
FIRST_DAY = datetime.date(2026, 1, 5)

#: Comments of the synthetic community to train on, and gold comments of either label.
_TRAINING, _GOLD_EACH = 20_000, 20

_STREAM = "context_gc.csv.gz"


@dataclass(frozen=True, kw_only=True)
class DemoData:
    """What one demo replays and trains on."""

    name: str
    title: str
    days: int
    #: `MODWATCH_*` settings; those of the environment go before.
    settings: Mapping[str, str]
    #: The labelled comments to train on; nothing of the stream is among them.
    training: Callable[[], LabelledTexts]
    #: Share of toxic comments that training expects of the stream, as known from elsewhere.
    expected_prevalence: float
    #: The replayed corpus, with another model's scores, to compare with; None: there is none.
    stream: Callable[[], Corpus] | None = None
    #: Comments of known label that moderators meet unmarked; none of the stream is among them.
    gold: Callable[[], tuple[GoldComment, ...]] = tuple
    first_day: datetime.date = field(default=FIRST_DAY)

    @property
    def last_day(self) -> datetime.date:
        """The last replayed day."""
        return self.first_day + datetime.timedelta(days=self.days - 1)

    def day_list(self) -> list[datetime.date]:
        """Return the replayed days, in order."""
        return [self.first_day + datetime.timedelta(days=k) for k in range(self.days)]


def demo_data(name: str) -> DemoData:
    """Return the demo called `name`.

    Raises:
        SourceError: there is none of that name, or its data is not at hand.
    """
    makers = {"synthetic": _synthetic, "wikipedia_talk": _wikipedia_talk}
    if name not in makers:
        raise SourceError(f"no demo is called {name!r}; set DATA to one of {', '.join(makers)}")
    return makers[name]()


def _synthetic() -> DemoData:
    from modwatch.ingest.community import Community

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
    """Return as many toxic as other training comments; their ids look like all others."""
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
    from modwatch.ingest import corpora

    folder = published_data() / "wikipedia_talk"
    if not (folder / _STREAM).exists():
        raise SourceError(
            f"the published data of the demo is not in {folder}; "
            "set MODWATCH_DATA to the folder that holds wikipedia_talk"
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
        # Of the Wikipedia Talk corpus at large: 9.6 % (Kivlichan et al. 2021, section 4.2).
        expected_prevalence=0.096,
        stream=lambda: corpora.load("wikipedia_talk", folder / _STREAM),
    )


def published_data() -> Path:
    """Return the folder of published research data: MODWATCH_DATA, or `../shared/data`."""
    project = Path(__file__).resolve().parents[3]
    return Path(os.environ.get("MODWATCH_DATA", project.parent / "shared" / "data"))
