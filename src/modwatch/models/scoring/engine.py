"""Scores texts in windows: the next one is tokenised while the model predicts this one."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from modwatch.models.scoring.scorer import Predictions

Ids = Sequence[Sequence[int]]

#: Texts that are tokenised and put into batches together, so that those of a batch have nearly the
#: same length; two windows are in memory at a time.
WINDOW = 4_096


def score_in_windows(
    texts: Sequence[str],
    *,
    tokenize: Callable[[Sequence[str]], Ids],
    predict: Callable[[Ids], Predictions],
) -> Predictions:
    """Return predictions for `texts`, in their order; equal texts are predicted once.

    Except for the three numbers of each text, memory does not grow with the number of texts.

    >>> def predict(ids):
    ...     prob = np.array([len(each) / 10 for each in ids], np.float32)
    ...     return Predictions(prob=prob, model_variance=0 * prob, mutual_information=0 * prob)
    >>> split = lambda texts: [text.split() for text in texts]
    >>> score_in_windows(["a", "a b", "a"], tokenize=split, predict=predict).prob.round(1).tolist()
    [0.10000000149011612, 0.20000000298023224, 0.10000000149011612]
    """
    place: dict[str, int] = {}
    where = np.fromiter((place.setdefault(text, len(place)) for text in texts), np.intp, len(texts))
    columns = np.zeros((3, len(place)), np.float32)
    start = 0
    for ids in _tokenized(list(place), tokenize):
        found = predict(ids)
        rows = slice(start, start + len(ids))
        columns[:, rows] = found.columns
        start += len(ids)
    return Predictions.from_columns(columns[:, where])


def _tokenized(texts: list[str], tokenize: Callable[[Sequence[str]], Ids]) -> Iterator[Ids]:
    """Yield the ids of each window; those of the next are made in another thread meanwhile."""
    windows = [texts[start : start + WINDOW] for start in range(0, len(texts), WINDOW)]
    if not windows:
        return
    with ThreadPoolExecutor(1) as worker:
        coming = worker.submit(tokenize, windows[0])
        for following in windows[1:]:
            ids = coming.result()
            coming = worker.submit(tokenize, following)
            yield ids
        yield coming.result()
