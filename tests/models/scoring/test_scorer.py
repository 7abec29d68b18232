"""Windows of texts: order, equal texts, memory, failures."""

import threading
import tracemalloc
from collections.abc import Sequence
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from modwatch.models.scoring import scorer
from modwatch.models.scoring.scorer import Ids, Passages, Predictions, score_in_windows


def split(texts: Sequence[str]) -> Passages:
    """Return the characters of each text; those after a full stop are another passage."""
    return [
        ([[ord(sign) for sign in part] for part in text.split(".")], text.endswith("!"))
        for text in texts
    ]


def lengths(ids: Ids) -> Predictions:
    value = np.array([len(id) for id in ids], np.float32)
    return Predictions.of(value, {"first": value + 1, "second": value + 2})


scored = partial(score_in_windows, names=("prob", "cut", "first", "second"))


@given(texts=st.lists(st.text(alphabet="ab", max_size=3), max_size=20), window=st.integers(1, 25))
def test_order_and_equal_texts(texts, window):
    seen = list[tuple[int, ...]]()

    def predict(ids: Ids) -> Predictions:
        seen.extend(tuple(id) for id in ids)
        return lengths(ids)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scorer, "WINDOW", window)
        found = scored(texts, tokenize=split, predict=predict)
    assert found.prob.tolist() == [len(text) for text in texts]
    assert found.further["first"].tolist() == [len(text) + 1 for text in texts]
    assert found.further["second"].tolist() == [len(text) + 2 for text in texts]
    assert len(seen) == len(set(texts))


def test_the_next_window_is_tokenised_while_the_model_predicts(monkeypatch):
    monkeypatch.setattr(scorer, "WINDOW", 1)
    begun = {text: threading.Event() for text in "abc"}

    def tokenize(texts: Sequence[str]) -> Passages:
        begun[texts[0]].set()
        return split(texts)

    def predict(ids: Ids) -> Predictions:
        following = chr(ids[0][0] + 1)
        assert following not in begun or begun[following].wait(timeout=30)
        return lengths(ids)

    assert scored("abc", tokenize=tokenize, predict=predict).prob.tolist() == [1, 1, 1]


@pytest.mark.parametrize("fails", ["tokenize", "predict"])
def test_a_failure_is_raised(fails, monkeypatch):
    monkeypatch.setattr(scorer, "WINDOW", 1)

    def fail(given: object) -> Predictions:
        raise ValueError("it failed")

    steps = {"tokenize": split, "predict": lengths} | {fails: fail}
    with pytest.raises(ValueError, match="it failed"):
        scored(["a", "b", "c"], **steps)  # type: ignore[arg-type]


def test_two_windows_at_most_are_in_memory(monkeypatch):
    monkeypatch.setattr(scorer, "WINDOW", 10)
    texts = [str(number) for number in range(400)]

    def tokenize(texts: Sequence[str]) -> Passages:
        return [([[*range(1_000, 3_000)]], False) for _ in texts]  # 72 kB each

    tracemalloc.start()
    scored(texts, tokenize=tokenize, predict=lengths)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4_000_000  # all windows: 29 MB


@given(texts=st.lists(st.text(alphabet="ab.!", max_size=9), max_size=20), window=st.integers(1, 9))
def test_a_text_has_the_prediction_of_its_most_toxic_passage(texts, window):
    def predict(ids: Ids) -> Predictions:
        assert len(ids) <= window
        return lengths(ids)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scorer, "WINDOW", window)
        found = scored(texts, tokenize=split, predict=predict)
    longest = [max(map(len, text.split("."))) for text in texts]
    rows = found.values[[0, 2, 3]]
    assert rows.tolist() == [[n + more for n in longest] for more in range(3)]
    assert found.cut.tolist() == [text.endswith("!") for text in texts]
    assert (found.uncertainty[found.cut] == 0.25).all()


def test_long_texts_change_no_batch_of_the_others():
    batches = list[Ids]()

    def predict(ids: Ids) -> Predictions:
        batches.append(ids)
        return lengths(ids)

    scored(["ab", "a.b.c", "b"], tokenize=split, predict=predict)
    assert [len(ids) for ids in batches] == [2, 3]


@given(st.lists(st.integers(0, 9), max_size=20), st.integers(1, 12), st.integers(1, 5))
def test_windows_have_every_text_once_and_bounded_characters(sizes, characters, window):
    texts = [chr(97 + row) * size for row, size in enumerate(sizes)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scorer, "WINDOW", window)
        patch.setattr(scorer, "CHARACTERS", characters)
        windows = list(scorer._windows(texts))
    assert [text for part in windows for text in part] == texts
    for part in windows:
        assert len(part) <= window
        assert len(part) == 1 or sum(map(len, part)) <= characters
