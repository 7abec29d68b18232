"""Corpora with the votes of single annotators.

Unless a loader documents otherwise, an item's label is the majority vote (null on a tie), and its
`score` the share of votes for 1.
"""

import gzip
import hashlib
import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from modwatch.common.errors import SourceError
from modwatch.data.sources.values import majority
from modwatch_lab.corpora import reading
from modwatch_lab.corpora.corpus import Corpus, annotator_table

_COUNTRIES = ("United_States", "Australia", "United_Kingdom", "South_Africa", "Singapore")
_CREHATE_ATTRIBUTES = (
    "nationality",
    "age",
    "education",
    "ethnicity",
    "gender",
    "politic",
    "religion",
    "gender_sexual_orientation",
)
_MD_SPLITS = ("MD-Agreement_train.json*", "MD-Agreement_dev.json*", "MD-Agreement_test.json*")
_SBIC_SPLITS = ("SBIC.v2.trn.*", "SBIC.v2.dev.*", "SBIC.v2.tst.*")
_SBIC_ATTRIBUTES = (
    "annotatorGender",
    "annotatorMinority",
    "annotatorPolitics",
    "annotatorRace",
    "annotatorAge",
)
_XHATE_LABELS = {"Hateful": 1, "Not hateful": 0}


def civil_comments_spans(path: Path, left_out: Counter[str]) -> Corpus:
    """Return CivilComments re-annotated for toxic spans (Pavlopoulos et al. 2021/2022).

    A folder with `comments.csv` (comment_id, comment_text) and `annotations.csv` (annotation,
    comment_id, worker, country, all toxic, not toxic). A vote is 1 unless `not toxic`. The comments
    were selected because their first annotators labelled them toxic, so their prevalence means
    nothing.
    """
    file = reading.find(path, "annotations.csv*")
    opposite = {0: 1, 1: 0, None: None}
    votes = [
        {
            **row,
            "annotator_id": row["worker"],
            "label": opposite[reading.binary(row["not toxic"], file)],
        }
        for row in reading.rows(file, ("comment_id", "worker", "country", "not toxic"), left_out)
    ]
    comments = reading.find(path, "comments.csv*")
    texts = [
        (row["comment_id"], row["comment_text"])
        for row in reading.rows(comments, ("comment_id", "comment_text"), left_out)
    ]
    items = reading.voted_items(texts, votes)
    return Corpus.from_rows(
        "civil_comments_spans", left_out, items, votes, annotator_table(votes, ["country"])
    )


def crehate(path: Path, left_out: Counter[str]) -> Corpus:
    """Return CREHate: votes on hate speech by people of five countries.

    Lee et al. (2024), Exploring Cross-Cultural Differences in English Hate Speech.
    A folder with `CREHate_raw_annotations.csv` (votes 0, 1, 2 = unsure, and demographics of the
    annotators) and `CREHate_final_annotations.csv` (texts, and one label per country). An item's
    label is the majority of the five countries' labels, its `score` the share of votes for 1 among
    the sure ones; an unsure vote is null. The few duplicate votes of an annotator are kept, both in
    round 0: they are not retests.
    """
    raw = reading.find(path, "CREHate_raw_annotations.csv*")
    columns = ("ID", "annotator_id", *_CREHATE_ATTRIBUTES, "annotation")
    votes: list[dict[str, Any]] = [
        {
            **row,
            "comment_id": row["ID"],
            "label": None if row["annotation"] == "2" else reading.binary(row["annotation"], raw),
        }
        for row in reading.rows(raw, columns, left_out)
    ]
    final = reading.find(path, "CREHate_final_annotations.csv*")
    labels = tuple(f"{country}_Hate" for country in _COUNTRIES)
    rows = list(reading.rows(final, ("ID", "Text", *labels), left_out))
    items = reading.voted_items([(row["ID"], row["Text"]) for row in rows], votes)
    for item, row in zip(items, rows, strict=True):
        item["label"] = majority(reading.binary(row[c], final) for c in labels)[0]
    return Corpus.from_rows(
        "crehate", left_out, items, votes, annotator_table(votes, _CREHATE_ATTRIBUTES)
    )


def md_agreement(path: Path, left_out: Counter[str]) -> Corpus:
    """Return MD-Agreement (Leonardelli et al. 2021) of Le-Wi-Di 2023: offensiveness, five votes.

    One file, or all splits in a folder: `MD-Agreement_train.json`, `_dev.json`, `_test.json`. Each
    is one JSON object of items with `text`, `annotations` ("0,1,0,0,0") and `annotators`
    ("Ann12,…") in the same order. Ids are `<split>-<number>`. Items with different numbers of votes
    and annotators are left out as `malformed_record`.
    """
    texts: list[tuple[str, str | None]] = []
    votes: list[dict[str, object]] = []
    for file in reading.find_all(path, _MD_SPLITS):
        for number, entry in _entries(file).items():
            try:
                comment_id, text = f"{entry['split']}-{number}", entry["text"]
                who, labels = entry["annotators"].split(","), entry["annotations"].split(",")
                pairs = list(zip(who, labels, strict=True))
            except (KeyError, TypeError, AttributeError, ValueError):
                left_out["malformed_record"] += 1
                continue
            texts.append((comment_id, text))
            for annotator, written in pairs:
                vote = {"annotator_id": annotator.strip(), "label": reading.binary(written, file)}
                votes.append({"comment_id": comment_id, **vote})
    return Corpus.from_rows("md_agreement", left_out, reading.voted_items(texts, votes), votes)


def _entries(path: Path) -> dict[str, Any]:
    try:
        content = path.read_bytes()
        entries = json.loads(gzip.decompress(content) if path.suffix == ".gz" else content)
    except (OSError, EOFError, ValueError) as exc:
        raise SourceError(
            f"{path} is not readable JSON ({type(exc).__name__}); download the file again."
        ) from exc
    if not isinstance(entries, dict):
        raise SourceError(f"{path} is not an object of items; this is not the published format.")
    return entries


def sbic(path: Path, left_out: Counter[str]) -> Corpus:
    """Return the Social Bias Inference Corpus, version 2 (Sap et al. 2020, Social Bias Frames).

    One file, or all splits in a folder: `SBIC.v2.trn.csv`, `.dev.csv`, `.tst.csv` (or `.parquet`),
    with one row per post, worker and group that the worker considers targeted. `offensiveYN` is
    1.0, 0.5 ("maybe"), 0.0 or empty; "maybe" counts as 1, as the authors count an average of 0.5.
    An item's groups are those of all workers. The format has no ids of posts; they are digests of
    the texts.
    """
    columns = ("post", "WorkerId", "offensiveYN", "targetMinority", *_SBIC_ATTRIBUTES)
    # The rows of one worker on one post differ in the targeted group only: they are one vote.
    votes: dict[tuple[str, str], dict[str, Any]] = {}
    texts: dict[str, str] = {}
    groups: defaultdict[str, set[str]] = defaultdict(set)
    for file in reading.find_all(path, _SBIC_SPLITS):
        for row in reading.rows(file, columns, left_out):
            digest = hashlib.blake2b(row["post"].encode(), digest_size=8).hexdigest()
            comment_id, who = f"sbic-{digest}", row["WorkerId"]
            share = reading.number(row["offensiveYN"], file)
            label = None if share is None else int(share >= 0.5)
            vote = {**row, "comment_id": comment_id, "annotator_id": who, "label": label}
            votes[comment_id, who] = vote
            texts[comment_id] = row["post"]
            groups[comment_id] |= {row["targetMinority"]} - {""}
    items = reading.voted_items(texts.items(), votes.values())
    for item in items:
        item["groups"] = sorted(groups[item["comment_id"]])
    people = annotator_table(votes.values(), _SBIC_ATTRIBUTES)
    return Corpus.from_rows("sbic", left_out, items, list(votes.values()), people)


def xhate_stability(path: Path, left_out: Counter[str]) -> Corpus:
    """Return XHateStability (Abercrombie, Hovy, Prabhakaran 2023): two rounds of labels.

    A folder with `annotations.csv` (row, condition, annotator, label1, label2) and, for the texts,
    `XHate999-EN-Gao-test.txt` of XHate-999 (Glavaš et al. 2020); without it they are null. The
    publishers do not name the file that `row` refers to. It is this one: its lines (the header is
    line 1) are the only ones whose gold labels agree with the votes (correlation 0.59; at most 0.28
    for any other file or offset). Labels and scores of items are from the first round; `language`
    is that of the item as shown.
    """
    file = reading.find(path, "annotations.csv*")
    columns = ("row", "condition", "annotator", "label1", "label2")
    votes: list[dict[str, Any]] = []
    for record in reading.rows(file, columns, left_out):
        row = {name: value.strip() for name, value in record.items()}
        vote = {"comment_id": row["row"], "annotator_id": row["annotator"]}
        for number, language in enumerate(row["condition"].split("-")):
            label = _XHATE_LABELS.get(row[f"label{number + 1}"])
            if label is None:
                raise SourceError(
                    f"A label in {file} is neither Hateful nor Not hateful; this is not the "
                    "published format."
                )
            votes.append({**vote, "label": label, "round": number, "language": language})
    first_round = [vote for vote in votes if vote["round"] == 0]
    ids = dict.fromkeys(vote["comment_id"] for vote in first_round)
    texts = _xhate_texts(path, left_out)
    items = reading.voted_items([(c, texts.get(c)) for c in ids], first_round)
    return Corpus.from_rows("xhate_stability", left_out, items, votes)


def _xhate_texts(folder: Path, left_out: Counter[str]) -> dict[str, str]:
    files = sorted(folder.glob("XHate999-EN-Gao-test.txt*"))
    if not files:
        return {}
    rows = reading.rows(files[0], ("text", "label"), left_out, delimiter="\t")
    return {str(line): row["text"] for line, row in enumerate(rows, start=2)}
