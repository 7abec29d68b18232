"""Social Bias Inference Corpus, version 2 (Sap et al. 2020, Social Bias Frames).

`SBIC.v2.trn.csv`, `.dev.csv`, `.tst.csv`: one row for each post, worker and group that the worker
saw targeted. `offensiveYN` is 1.0, 0.5 ("maybe"), 0.0 or empty.
"""

import hashlib
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from modwatch.ingest.corpora import reading
from modwatch.ingest.corpora.corpus import ANNOTATIONS, ITEMS, Corpus, annotator_table, table

_SPLITS = ("SBIC.v2.trn.csv*", "SBIC.v2.dev.csv*", "SBIC.v2.tst.csv*")
_ATTRIBUTES = (
    "annotatorGender",
    "annotatorMinority",
    "annotatorPolitics",
    "annotatorRace",
    "annotatorAge",
)
_COLUMNS = ("post", "WorkerId", "offensiveYN", "targetMinority", *_ATTRIBUTES)


def load(path: Path) -> Corpus:
    """Return posts, votes and workers of one file, or of all splits in a folder.

    A worker's "maybe" counts as 1, as the authors count an average of 0.5. An item's label is the
    majority vote (null on a tie), its `score` the share of votes for 1, its groups all that any
    worker named. Posts carry no id in this format: theirs is a digest of the text.
    """
    left_out: Counter[str] = Counter()
    files = [path]
    if path.is_dir():
        reading.find(path, *_SPLITS)
        files = [file for split in _SPLITS for file in sorted(path.glob(split))]
    found: list[dict[str, Any]] = [
        {**row, "comment_id": _digest(row["post"]), "annotator_id": row["WorkerId"]}
        | {"label": _vote(row["offensiveYN"], file), "round": 0}
        for file in files
        for row in reading.rows(file, _COLUMNS, left_out)
    ]
    # A worker's rows on one post differ in the targeted group only: one vote.
    votes = list({(vote["comment_id"], vote["annotator_id"]): vote for vote in found}.values())
    return Corpus(
        name="sbic",
        items=table(ITEMS, _items(found, votes)),
        annotations=table(ANNOTATIONS, votes),
        annotators=annotator_table(votes, _ATTRIBUTES),
        left_out=dict(left_out),
    )


def _items(found: list[dict[str, Any]], votes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    labels = defaultdict(list)
    groups: defaultdict[object, set[str]] = defaultdict(set)
    for vote in votes:
        labels[vote["comment_id"]].append(vote["label"])
    for row in found:
        if row["targetMinority"]:
            groups[row["comment_id"]].add(str(row["targetMinority"]))
    items = []
    for comment_id, text in {row["comment_id"]: row["post"] for row in found}.items():
        label, share = reading.majority(labels[comment_id])
        items.append({"comment_id": comment_id, "text": text, "label": label, "score": share})
        items[-1]["groups"] = sorted(groups[comment_id])
    return items


def _vote(written: str, path: Path) -> int | None:
    value = reading.number(written, path)
    return None if value is None else int(value >= 0.5)


def _digest(text: str) -> str:
    return "sbic-" + hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
