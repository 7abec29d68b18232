"""The interface between the daily pipeline and a model, in process or on a server."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Ids = Sequence[Sequence[int]]
#: The passages of each text, at least one, and whether its end was cut.
Passages = Sequence[tuple[Ids, bool]]
#: Texts, or further passages, that are put into batches together, so that those of a batch have
#: nearly the same length; and most characters of the texts, unless a single one has more. Two
#: windows are in memory at a time.
WINDOW = 4_096
CHARACTERS = 512 * WINDOW

#: Of a model that says no other.
DEFAULT_THRESHOLD = 0.5

#: The values of labels, and how many texts it takes to call them that.
_LABELS, _FEWEST = {0.0, 1.0}, 12


@dataclass(frozen=True, kw_only=True)
class Predictions:
    """Predictions for N comments, in the order of the request.

    Source: Kivlichan et al. (2021), section 3.
    """

    #: (N,) float32 in [0, 1]: posterior mean of p(y=1|x).
    prob: NDArray[np.float32]
    #: (N,) float32 ≥ 0: Var_W p(y=1|x,W); 0 for a deterministic model.
    model_variance: NDArray[np.float32]
    #: (N,) float32 ≥ 0, nats: I(y; W|x); 0 for a deterministic model.
    mutual_information: NDArray[np.float32]
    #: (N,) whether the model read only a part of the comment.
    cut: NDArray[np.bool_]

    @classmethod
    def from_columns(cls, columns: NDArray[np.floating]) -> "Predictions":
        """Return the predictions with these columns (4, N), in the order of the fields."""
        prob, variance, information, cut = np.asarray(columns, np.float32)
        return cls(prob=prob, model_variance=variance, mutual_information=information, cut=cut > 0)

    @classmethod
    def certain(cls, prob: NDArray[np.float32]) -> "Predictions":
        """Return the predictions of a deterministic model with probabilities (N,)."""
        zero = np.zeros_like(prob)
        return cls.from_columns(np.stack([prob, zero, zero, zero]))

    @property
    def columns(self) -> NDArray[np.float32]:
        """(4, N) float32: the fields."""
        return np.stack([self.prob, self.model_variance, self.mutual_information, self.cut])

    @property
    def by_name(self) -> dict[str, NDArray[Any]]:
        """The fields and the uncertainty, as tables have them."""
        return {"prob": self.prob, "uncertainty": self.uncertainty, **vars(self)}

    @property
    def uncertainty(self) -> NDArray[np.float32]:
        """(N,) float32 in [0, 0.25]: p(1−p), Eq. 1 of Kivlichan et al. (2021); 0.25 if cut.

        >>> from dataclasses import replace
        >>> found = Predictions.certain(np.array([0.5, 1.0], np.float32))
        >>> found.uncertainty.tolist(), replace(found, cut=~found.cut).uncertainty.tolist()
        ([0.25, 0.0], [0.25, 0.25])
        """
        return np.where(self.cut, np.float32(0.25), self.prob * (1 - self.prob))


class LabelsCheck:
    """Finds models that return labels in place of probabilities.

    >>> found = LabelsCheck()
    >>> found.only(np.zeros(20)), found.only(np.ones(1)), found.only(np.array([0.5]))
    (False, True, False)
    >>> found.only(np.ones(1))  # it has returned a probability before
    False
    """

    def __init__(self) -> None:
        self._texts, self._values = 0, set[float]()

    def only(self, prob: NDArray[np.floating]) -> bool:
        """Return whether all texts so far, a dozen at least, had 0 and 1, and both occurred."""
        self._texts += len(prob)
        if self._values <= _LABELS:
            self._values.update(np.unique(prob)[:3].tolist())
        return self._texts >= _FEWEST and self._values == _LABELS


class Scorer(Protocol):
    """Predicts toxicity. Implementations: `scoring.local` (in process)."""

    @property
    def model_version(self) -> str:
        """Version in the model registry, as a string."""
        ...

    @property
    def threshold(self) -> float:
        """A comment is flagged when prob > threshold."""
        ...

    def score(self, texts: Sequence[str]) -> Predictions:
        """Return predictions for `texts`, in their order."""
        ...


def score_in_windows(
    texts: Sequence[str],
    *,
    tokenize: Callable[[Sequence[str]], Passages],
    predict: Callable[[Ids], Predictions],
) -> Predictions:
    """Return predictions for `texts`, in their order; equal texts are predicted once.

    A text has the prediction of its most toxic passage: one toxic part makes a comment toxic.
    Except for the four numbers of each text, memory does not grow with the number of texts.

    Source: MaxP of Dai & Callan (2019); the rule of multiple instances, Dietterich et al. (1997).

    >>> def predict(ids):
    ...     return Predictions.certain(np.array([len(words) / 8 for words in ids], np.float32))
    >>> def split(texts):
    ...     return [([part.split() for part in text.split(".")], False) for text in texts]
    >>> score_in_windows(["a", "a.a b", "a"], tokenize=split, predict=predict).prob.tolist()
    [0.125, 0.25, 0.125]
    """
    place: dict[str, int] = {}
    where = np.fromiter((place.setdefault(text, len(place)) for text in texts), np.intp, len(texts))
    columns = np.zeros((4, len(place)), np.float32)
    start = 0
    for window in _tokenized(list(place), tokenize):
        _predict_most_toxic(columns[:, start : start + len(window)], window, predict)
        start += len(window)
    return Predictions.from_columns(columns[:, where])


def _predict_most_toxic(
    columns: NDArray[np.float32], window: Passages, predict: Callable[[Ids], Predictions]
) -> None:
    """Set the columns (4, n), zeros, of n texts to the predictions of their most toxic passages.

    Texts of one passage are predicted by themselves, so that no long text changes their batches,
    and thereby their rounding.
    """
    one = [row for row, (passages, _) in enumerate(window) if len(passages) == 1]
    if one:
        columns[:, one] = predict([window[row][0][0] for row in one]).columns
    columns[3] = [cut for _, cut in window]
    several = (
        (row, ids)
        for row, (passages, _) in enumerate(window)
        for ids in passages
        if len(passages) > 1
    )
    while part := list(islice(several, WINDOW)):
        row = np.array([row for row, _ in part])
        found = predict([ids for _, ids in part]).columns
        order = np.lexsort((found[0], row))
        most = order[np.flatnonzero(np.diff(row[order], append=-1))]  # the last of each row
        most = most[found[0, most] >= columns[0, row[most]]]
        columns[:3, row[most]] = found[:3, most]


def _tokenized(
    texts: list[str], tokenize: Callable[[Sequence[str]], Passages]
) -> Iterator[Passages]:
    """Yield the passages of each window; those of the next are made in another thread meanwhile."""
    windows = _windows(texts)
    if not texts:
        return
    with ThreadPoolExecutor(1) as worker:
        coming = worker.submit(tokenize, next(windows))
        for following in windows:
            passages = coming.result()
            coming = worker.submit(tokenize, following)
            yield passages
        yield coming.result()


def _windows(texts: list[str]) -> Iterator[list[str]]:
    """Yield the texts of each window."""
    start = size = 0
    for row, text in enumerate(texts):
        size += len(text)
        if row > start and (row - start == WINDOW or size > CHARACTERS):
            yield texts[start:row]
            start, size = row, len(text)
    yield texts[start:]
