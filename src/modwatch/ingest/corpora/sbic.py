"""Social Bias Inference Corpus, version 2 (Sap et al. 2020, Social Bias Frames).

`SBIC.v2.trn.csv`, `.dev.csv`, `.tst.csv`: one row per post, worker and group that
the worker considers targeted. `offensiveYN` is 1.0, 0.5 ("maybe"), 0.0 or empty.
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

    The vote "maybe" counts as 1, as the authors count an average of 0.5. An item's label is the
    majority vote (null on a tie), its `score` the share of votes for 1, its groups those of all
    workers. The format has no ids of posts; they are digests of the texts.
    """
    left_out: Counter[str] = Counter()
    rows: list[dict[str, Any]] = [
        {**row, "comment_id": _digest(row["post"]), "annotator_id": row["WorkerId"]}
        | {"label": _vote(row["offensiveYN"], file), "round": 0}
        for file in reading.find_all(path, _SPLITS)
        for row in reading.rows(file, _COLUMNS, left_out)
    ]
    # The rows of one worker on one post differ in the targeted group only: they are one vote.
    votes = list({(vote["comment_id"], vote["annotator_id"]): vote for vote in rows}.values())
    return Corpus(
        name="sbic",
        items=table(ITEMS, _items(rows, votes)),
        annotations=table(ANNOTATIONS, votes),
        annotators=annotator_table(votes, _ATTRIBUTES),
        left_out=dict(left_out),
    )


def _items(rows: list[dict[str, Any]], votes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    groups: defaultdict[str, set[str]] = defaultdict(set)
    for row in rows:
        if row["targetMinority"]:
            groups[row["comment_id"]].add(row["targetMinority"])
    texts = {row["comment_id"]: row["post"] for row in rows}
    items = reading.voted_items(texts.items(), votes)
    return [{**item, "groups": sorted(groups[item["comment_id"]])} for item in items]


def _vote(written: str, path: Path) -> int | None:
    value = reading.number(written, path)
    return None if value is None else int(value >= 0.5)


def _digest(text: str) -> str:
    return "sbic-" + hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
