"""MD-Agreement (Leonardelli et al. 2021) as released by Le-Wi-Di 2023: offensiveness, five votes.

`MD-Agreement_train.json`, `_dev.json`, `_test.json`: one JSON object of items, each with `text`,
`annotations` ("0,1,0,0,0") and `annotators` ("Ann12,…") in the same order.
"""

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

from modwatch.errors import SourceError
from modwatch.ingest.corpora import reading
from modwatch.ingest.corpora.corpus import ANNOTATIONS, ITEMS, Corpus, table

_SPLITS = ("MD-Agreement_train.json*", "MD-Agreement_dev.json*", "MD-Agreement_test.json*")


def load(path: Path) -> Corpus:
    """Return items and votes of one file, or of all splits in a folder.

    An item's label is the majority of its votes (null on a tie), its `score` the share of votes
    for 1. Ids are `<split>-<number>`. Items with different numbers of votes and annotators are
    left out as `malformed_record`.
    """
    left_out: Counter[str] = Counter()
    texts: list[tuple[str, str | None]] = []
    votes: list[dict[str, object]] = []
    for file in reading.find_all(path, _SPLITS):
        for number, entry in _entries(file).items():
            try:
                comment_id, text = f"{entry['split']}-{number}", entry["text"]
                who, labels = entry["annotators"].split(","), entry["annotations"].split(",")
                pairs = list(zip(who, labels, strict=True))
            except (KeyError, TypeError, AttributeError, ValueError):
                left_out["malformed_record"] += 1
                continue
            texts.append((comment_id, text))
            for annotator, label in pairs:
                vote = {"label": reading.binary(label, file), "round": 0}
                votes.append({"comment_id": comment_id, "annotator_id": annotator.strip(), **vote})
    return Corpus(
        name="md_agreement",
        items=table(ITEMS, reading.voted_items(texts, votes)),
        annotations=table(ANNOTATIONS, votes),
        left_out=dict(left_out),
    )


def _entries(path: Path) -> dict[str, Any]:
    try:
        with (
            gzip.open(path, "rt", encoding="utf-8")
            if path.suffix == ".gz"
            else path.open(encoding="utf-8") as text
        ):
            entries = json.load(text)
    except (OSError, EOFError, ValueError) as exc:
        raise SourceError(
            f"{path} is not readable JSON ({type(exc).__name__}); download the file again."
        ) from exc
    if not isinstance(entries, dict):
        raise SourceError(f"{path} is not an object of items; this is not the published format.")
    return entries
