"""How often one person errs, by a model's score, on corpora with several votes a comment.

    python benchmarks/errors_by_score.py DATA

A vote is wrong if most of the others on the comment say otherwise; ties are left out. The score is
that of TF-IDF and logistic regression, trained on Wikipedia Talk. Printed are, in fifths of the
score, lowest first, how often a person misses the toxic comments and how often one calls another
toxic, with standard errors by comment, and how far the logit climbs from the first fifth to the
last. With few others a part of the climb is their own noise: with nine it is a tenth to a fifth.
"""

import sys
from pathlib import Path

import numpy as np
from scipy import special
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from modwatch_lab.corpora import jigsaw2018, load, long_table

CORPORA = (("Civil Comments", "civil_comments_cctk"), ("MD-Agreement", "md_agreement"))
FIFTHS = (0.2, 0.4, 0.6, 0.8)


def votes_of(corpus):
    """Return texts (m,), toxic votes (m,), and votes (m,) of comments with three votes or more."""
    votes = long_table(corpus).groupby("item")["label"].agg(["sum", "size"])
    votes = votes.join(corpus.items.to_pandas().set_index("comment_id")["text"])
    votes = votes[votes["size"] >= 3].drop_duplicates("text")
    return votes["text"], *(votes[name].to_numpy(np.int64) for name in ("sum", "size"))


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
    train = jigsaw2018.training_part(data / "jigsaw2018")
    words = TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True, dtype=np.float32)
    model = make_pipeline(words, LogisticRegression(C=4, solver="liblinear"))
    model.fit(train.texts, train.labels)
    for name, folder in CORPORA:
        text, toxic, given = votes_of(load(folder, data / folder))
        score = model.decision_function(text)
        for what, votes in (("misses", toxic), ("false positives", given - toxic)):
            rate, error = by_fifth(score, *wrong_votes(votes, given))
            climb = special.logit(rate[-1]) - special.logit(rate[0])
            shown = ", ".join(f"{a:.3f} ± {b:.3f}" for a, b in zip(rate, error, strict=True))
            print(f"{name}, {what}: {shown}; logit from first to last: {climb:+.2f}")


if __name__ == "__main__":
    main()
