"""XHateStability (Abercrombie, Hovy, Prabhakaran 2023): the same people, the same items, twice.

A folder with `annotations.csv` (row, condition, annotator, label1, label2) and, for the texts,
`XHate999-EN-Gao-test.txt` of XHate-999 (Glavaš et al. 2020). The publishers do not name the file
that `row` counts in. It is this one: its lines, the header being line 1, are the only ones whose
gold labels agree with the votes (correlation 0.59; at most 0.28 for any other file or offset).
"""

from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pyarrow as pa

from modwatch.errors import SourceError
from modwatch.ingest.corpora import reading
from modwatch.ingest.corpora.corpus import ANNOTATIONS, ITEMS, Corpus, table

_LABELS = {"Hateful": 1, "Not hateful": 0}
_COLUMNS = ("row", "condition", "annotator", "label1", "label2")


def load(path: Path) -> Corpus:
    """Return items and two rounds of votes; `language` is that in which the item was shown.

    An item's label is the majority of the first round (null on a tie), its `score` the share of
    votes for 1 in it. Texts are null when the folder lacks the file of texts.
    """
    left_out: Counter[str] = Counter()
    file = reading.find(path, "annotations.csv*")
    votes: list[dict[str, Any]] = []
    for record in reading.rows(file, _COLUMNS, left_out):
        row = {name: value.strip() for name, value in record.items()}
        for number, language in enumerate(row["condition"].split("-")):
            votes.append(
                {
                    "comment_id": row["row"],
                    "annotator_id": row["annotator"],
                    "label": _label(row[f"label{number + 1}"], file),
                    "round": number,
                    "language": language,
                }
            )
    return Corpus(
        name="xhate_stability",
        items=_items(votes, _texts(path, left_out)),
        annotations=table(ANNOTATIONS, votes),
        left_out=dict(left_out),
    )


def _items(votes: list[dict[str, Any]], texts: dict[str, str]) -> pa.Table:
    first_round = defaultdict(list)
    for vote in votes:
        if vote["round"] == 0:
            first_round[str(vote["comment_id"])].append(vote["label"])
    items = []
    for comment_id, labels in first_round.items():
        label, share = reading.majority(labels)
        text = texts.get(comment_id)
        items.append({"comment_id": comment_id, "text": text, "label": label, "score": share})
    return table(ITEMS, items)


def _texts(folder: Path, left_out: Counter[str]) -> dict[str, str]:
    files = sorted(folder.glob("XHate999-EN-Gao-test.txt*"))
    if not files:
        return {}
    records = reading.rows(files[0], ("text", "label"), left_out, delimiter="\t")
    return {str(line): row["text"] for line, row in enumerate(records, start=2)}


def _label(written: str, path: Path) -> int:
    if written not in _LABELS:
        raise SourceError(
            f"A label of {path} is neither Hateful nor Not hateful; this is not the published "
            "format."
        )
    return _LABELS[written]
