"""The laboratory's sources of comments, and their settings `MODWATCH_SOURCE__…`."""

import datetime
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from modwatch.common.source_settings import SourceSettings

if TYPE_CHECKING:
    from modwatch_lab.community import Community
    from modwatch_lab.replay import ReplaySource

_log = logging.getLogger(__name__)


class _LaboratorySettings(SourceSettings):
    """What demonstration models are made for."""

    @property
    def invented(self) -> bool:
        """Whether a demonstration model says something of its comments."""
        return True


class ReplaySourceSettings(_LaboratorySettings):
    """A labelled corpus, replayed over consecutive days."""

    kind: Literal["replay"] = "replay"
    corpus: str = Field("wikipedia_talk", description="Format of the published corpus")
    path: Path = Field(description="File or folder of the corpus")
    first_day: datetime.date = Field(description="First day of the replay")
    days: int = Field(
        10, ge=1, description="Number of days that a corpus without times is spread over"
    )

    def open(self, *_: object) -> "ReplaySource":
        """Return the corpus; rows that cannot be used are counted in the log."""
        from modwatch_lab import corpora
        from modwatch_lab.replay import ReplaySource

        corpus = corpora.load(self.corpus, self.path)
        if corpus.left_out:
            _log.warning(
                "Rows of the corpus could not be used: %s.",
                ", ".join(f"{count} {reason}" for reason, count in corpus.left_out.items()),
                extra={"event": "corpus_rows_left_out", "left_out": dict(corpus.left_out)},
            )
        return ReplaySource(corpus=corpus, first_day=self.first_day, days=self.days)


class CommunitySourceSettings(_LaboratorySettings):
    """The synthetic community."""

    kind: Literal["community"] = "community"
    seed: int = Field(7, description="Random seed")
    comments_per_day: int = Field(2000, ge=0, description="Mean number of comments per day")
    dirt_rate: float = Field(0.0, ge=0, le=0.2, description="Share of defective rows")
    drift_from: datetime.date | None = Field(
        None, description="First day of a drift: new topics and new insults"
    )
    drift_platform: str | None = Field(
        None,
        description="A platform that is new on that day, to which the drift is confined: 40 % of "
        "the comments, 40 % of them toxic; default: the drift is everywhere",
    )

    def open(self, *_: object) -> "Community":
        """Return the community."""
        from modwatch_lab.community import Community, Drift

        drift = None
        if self.drift_from and self.drift_platform:
            drift = Drift(
                start=self.drift_from, platform=self.drift_platform, share=0.4, prevalence=0.4
            )
        elif self.drift_from:
            drift = Drift(start=self.drift_from)
        others = self.model_dump(exclude={"kind", "drift_from", "drift_platform"})
        return Community(drift=drift, **others)
