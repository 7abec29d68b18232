"""What there is to train on: classes, duplicates, leaks into the stream, lengths, languages."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from modwatch.common.account import Account
from modwatch.data.duplicates import near_duplicates, plain_text
from modwatch.models.training import LABEL_THRESHOLD

_QUANTILES = (0.05, 0.5, 0.95, 1.0)


@dataclass(frozen=True, kw_only=True)
class DataReport:
    """Facts about labelled texts."""

    rows: int
    toxic: int
    #: Comments whose annotators do not all agree.
    contested: int
    #: Rows that equal an earlier one, but for case, punctuation and spacing.
    duplicates: int
    #: Duplicates whose copies have different classes.
    contradictions: int
    #: Rows that are duplicates or near duplicates of comments of the stream; None: not compared.
    leaks: int | None
    #: Characters: quantiles 0.05, 0.5, 0.95 and the longest.
    characters: tuple[int, int, int, int]
    #: Rows by language; empty if the source has none.
    languages: Mapping[str, int]
    #: Where the lines and records of the sources ended; `rows` of them were used.
    account: Account

    def to_json(self) -> dict[str, Any]:
        """Return the facts as plain JSON values."""
        return vars(self) | {"account": vars(self.account)}

    def lines(self) -> list[str]:
        """Return the report as text, one fact a line."""
        share = self.toxic / self.rows if self.rows else 0.0
        short, median, long, longest = self.characters
        languages = ", ".join(f"{name} {count:,}" for name, count in self.languages.items())
        return [
            f"rows             {self.rows:,}, {self.toxic:,} toxic ({share:.2%})",
            f"contested        {self.contested:,} rows whose annotators disagree",
            f"duplicates       {self.duplicates:,}, {self.contradictions:,} of them with another"
            " label",
            "leaks            "
            + (
                "not compared with the stream"
                if self.leaks is None
                else f"{self.leaks:,} rows (nearly) equal a comment of the stream"
            ),
            f"characters       median {median:,}, 5 % to 95 %: {short:,} to {long:,}, longest"
            f" {longest:,}",
            *([f"languages        {languages}"] if self.languages else []),
            f"source           {self.account.read:,} lines and records; of these:",
            *(
                f"{number:>17,}  {'left out: ' * (name in self.account.left_out)}{name}"
                + f", the first: {first}" * bool(first)
                for name, number, first in self.account.rows()
            ),
        ]


def data_report(
    texts: Sequence[str],
    labels: ArrayLike,
    *,
    stream: Sequence[str] | None = None,
    languages: Sequence[str | None] = (),
    account: Account | None = None,
) -> DataReport:
    """Return the report on n texts with labels (n,) in [0, 1].

    Args:
        texts: n comments.
        labels: (n,) in [0, 1].
        stream: comments that the model will score.
        languages: n languages, or none.
        account: of the rows that the texts come from.

    >>> report = data_report(["You fool!", "you  fool", "hello"], [1, 0, 0])
    >>> report.duplicates, report.contradictions, report.leaks
    (1, 1, None)
    """
    share = np.asarray(labels, dtype=np.float64)
    toxic = share > LABEL_THRESHOLD
    copies: dict[str, list[int]] = defaultdict(list)
    for row, text in enumerate(texts):
        copies[plain_text(text)].append(row)
    repeated = [rows for plain, rows in copies.items() if plain and len(rows) > 1]
    length = np.array([len(text) for text in texts] or [0])
    spread = np.quantile(length, _QUANTILES, method="lower")
    return DataReport(
        rows=len(texts),
        toxic=int(toxic.sum()),
        contested=int(((share > 0) & (share < 1)).sum()),
        duplicates=sum(len(rows) - 1 for rows in repeated),
        contradictions=sum(
            len(rows) - 1 for rows in repeated if len({bool(toxic[row]) for row in rows}) > 1
        ),
        leaks=None if stream is None else int(near_duplicates(texts, stream).sum()),
        characters=(int(spread[0]), int(spread[1]), int(spread[2]), int(spread[3])),
        languages=dict(Counter(str(language or "unknown") for language in languages).most_common()),
        account=account or Account.of(len(texts)),
    )
