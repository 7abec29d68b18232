"""Windows of texts: order, equal texts, memory, failures."""

import threading
import tracemalloc
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from modwatch.models.scoring import scorer
from modwatch.models.scoring.scorer import Ids, Predictions, score_in_windows


def split(texts: Sequence[str]) -> Ids:
    return [[ord(character) for character in text] for text in texts]


def lengths(ids: Ids) -> Predictions:
    value = np.array([len(id) for id in ids], np.float32)
    return Predictions(prob=value, model_variance=value + 1, mutual_information=value + 2)


@given(texts=st.lists(st.text(alphabet="ab", max_size=3), max_size=20), window=st.integers(1, 25))
def test_order_and_equal_texts(texts: list[str], window: int) -> None:
    seen = list[tuple[int, ...]]()

    def predict(ids: Ids) -> Predictions:
        seen.extend(tuple(id) for id in ids)
        return lengths(ids)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scorer, "WINDOW", window)
        found = score_in_windows(texts, tokenize=split, predict=predict)
    assert found.prob.tolist() == [len(text) for text in texts]
    assert found.model_variance.tolist() == [len(text) + 1 for text in texts]
    assert found.mutual_information.tolist() == [len(text) + 2 for text in texts]
    assert len(seen) == len(set(texts))


def test_the_next_window_is_tokenised_while_the_model_predicts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(scorer, "WINDOW", 1)
    begun = {text: threading.Event() for text in "abc"}

    def tokenize(texts: Sequence[str]) -> Ids:
        begun[texts[0]].set()
        return split(texts)

    def predict(ids: Ids) -> Predictions:
        following = chr(ids[0][0] + 1)
        assert following not in begun or begun[following].wait(timeout=30)
        return lengths(ids)

    assert score_in_windows("abc", tokenize=tokenize, predict=predict).prob.tolist() == [1, 1, 1]


@pytest.mark.parametrize("fails", ["tokenize", "predict"])
def test_a_failure_is_raised(fails: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scorer, "WINDOW", 1)

    def fail(given: object) -> Predictions:
        raise ValueError("it failed")

    steps = {"tokenize": split, "predict": lengths} | {fails: fail}
    with pytest.raises(ValueError, match="it failed"):
        score_in_windows(["a", "b", "c"], **steps)  # type: ignore[arg-type]


def test_two_windows_at_most_are_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scorer, "WINDOW", 10)
    texts = [str(number) for number in range(400)]

    def tokenize(texts: Sequence[str]) -> Ids:
        return [[*range(1_000, 3_000)] for _ in texts]  # 72 kB each

    tracemalloc.start()
    score_in_windows(texts, tokenize=tokenize, predict=lengths)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4_000_000  # all windows: 29 MB
