"""CivilComments in Jigsaw's table: `train.csv` (column `target`) or `all_data.csv` (`toxicity`).

Borkan et al. (2019), Nuanced Metrics for Measuring Unintended Bias. `target` is the share of
annotators who labelled the comment toxic; an identity column the share who saw a mention.
"""

from collections import Counter
from pathlib import Path

from modwatch.common.errors import SourceError
from modwatch.data.sources.corpora import reading
from modwatch.data.sources.corpora.corpus import Corpus
from modwatch.data.sources.readers import column_names

#: Minimum share of annotators for a toxic label or the mention of an identity.
THRESHOLD = 0.5

#: The 24 identity columns of the release.
IDENTITIES = (
    "asian", "atheist", "bisexual", "black", "buddhist", "christian", "female", "heterosexual",
    "hindu", "homosexual_gay_or_lesbian", "intellectual_or_learning_disability", "jewish", "latino",
    "male", "muslim", "other_disability", "other_gender", "other_race_or_ethnicity",
    "other_religion", "other_sexual_orientation", "physical_disability",
    "psychiatric_or_mental_illness", "transgender", "white",
)  # fmt: skip


def load(path: Path, left_out: Counter[str]) -> Corpus:
    """Return the comments of a file, or of the `train.csv` or `all_data.csv` of a folder.

    `score` is the share of annotators. `groups` is null where identities were not annotated, and
    empty where none reached the threshold.
    """
    path = reading.find(path, "train.csv*", "all_data.csv*")
    names = column_names(path)
    target = next((name for name in ("target", "toxicity") if name in names), None)
    if target is None:
        raise SourceError(
            f"{path} has neither a column target nor toxicity; use Jigsaw's train.csv or "
            "all_data.csv (for the spans release use civil_comments_spans)."
        )
    items = [
        _item(row, target, path)
        for row in reading.rows(path, ("id", "comment_text", target), left_out)
    ]
    return Corpus.from_rows("civil_comments", left_out, items)


def _item(row: dict[str, str], target: str, path: Path) -> dict[str, object]:
    share = reading.number(row[target], path)
    shares = {name: reading.number(row.get(name, ""), path) for name in IDENTITIES}
    annotated = {name: value for name, value in shares.items() if value is not None}
    groups = [name for name, value in annotated.items() if value >= THRESHOLD]
    return {
        "comment_id": row["id"],
        "text": row["comment_text"],
        "label": None if share is None else int(share >= THRESHOLD),
        "score": share,
        "groups": groups if annotated else None,
    }
