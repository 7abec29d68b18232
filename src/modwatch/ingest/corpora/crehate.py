"""CREHate (Lee et al. 2024, Exploring Cross-Cultural Differences in English Hate Speech).

A folder with `CREHate_raw_annotations.csv` (votes 0, 1, 2 = unsure, and demographics of the
annotators) and `CREHate_final_annotations.csv` (texts, and one label per country).
"""

from collections import Counter
from pathlib import Path
from typing import Any

from modwatch.ingest.corpora import reading
from modwatch.ingest.corpora.corpus import ANNOTATIONS, ITEMS, Corpus, annotator_table, table

_COUNTRIES = ("United_States", "Australia", "United_Kingdom", "South_Africa", "Singapore")
_ATTRIBUTES = (
    "nationality",
    "age",
    "education",
    "ethnicity",
    "gender",
    "politic",
    "religion",
    "gender_sexual_orientation",
)


def load(path: Path) -> Corpus:
    """Return posts, votes and annotators of a folder.

    An item's label is the majority of the five countries' labels, its `score` the share of votes
    for 1 among the sure ones; an unsure vote is null. The few duplicate votes of an annotator are
    kept, both in round 0: they are not retests.
    """
    left_out: Counter[str] = Counter()
    raw = reading.find(path, "CREHate_raw_annotations.csv*")
    votes: list[dict[str, Any]] = [
        {
            **row,
            "comment_id": row["ID"],
            "label": None if row["annotation"] == "2" else reading.binary(row["annotation"], raw),
            "round": 0,
        }
        for row in reading.rows(raw, ("ID", "annotator_id", *_ATTRIBUTES, "annotation"), left_out)
    ]
    final = reading.find(path, "CREHate_final_annotations.csv*")
    columns = tuple(f"{country}_Hate" for country in _COUNTRIES)
    rows = list(reading.rows(final, ("ID", "Text", *columns), left_out))
    items = reading.voted_items([(row["ID"], row["Text"]) for row in rows], votes)
    for item, row in zip(items, rows, strict=True):
        item["label"] = reading.majority([reading.binary(row[c], final) for c in columns])[0]
    return Corpus(
        name="crehate",
        items=table(ITEMS, items),
        annotations=table(ANNOTATIONS, votes),
        annotators=annotator_table(votes, _ATTRIBUTES),
        left_out=dict(left_out),
    )
