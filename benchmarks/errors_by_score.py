"""How often one person errs, by a model's score, on corpora with several votes a comment.

    python benchmarks/errors_by_score.py DATA

A vote is wrong if most of the others on the comment say otherwise; ties are left out. The score is
that of TF-IDF and logistic regression, trained on Wikipedia Talk. Printed are, in fifths of the
score, lowest first, how often a person misses the toxic comments and how often one calls another
toxic, with standard errors by comment, and how far the logit climbs from the first fifth to the
last. With few others a part of the climb is their own noise: with nine it is a tenth to a fifth.
"""

import gzip
import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import special
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

FIFTHS = (0.2, 0.4, 0.6, 0.8)


def corpora(data):
    """Yield name, texts (m,), toxic votes (m,), and votes (m,)."""
    path = data / "civil_comments_cctk" / "comments_with_ratings.parquet"
    rated = pd.read_parquet(path).drop_duplicates("text")
    toxic = np.array([(np.asarray(scores) < 0).sum() for scores in rated["scores"]])
    yield "Civil Comments", rated["text"], toxic, rated["scores"].str.len().to_numpy()
    items = list[dict[str, str]]()
    for part in ("train", "dev", "test"):
        with gzip.open(data / "md_agreement" / f"MD-Agreement_{part}.json.gz") as file:
            items += json.load(file).values()
    votes = [np.array(item["annotations"].split(","), int) for item in items]
    toxic, given = (np.array([count(vote) for vote in votes]) for count in (np.sum, np.size))
    yield "MD-Agreement", pd.Series([item["text"] for item in items]), toxic, given


def wrong_votes(toxic, given):
    """Return misses (m,) and the votes (m,) of which most others say that a comment is toxic."""
    by_other = np.where(2 * toxic > given - 1, given - toxic, 0)
    return by_other, by_other + np.where(2 * (toxic - 1) > given - 1, toxic, 0)


def by_fifth(score, wrong, of):
    """Return rates (5,) and standard errors (5,) in fifths of the score of the comments judged."""
    judged = of > 0
    place = np.searchsorted(np.quantile(score[judged], FIFTHS), score[judged])
    wrong, of = wrong[judged], of[judged]
    rate = np.bincount(place, wrong) / np.bincount(place, of)
    apart = np.bincount(place, (wrong - of * rate[place]) ** 2)
    return rate, np.sqrt(apart) / np.bincount(place, of)


def main():
    """Print the rates of each corpus."""
    data = Path(sys.argv[1])
    train = pd.read_parquet(data / "jigsaw2018" / "train.parquet")
    words = TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True, dtype=np.float32)
    model = make_pipeline(words, LogisticRegression(C=4, solver="liblinear"))
    model.fit(train["text"], train["any_toxic"])
    for name, text, toxic, given in corpora(data):
        several = given >= 3
        score = model.decision_function(text[several])
        toxic, given = toxic[several], given[several]
        for what, votes in (("misses", toxic), ("false positives", given - toxic)):
            rate, error = by_fifth(score, *wrong_votes(votes, given))
            climb = special.logit(rate[-1]) - special.logit(rate[0])
            shown = ", ".join(f"{a:.3f} ± {b:.3f}" for a, b in zip(rate, error, strict=True))
            print(f"{name}, {what}: {shown}; logit from first to last: {climb:+.2f}")


if __name__ == "__main__":
    main()
