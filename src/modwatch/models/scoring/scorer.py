"""The interface between the daily pipeline and a model, in process or on a server."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Ids = Sequence[Sequence[int]]
#: Texts that are tokenised and put into batches together, so that those of a batch have nearly the
#: same length; two windows are in memory at a time.
WINDOW = 4_096

#: Of a model that says no other.
DEFAULT_THRESHOLD = 0.5


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

    @classmethod
    def from_columns(cls, columns: NDArray[np.floating]) -> "Predictions":
        """Return the predictions with these columns (3, N), in the order of the fields."""
        prob, variance, information = np.asarray(columns, np.float32)
        return cls(prob=prob, model_variance=variance, mutual_information=information)

    @classmethod
    def certain(cls, prob: NDArray[np.float32]) -> "Predictions":
        """Return the predictions of a deterministic model with probabilities (N,)."""
        zero = np.zeros_like(prob)
        return cls(prob=prob, model_variance=zero, mutual_information=zero.copy())

    @property
    def columns(self) -> NDArray[np.float32]:
        """(3, N): `prob`, `model_variance`, `mutual_information`."""
        return np.stack([self.prob, self.model_variance, self.mutual_information])

    @property
    def uncertainty(self) -> NDArray[np.float32]:
        """(N,) float32 in [0, 0.25]: p(1−p), Eq. 1 of Kivlichan et al. (2021).

        >>> import numpy as np
        >>> zero = np.zeros(2, np.float32)
        >>> p = np.array([0.5, 1.0], np.float32)
        >>> Predictions(prob=p, model_variance=zero, mutual_information=zero).uncertainty.tolist()
        [0.25, 0.0]
        """
        return self.prob * (1 - self.prob)


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
    tokenize: Callable[[Sequence[str]], Ids],
    predict: Callable[[Ids], Predictions],
) -> Predictions:
    """Return predictions for `texts`, in their order; equal texts are predicted once.

    Except for the three numbers of each text, memory does not grow with the number of texts.

    >>> def predict(ids):
    ...     prob = np.array([len(words) / 10 for words in ids], np.float32)
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
