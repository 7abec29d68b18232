"""Predictions of a linear teacher for the training comments (knowledge distillation).

TF-IDF with logistic regression makes other errors than a small encoder, and fewer on new words. An
encoder trained on a mixture of label and teacher prediction learns some of that (Hinton, Vinyals &
Dean 2015, section 2).
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import FeatureUnion, Pipeline

#: Hashed features of each kind. Hashing requires no vocabulary, so it works for every corpus in
#: bounded memory.
_FEATURES = 2**18
_INVERSE_RIDGE = 4.0
_FOLDS = 3


def teacher_predictions(
    texts: Sequence[str], labels: NDArray[np.int64], *, seed: int
) -> NDArray[np.float32]:
    """Return out-of-fold predictions of p(y=1), (N,), by a linear model.

    Word 1- and 2-grams and character 2- to 5-grams, TF-IDF, logistic regression, three folds.
    Each class requires at least three texts.

    >>> texts = ["you fool", "what a fool", "a fool", "kind words", "good day", "thank you"]
    >>> prob = teacher_predictions(texts, np.array([1, 1, 1, 0, 0, 0]), seed=0)
    >>> bool(prob[:3].mean() > prob[3:].mean())
    True
    """
    folds = StratifiedKFold(_FOLDS, shuffle=True, random_state=seed)
    prob = cross_val_predict(
        LogisticRegression(C=_INVERSE_RIDGE, max_iter=300),
        _tfidf().fit_transform(texts),
        labels,
        cv=folds,
        method="predict_proba",
    )
    return np.asarray(prob[:, 1], dtype=np.float32)


def _tfidf() -> FeatureUnion:
    """Return both kinds of features; document frequencies use no labels, so folds share them."""
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
