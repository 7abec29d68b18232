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
    for 1. Ids are `<split>-<number>`. Items whose votes and annotators do not pair up are left
    out as `malformed_record`.
    """
    files = [path]
    if path.is_dir():
        reading.find(path, *_SPLITS)
        files = [file for split in _SPLITS for file in sorted(path.glob(split))]
    left_out: Counter[str] = Counter()
    items: list[dict[str, object]] = []
    votes: list[dict[str, object]] = []
    for file in files:
        for number, entry in _entries(file).items():
            _add(file, number, entry, items, votes, left_out)
    return Corpus(
        name="md_agreement",
        items=table(ITEMS, items),
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
            f"{path} is not readable JSON ({type(exc).__name__}); fetch the published file again."
        ) from exc
    if not isinstance(entries, dict):
        raise SourceError(f"{path} is not an object of items; this is not the published format.")
    return entries


def _add(
    path: Path,
    number: str,
    entry: Any,
    items: list[dict[str, object]],
    votes: list[dict[str, object]],
    left_out: Counter[str],
) -> None:
    try:
        comment_id, text = f"{entry['split']}-{number}", entry["text"]
        pairs = list(
            zip(entry["annotators"].split(","), entry["annotations"].split(","), strict=True)
        )
    except (KeyError, TypeError, AttributeError, ValueError):
        left_out["malformed_record"] += 1
        return
    labels = [reading.binary(vote, path) for _, vote in pairs]
    label, share = reading.majority(labels)
    items.append({"comment_id": comment_id, "text": text, "label": label, "score": share})
    votes.extend(
        {"comment_id": comment_id, "annotator_id": who.strip(), "label": vote, "round": 0}
        for (who, _), vote in zip(pairs, labels, strict=True)
    )
