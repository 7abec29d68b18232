"""A linear model's opinion of the training comments, for the encoder to learn from.

TF-IDF with logistic regression errs in other places than a small encoder, and less where the words
are new. An encoder that is trained on a mixture of label and opinion keeps some of that
(distillation: Hinton, Vinyals & Dean 2015, section 2).
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import FeatureUnion, Pipeline

#: Hashed features of each kind. Hashing needs no vocabulary, so no corpus is too small or too odd
#: for it and its memory is bounded.
_FEATURES = 2**18
_INVERSE_RIDGE = 4.0
_FOLDS = 3


def linear_opinion(
    texts: Sequence[str], labels: NDArray[np.int64], *, seed: int
) -> NDArray[np.float32]:
    """Return p(y=1) of each text, (N,), by a linear model that has not seen that text's label.

    Word 1- and 2-grams and character 2- to 5-grams, TF-IDF, logistic regression, three folds.
    A class needs three texts or more.

    >>> texts = ["you fool", "what a fool", "a fool", "kind words", "good day", "thank you"]
    >>> opinion = linear_opinion(texts, np.array([1, 1, 1, 0, 0, 0]), seed=0)
    >>> bool(opinion[:3].mean() > opinion[3:].mean())
    True
    """
    folds = StratifiedKFold(_FOLDS, shuffle=True, random_state=seed)
    opinion = cross_val_predict(
        LogisticRegression(C=_INVERSE_RIDGE, max_iter=300),
        _tfidf().fit_transform(texts),
        labels,
        cv=folds,
        method="predict_proba",
    )
    return np.asarray(opinion[:, 1], dtype=np.float32)


def _tfidf() -> FeatureUnion:
    """Return both kinds of features; document frequencies know no labels, so folds share them."""
    return FeatureUnion(
        [
            ("words", _weighted(ngram_range=(1, 2))),
            ("characters", _weighted(analyzer="char_wb", ngram_range=(2, 5))),
        ]
    )


def _weighted(**ngrams: object) -> Pipeline:
    counts = HashingVectorizer(
        n_features=_FEATURES, alternate_sign=False, norm=None, dtype=np.float32, **ngrams
    )
    return Pipeline([("counts", counts), ("tfidf", TfidfTransformer(sublinear_tf=True))])
