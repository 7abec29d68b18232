import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.metrics import roc_auc_score

from modwatch.models.teacher import teacher_predictions

Corpus = tuple[list[str], list[int]]


def test_opinion_ranks_an_obvious_rule(corpus: Corpus) -> None:
    opinion = teacher_predictions(corpus[0], np.array(corpus[1]), seed=0)
    assert opinion.shape == (240,)
    assert opinion.dtype == np.float32
    assert roc_auc_score(corpus[1], opinion) > 0.99


def test_same_seed_same_predictions(corpus: Corpus) -> None:
    texts, label = corpus[0], np.array(corpus[1])
    assert_array_equal(
        teacher_predictions(texts, label, seed=3), teacher_predictions(texts, label, seed=3)
    )


def test_a_text_s_own_label_is_not_in_its_opinion() -> None:
    texts = [f"unlike{i} any{i} other{i}" for i in range(60)]
    label = np.random.default_rng(0).permutation(np.repeat([0, 1], 30))
    assert roc_auc_score(label, teacher_predictions(texts, label, seed=0)) < 0.8


@pytest.mark.parametrize("text", ["", "?", "\x00", "🙂" * 500])
def test_texts_without_words_do_no_harm(text: str) -> None:
    opinion = teacher_predictions([text] * 12, np.array([0, 1] * 6), seed=0)
    assert opinion == pytest.approx(0.5, abs=1e-3)
