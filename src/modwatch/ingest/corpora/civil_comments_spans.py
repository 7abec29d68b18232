"""CivilComments re-annotated for toxic spans (Pavlopoulos et al. 2021/2022).

A folder with `comments.csv` (comment_id, comment_text) and `annotations.csv` (annotation,
comment_id, worker, country, all toxic, not toxic). The comments were selected because their first
annotators labelled them toxic, so their prevalence means nothing.
"""

from collections import Counter
from pathlib import Path

from modwatch.ingest.corpora import reading
from modwatch.ingest.corpora.corpus import ANNOTATIONS, ITEMS, Corpus, annotator_table, table

_VOTE_COLUMNS = ("comment_id", "worker", "country", "not toxic")


def load(path: Path) -> Corpus:
    """Return comments, each worker's vote (1 unless `not toxic`) and country.

    An item's label is the majority vote (null on a tie), its `score` the share of votes for 1.
    """
    left_out: Counter[str] = Counter()
    annotations = reading.find(path, "annotations.csv*")
    votes = [
        {
            "comment_id": row["comment_id"],
            "annotator_id": row["worker"],
            "label": _toxic(row["not toxic"], annotations),
            "round": 0,
            "country": row["country"],
        }
        for row in reading.rows(annotations, _VOTE_COLUMNS, left_out)
    ]
    comments = reading.find(path, "comments.csv*")
    texts = [
        (row["comment_id"], row["comment_text"])
        for row in reading.rows(comments, ("comment_id", "comment_text"), left_out)
    ]
    return Corpus(
        name="civil_comments_spans",
        items=table(ITEMS, reading.voted_items(texts, votes)),
        annotations=table(ANNOTATIONS, votes),
        annotators=annotator_table(votes, ["country"]),
        left_out=dict(left_out),
    )


def _toxic(not_toxic: str, path: Path) -> int | None:
    vote = reading.binary(not_toxic, path)
    return None if vote is None else 1 - vote
