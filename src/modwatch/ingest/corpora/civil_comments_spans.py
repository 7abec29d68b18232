"""CivilComments re-annotated for toxic spans (Pavlopoulos et al. 2021/2022).

A folder with `comments.csv` (comment_id, comment_text), `annotations.csv` (annotation,
comment_id, worker, country, all toxic, not toxic) and `spans.csv` (annotation, type, start, end).
The comments were chosen because their first raters called them toxic: never read a prevalence
from them.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from modwatch.ingest.corpora import reading
from modwatch.ingest.corpora.corpus import ANNOTATIONS, ITEMS, Corpus, annotator_table, table

_VOTE_COLUMNS = ("annotation", "comment_id", "worker", "country", "not toxic")

#: One span that one worker marked; characters from `start` to before `end`.
SPANS = pa.schema(
    [
        pa.field("comment_id", pa.string(), nullable=False),
        pa.field("annotator_id", pa.string(), nullable=False),
        ("type", pa.string()),
        ("start", pa.int32()),
        ("end", pa.int32()),
    ]
)


def load(path: Path) -> Corpus:
    """Return comments, each worker's vote (1 unless `not toxic`) and country.

    An item's label is the majority vote (null on a tie), its `score` the share of votes for 1.
    """
    left_out: Counter[str] = Counter()
    votes = _votes(path, left_out)
    by_comment: defaultdict[str, list[int | None]] = defaultdict(list)
    for vote in votes:
        by_comment[vote["comment_id"]].append(vote["label"])
    return Corpus(
        name="civil_comments_spans",
        items=_items(reading.find(path, "comments.csv*"), by_comment, left_out),
        annotations=table(ANNOTATIONS, votes),
        annotators=annotator_table(votes, ["country"]),
        left_out=dict(left_out),
    )


def spans(path: Path) -> pa.Table:
    """Return the marked spans of a folder, schema SPANS; a span without a type has null."""
    left_out: Counter[str] = Counter()
    votes = {vote["annotation"]: vote for vote in _votes(path, left_out)}
    file = reading.find(path, "spans.csv*")
    found = [
        {
            "comment_id": votes[row["annotation"]]["comment_id"],
            "annotator_id": votes[row["annotation"]]["annotator_id"],
            "type": row["type"] or None,
            "start": int(row["start"]),
            "end": int(row["end"]),
        }
        for row in reading.rows(file, ("annotation", "type", "start", "end"), left_out)
        if row["annotation"] in votes
    ]
    return table(SPANS, found)


def _votes(folder: Path, left_out: Counter[str]) -> list[dict[str, Any]]:
    path = reading.find(folder, "annotations.csv*")
    return [
        {
            "annotation": row["annotation"],
            "comment_id": row["comment_id"],
            "annotator_id": row["worker"],
            "label": _toxic(row["not toxic"], path),
            "round": 0,
            "country": row["country"],
        }
        for row in reading.rows(path, _VOTE_COLUMNS, left_out)
    ]


def _toxic(not_toxic: str, path: Path) -> int | None:
    vote = reading.binary(not_toxic, path)
    return None if vote is None else 1 - vote


def _items(path: Path, votes: Mapping[str, list[int | None]], left_out: Counter[str]) -> pa.Table:
    found = []
    for row in reading.rows(path, ("comment_id", "comment_text"), left_out):
        label, share = reading.majority(votes.get(row["comment_id"], []))
        found.append(
            {
                "comment_id": row["comment_id"],
                "text": row["comment_text"],
                "label": label,
                "score": share,
            }
        )
    return table(ITEMS, found)
