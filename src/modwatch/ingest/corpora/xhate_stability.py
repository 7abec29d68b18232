"""XHateStability (Abercrombie, Hovy, Prabhakaran 2023): two rounds of labels per annotator.

A folder with `annotations.csv` (row, condition, annotator, label1, label2) and, for the texts,
`XHate999-EN-Gao-test.txt` of XHate-999 (Glavaš et al. 2020). The publishers do not name the file
that `row` refers to. It is this one: its lines (the header is line 1) are the only ones whose gold
labels agree with the votes (correlation 0.59; at most 0.28 for any other file or offset).
"""

from collections import Counter
from pathlib import Path
from typing import Any

from modwatch.errors import SourceError
from modwatch.ingest.corpora import reading
from modwatch.ingest.corpora.corpus import ANNOTATIONS, ITEMS, Corpus, table

_LABELS = {"Hateful": 1, "Not hateful": 0}
_COLUMNS = ("row", "condition", "annotator", "label1", "label2")


def load(path: Path) -> Corpus:
    """Return items and two rounds of votes; `language` is that of the item as shown.

    An item's label is the majority of the first round (null on a tie), its `score` the share of
    votes for 1 in it. Texts are null without the file of texts.
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
    first_round = [vote for vote in votes if vote["round"] == 0]
    ids = dict.fromkeys(vote["comment_id"] for vote in first_round)
    texts = _texts(path, left_out)
    return Corpus(
        name="xhate_stability",
        items=table(ITEMS, reading.voted_items([(c, texts.get(c)) for c in ids], first_round)),
        annotations=table(ANNOTATIONS, votes),
        left_out=dict(left_out),
    )


def _texts(folder: Path, left_out: Counter[str]) -> dict[str, str]:
    files = sorted(folder.glob("XHate999-EN-Gao-test.txt*"))
    if not files:
        return {}
    records = reading.rows(files[0], ("text", "label"), left_out, delimiter="\t")
    return {str(line): row["text"] for line, row in enumerate(records, start=2)}


def _label(written: str, path: Path) -> int:
    if written not in _LABELS:
        raise SourceError(
            f"A label in {path} is neither Hateful nor Not hateful; this is not the published "
            "format."
        )
    return _LABELS[written]
