"""Scores that a source brings: what it may leave out, and what counts then."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

#: The columns of `landed` that a source of scores may map, too. `prob` is required.
SCORE_COLUMNS = ("prob", "model_version", "flagged")


@dataclass(frozen=True, kw_only=True)
class OwnScores:
    """What stands for the columns that a source of scores does not have.

    >>> OwnScores(threshold=0.7).left_out({"prob": 0.8}, available=["prob", "model_version"])
    {'flagged': True}
    """

    #: In [0, 1]; without a column `flagged`, comments with prob > threshold are flagged.
    threshold: float = 0.5
    #: Without a column `model_version`.
    model_version: str = "own"

    def left_out(
        self, values: Mapping[str, Any], *, available: Collection[str]
    ) -> dict[str, bool | str | None]:
        """Return the values of the score columns that are not `available`, for a row of values.

        A column that the source has is taken as it is: a missing value of it stays missing.
        """
        filled: dict[str, bool | str | None] = {}
        if "model_version" not in available:
            filled["model_version"] = self.model_version
        if "flagged" not in available:
            prob = values.get("prob")
            filled["flagged"] = None if prob is None else bool(prob > self.threshold)
        return filled
