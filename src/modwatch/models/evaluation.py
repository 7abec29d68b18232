"""Compares a version with the champion on the same frozen comments, for its promotion."""

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from modwatch.common.errors import ModelError
from modwatch.common.text import markdown_table
from modwatch.statistics.collaboration.model_comparison import ScoredByModel, compare_models
from modwatch.statistics.live.figures import title_of

_TITLES = {
    "false_positive_rate_gap": "Largest gap of a group's false-positive rate",
    "false_negative_rate_gap": "Largest gap of a group's false-negative rate",
}


@dataclass(frozen=True, kw_only=True)
class FrozenSet:
    """Labelled comments that models are compared on and that none is trained on."""

    #: n texts.
    texts: Sequence[str]
    #: (n,) 0 or 1.
    label: NDArray[np.int8]
    #: Identities that each comment mentions; None: not known.
    groups: Sequence[Collection[str]] | None

    def __post_init__(self) -> None:
        if not 0 < int(self.label.sum()) < len(self.label):
            raise ModelError(
                "the evaluation data needs toxic comments and others; correct "
                "MODWATCH_EVALUATION_DATA"
            )

    @property
    def digest(self) -> str:
        """SHA-256 of texts, labels and groups: what makes two evaluations comparable."""
        named = [sorted(names) for names in self.groups] if self.groups is not None else None
        content = json.dumps([list(self.texts), self.label.tolist(), named])
        return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """The result; without texts."""

    version: str
    #: None if there is no champion to compare with.
    champion: str | None
    comments: int
    toxic: int
    #: Of the frozen set.
    digest: str
    strategy: str
    review_fraction: float
    #: One entry a metric: the columns of `model_comparison.compare_models`.
    rows: Sequence[Mapping[str, Any]]

    @property
    def worse(self) -> list[str]:
        """The metrics in which the version is worse than the champion."""
        return [str(row["metric"]) for row in self.rows if row["verdict"] == "worse"]

    @property
    def passed(self) -> bool:
        """Whether the version is worse in nothing."""
        return not self.worse

    def describe(self) -> str:
        """Return the evaluation in Markdown."""
        on = (
            f"{self.comments:,} evaluation comments, {self.toxic:,} of them toxic; "
            f"review strategy {self.strategy}, review fraction {self.review_fraction:g}."
        )
        if self.champion is None:
            heads = ["Metric", f"Version {self.version}"]
            lines = [[_title(row), f"{row['challenger']:.4f}"] for row in self.rows]
            return f"{on} There is no champion to compare with.\n\n{markdown_table(heads, lines)}"
        heads = [
            *("Metric", f"Champion {self.champion}", f"Version {self.version}"),
            *("Difference (95 % interval)", "Verdict"),
        ]
        lines = [
            [
                _title(row),
                f"{row['champion']:.4f}",
                f"{row['challenger']:.4f}",
                f"{row['difference']:+.4f} ({row['low']:+.4f} to {row['high']:+.4f})",
                f"**{row['verdict']}**" if row["verdict"] == "worse" else str(row["verdict"]),
            ]
            for row in self.rows
        ]
        return (
            f"{on} Both models scored the same comments; intervals by paired bootstrap. A positive "
            "difference is in favour of the new version, of gaps, too. *not worse*: at most 0.01 "
            "worse; *unclear*: too few comments to tell, or a lower Calibration AUPRC with fewer "
            "errors, which lower its chance level.\n\n"
            f"{markdown_table(heads, lines)}"
        )


def evaluation(
    frozen: FrozenSet,
    version: str,
    scored: ScoredByModel,
    *,
    champion: tuple[str, ScoredByModel] | None,
    strategy: str,
    review_fraction: float,
) -> Evaluation:
    """Return how a version compares with the champion on the frozen set.

    Args:
        frozen: n comments.
        version, scored: the version, and what it says about them.
        champion: the same of the champion; None: there is none.
        strategy, review_fraction: as deployed.
    """
    table = compare_models(
        frozen.label,
        scored if champion is None else champion[1],
        scored,
        review_fraction=review_fraction,
        strategy=strategy,
        groups=frozen.groups,
        **({"draws": 1} if champion is None else {}),
    )
    if champion is None:
        table = table.assign(verdict="first")
    return Evaluation(
        version=version,
        champion=None if champion is None else champion[0],
        comments=len(frozen.label),
        toxic=int(frozen.label.sum()),
        digest=frozen.digest,
        strategy=strategy,
        review_fraction=review_fraction,
        rows=_plain(table),
    )


def _plain(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a table as plain JSON values."""
    return list(json.loads(table.to_json(orient="records", double_precision=15)))


def _title(row: Mapping[str, Any]) -> str:
    return _TITLES.get(row["metric"], title_of(row["metric"]))
