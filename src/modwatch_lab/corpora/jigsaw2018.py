"""The Jigsaw Toxic Comment Classification Challenge (2018): Wikipedia Talk, training and test part.

- `train.csv`: `id, comment_text, toxic` and five subtypes;
- `test.csv` and `test_labels.csv`: comments and labels by `id`; −1 where a comment was not scored;
- `train.parquet`: the texts of `train.csv` in another order, with `toxic` where known, and
  `any_toxic`, whether any of the six labels holds.
"""

from collections import Counter
from pathlib import Path

import numpy as np

from modwatch.common.account import Account
from modwatch.common.errors import SourceError
from modwatch.data.sources.labelled import LabelledTexts
from modwatch_lab.corpora import reading

_NOT_SCORED = "-1"


def training_part(folder: Path) -> LabelledTexts:
    """Return the training part, from `train.csv` or `train.parquet`; the label is `toxic`.

    Where `toxic` is not known, it is `any_toxic`; `account` does not count these comments.

    Raises:
        SourceError: the folder has neither file, or its format is another one.
    """
    path = reading.find(folder, "train.csv*", "train.parquet")
    is_parquet = path.suffix == ".parquet"
    columns = ("text", "toxic", "any_toxic") if is_parquet else ("comment_text", "toxic", "toxic")
    left_out: Counter[str] = Counter()
    rows = [[row[name] for name in columns] for row in reading.rows(path, columns, left_out)]
    return _labelled([(text, toxic or other) for text, toxic, other in rows], path, left_out)


def test_part(folder: Path) -> LabelledTexts:
    """Return the scored comments of the test part, from `test.csv` and `test_labels.csv`.

    Comments that the challenge did not score are left out as `not_scored`.

    Raises:
        SourceError: a file is missing, its format is another one, or a comment has no label.
    """
    path, labels = (reading.find(folder, f"{name}.csv*") for name in ("test", "test_labels"))
    left_out: Counter[str] = Counter()
    label = {row["id"]: row["toxic"] for row in reading.rows(labels, ("id", "toxic"), left_out)}
    texts = {
        row["id"]: row["comment_text"]
        for row in reading.rows(path, ("id", "comment_text"), left_out)
    }
    if missing := len(texts.keys() - label.keys()):
        raise SourceError(
            f"{labels} lacks the labels of {missing} comments of {path.name}; download both files "
            "of the same release."
        )
    scored = {key: text for key, text in texts.items() if label[key] != _NOT_SCORED}
    left_out["not_scored"] += len(texts) - len(scored)
    return _labelled([(text, label[key]) for key, text in scored.items()], labels, left_out)


def _labelled(rows: list[tuple[str, str]], path: Path, left_out: Counter[str]) -> LabelledTexts:
    known = [(text, reading.binary(label, path)) for text, label in rows]
    kept = [(text, label) for text, label in known if label is not None]
    left_out["no_label"] += len(known) - len(kept)
    return LabelledTexts(
        texts=tuple(text for text, _ in kept),
        labels=np.array([label for _, label in kept], np.int8),
        account=Account.of(len(kept), left_out),
    )
