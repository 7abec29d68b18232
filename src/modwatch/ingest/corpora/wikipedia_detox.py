"""Wikipedia Detox (Wulczyn, Thain, Dixon 2017, Ex Machina): toxicity, attack or aggression.

A folder with `<task>_annotated_comments.tsv` and `<task>_annotations.tsv`, and optionally
`<task>_worker_demographics.tsv`; the first task found of toxicity, attack, aggression. The worker
table can also be read by itself.
"""

from collections import Counter, defaultdict
from pathlib import Path

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
    annotations = _annotations(path, task, left_out)
    demographics = sorted(path.glob(f"{task}_worker_demographics.tsv*"))
    return Corpus(
        name="wikipedia_detox",
        items=_items(comments, annotations, left_out),
        annotations=annotations,
        annotators=_annotators(demographics[0], left_out) if demographics else None,
        left_out=dict(left_out),
    )


def _annotations(folder: Path, task: str, left_out: Counter[str]) -> pa.Table:
    path = reading.find(folder, f"{task}_annotations.tsv*")
    records = reading.rows(path, ("rev_id", "worker_id", task), left_out, delimiter="\t")
    found = [
        {
            "comment_id": _whole(row["rev_id"]),
            "annotator_id": _whole(row["worker_id"]),
            "label": reading.binary(row[task], path),
            "round": 0,
        }
        for row in records
    ]
    return table(ANNOTATIONS, found)


def _items(path: Path, annotations: pa.Table, left_out: Counter[str]) -> pa.Table:
    votes = defaultdict(list)
    for comment_id, label in zip(
        annotations["comment_id"].to_pylist(), annotations["label"].to_pylist(), strict=True
    ):
        votes[comment_id].append(label)
    found = []
    for row in reading.rows(path, ("rev_id", "comment"), left_out, delimiter="\t"):
        comment_id = _whole(row["rev_id"])
        label, share = reading.majority(votes[comment_id])
        # The publishers wrote line ends and tabs as words.
        text = row["comment"].replace("NEWLINE_TOKEN", "\n").replace("TAB_TOKEN", "\t")
        found.append({"comment_id": comment_id, "text": text, "label": label, "score": share})
    return table(ITEMS, found)


def _annotators(path: Path, left_out: Counter[str]) -> pa.Table:
    records = reading.rows(path, ("worker_id", *_ATTRIBUTES), left_out, delimiter="\t")
    found = [{**row, "annotator_id": _whole(row["worker_id"])} for row in records]
    return annotator_table(found, _ATTRIBUTES)


def _whole(number: str) -> str:
    """Return an id without the `.0` that some of the files carry."""
    return number.removesuffix(".0")
