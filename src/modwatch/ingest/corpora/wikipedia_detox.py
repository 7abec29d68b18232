"""Wikipedia Detox (Wulczyn, Thain, Dixon 2017, Ex Machina): toxicity, attack or aggression.

A folder with `<task>_annotated_comments.tsv` and `<task>_annotations.tsv`, and optionally
`<task>_worker_demographics.tsv`, for the first available task of toxicity, attack, aggression. The
worker table can also be read alone.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from modwatch.ingest.corpora import reading
from modwatch.ingest.corpora.corpus import ANNOTATIONS, ITEMS, Corpus, annotator_table, table

_TASKS = ("toxicity", "attack", "aggression")
_ATTRIBUTES = ("gender", "english_first_language", "age_group", "education")


def load(path: Path) -> Corpus:
    """Return comments, votes and workers of a folder; of a file, the workers alone.

    An item's label is the majority vote (null on a tie), its `score` the share of votes for 1.
    """
    left_out: Counter[str] = Counter()
    if path.is_file():
        empty = ITEMS.empty_table()
        return Corpus(name="wikipedia_detox", items=empty, annotators=_annotators(path, left_out))
    comments = reading.find(path, *(f"{task}_annotated_comments.tsv*" for task in _TASKS))
    task = comments.name.split("_", 1)[0]
    votes = _votes(path, task, left_out)
    demographics = sorted(path.glob(f"{task}_worker_demographics.tsv*"))
    return Corpus(
        name="wikipedia_detox",
        items=table(ITEMS, reading.voted_items(_texts(comments, left_out), votes)),
        annotations=table(ANNOTATIONS, votes),
        annotators=_annotators(demographics[0], left_out) if demographics else None,
        left_out=dict(left_out),
    )


def _votes(folder: Path, task: str, left_out: Counter[str]) -> list[dict[str, Any]]:
    path = reading.find(folder, f"{task}_annotations.tsv*")
    return [
        {
            "comment_id": _whole(row["rev_id"]),
            "annotator_id": _whole(row["worker_id"]),
            "label": reading.binary(row[task], path),
            "round": 0,
        }
        for row in reading.rows(path, ("rev_id", "worker_id", task), left_out, delimiter="\t")
    ]


def _texts(path: Path, left_out: Counter[str]) -> Iterator[tuple[str, str]]:
    for row in reading.rows(path, ("rev_id", "comment"), left_out, delimiter="\t"):
        # The publishers replaced line breaks and tabs by these tokens.
        text = row["comment"].replace("NEWLINE_TOKEN", "\n").replace("TAB_TOKEN", "\t")
        yield _whole(row["rev_id"]), text


def _annotators(path: Path, left_out: Counter[str]) -> pa.Table:
    records = reading.rows(path, ("worker_id", *_ATTRIBUTES), left_out, delimiter="\t")
    found = [{**row, "annotator_id": _whole(row["worker_id"])} for row in records]
    return annotator_table(found, _ATTRIBUTES)


def _whole(number: str) -> str:
    """Return an id without the `.0` of some files."""
    return number.removesuffix(".0")
