"""Samples of Wikipedia Talk comments, in the three published formats.

- `id,text,parent,label,api`: comments with their parents and Perspective scores (Pavlopoulos et
  al. 2020, Toxicity Detection: Does Context Really Matter?);
- `rev_id,comment,toxic`: the test set of Dixon et al. (2018, Measuring and Mitigating Unintended
  Bias in Text Classification);
- `text,label` without header (RobTest, from the Jigsaw toxic-comment challenge).
"""

from collections import Counter
from collections.abc import Iterator, Set
from pathlib import Path

import numpy as np

from modwatch.common.account import Account
from modwatch.data.sources.labelled import LabelledTexts
from modwatch.data.sources.readers import column_names
from modwatch_lab.corpora import reading
from modwatch_lab.corpora.corpus import Corpus

_STREAM = "context_gc.csv*"
_TRAINING = ("balanced_test.csv*", "non_toxic_train.csv*")


def load(path: Path, left_out: Counter[str]) -> Corpus:
    """Return the items of one file; of a folder, the stream `context_gc.csv`.

    `score` is the toxicity by the Perspective API, if the file has it. Items of a file without ids
    are numbered.
    """
    path = reading.find(path, _STREAM)
    names = set(column_names(path))
    if {"id", "text", "parent"} <= names:
        items = _context(path, left_out)
    elif {"rev_id", "comment"} <= names:
        items = _testset(path, left_out)
    else:
        items = _headerless(path, left_out)
    return Corpus.from_rows("wikipedia_talk", left_out, list(items))


def training_corpus(folder: Path, exclude: Set[str]) -> LabelledTexts:
    """Return the training texts: `balanced_test` and `non_toxic_train` of `folder`.

    Left out and counted by reason: unreadable records, texts of the stream (`exclude`, normalised
    by `normalise`; `in_stream`), and repeated texts (`duplicate`).
    """
    left_out: Counter[str] = Counter()
    seen: set[str] = set()
    texts, labels = [], []
    for pattern in _TRAINING:
        for item in _headerless(reading.find(folder, pattern), left_out):
            text, label = str(item["text"]), item["label"]
            key = normalise(text)
            if key in exclude or key in seen:
                left_out["in_stream" if key in exclude else "duplicate"] += 1
                continue
            seen.add(key)
            texts.append(text)
            labels.append(label)
    account = Account.of(len(texts), left_out)
    return LabelledTexts(texts=tuple(texts), labels=np.array(labels, np.int8), account=account)


def normalise(text: str) -> str:
    """Return `text` with whitespace collapsed and case folded, for comparisons.

    >>> normalise("  Hello\\n WORLD ")
    'hello world'
    """
    return " ".join(text.split()).casefold()


def _context(path: Path, left_out: Counter[str]) -> Iterator[dict[str, object]]:
    for row in reading.rows(path, ("id", "text", "parent", "label", "api"), left_out):
        yield {
            "comment_id": row["id"],
            "text": row["text"],
            "parent_text": row["parent"] or None,
            "label": reading.binary(row["label"], path),
            "score": reading.number(row["api"], path),
        }


def _testset(path: Path, left_out: Counter[str]) -> Iterator[dict[str, object]]:
    for row in reading.rows(path, ("rev_id", "comment", "toxic"), left_out):
        label = reading.binary(row["toxic"], path)
        yield {"comment_id": row["rev_id"], "text": row["comment"], "label": label}


def _headerless(path: Path, left_out: Counter[str]) -> Iterator[dict[str, object]]:
    stem = path.name.split(".", 1)[0]
    records = reading.rows(path, ("text", "label"), left_out, header=("text", "label"))
    for ordinal, row in enumerate(records, start=1):
        yield {
            "comment_id": f"{stem}-{ordinal:06d}",
            "text": row["text"],
            "label": reading.binary(row["label"], path),
        }
