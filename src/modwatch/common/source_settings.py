"""What the settings of every kind of source have in common.

A package adds a kind by an entry point of the group `modwatch.sources`: its name is the kind, its
object a class of `SourceSettings`.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from modwatch.common.columns import Column


class SourceSettings(BaseModel):
    """The settings `MODWATCH_SOURCE__…` of one kind of source: a field each.

    A kind is a subclass with a field `kind: Literal["name"] = "name"`. The description of a field
    is its row in the documentation. A value without a default is required.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    #: The kind, MODWATCH_SOURCE__KIND.
    kind: str

    @property
    def brings_scores(self) -> bool:
        """Whether comments come with scores, so that no model scores them."""
        return False

    @property
    def invented(self) -> bool:
        """Whether its comments are made up; of others, a demonstration model says nothing."""
        return False

    def open(self, folder: Path | None = None, own: Sequence[Column] = (), /) -> Any:
        """Return the source, a `modwatch.data.sources.landing.Source`.

        In `folder` it may keep what saves work the next time; None: nowhere. `own` are the columns
        that MODWATCH_COLUMNS adds, which it may have. Imports what it needs itself, since all
        processes load the class, and few open the source.
        """
        raise NotImplementedError
