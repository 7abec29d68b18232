"""The interface between the daily pipeline and a model, in process or on a server."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from modwatch.common.errors import ModelError

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

#: Columns that all models return: the probability, and whether only a part was read.
PLAIN = ("prob", "cut")
#: Those of a model with a posterior of its weights, float32 ≥ 0: Var_W p(y=1|x,W), and I(y; W|x) in
#: nats.
SPREADS = ("model_variance", "mutual_information")

_NOTHING: Mapping[str, NDArray[np.floating]] = MappingProxyType({})

#: The values of labels, and how many texts it takes to call them that.
_LABELS, _FEWEST = {0.0, 1.0}, 12


@dataclass(frozen=True, kw_only=True)
class Predictions:
    """Predictions for N comments, in the order of the request: named columns.

    Source: Kivlichan et al. (2021), section 3.

    >>> found = Predictions.of(np.array([0.5, 1.0]), {"model_variance": np.array([0.1, 0.0])})
    >>> found.names, found.uncertainty.tolist()
    (('prob', 'cut', 'model_variance'), [0.25, 0.0])
    """

    #: `PLAIN`, and what else the model returns, such as `SPREADS`.
    names: tuple[str, ...]
    #: (K, N) float32, finite: the columns of these names.
    values: NDArray[np.float32]

    @classmethod
    def of(
        cls,
        prob: NDArray[np.floating],
        more: Mapping[str, NDArray[np.floating]] = _NOTHING,
        *,
        cut: NDArray[np.bool_] | None = None,
    ) -> "Predictions":
        """Return predictions from columns (N,); by default every comment was read to its end."""
        cuts = np.zeros(len(prob)) if cut is None else cut
        values = np.stack([prob, cuts, *more.values()]).astype(np.float32)
        return cls(names=(*PLAIN, *more), values=values)

    @property
    def prob(self) -> NDArray[np.float32]:
        """(N,) float32 in [0, 1]: posterior mean of p(y=1|x)."""
        return np.asarray(self.values[0])

    @property
    def cut(self) -> NDArray[np.bool_]:
        """(N,) whether the model read only a part of the comment."""
        return np.asarray(self.values[1] > 0)

    @property
    def further(self) -> dict[str, NDArray[np.float32]]:
        """The columns (N,) besides `PLAIN`."""
        return dict(zip(self.names[2:], self.values[2:], strict=True))

    @property
    def by_name(self) -> dict[str, NDArray[Any]]:
        """The columns and the uncertainty, as tables have them."""
        plain = {"prob": self.prob, "uncertainty": self.uncertainty}
        return plain | self.further | {"cut": self.cut}

    @property
    def uncertainty(self) -> NDArray[np.float32]:
        """(N,) float32 in [0, 0.25]: p(1−p), Eq. 1 of Kivlichan et al. (2021); 0.25 if cut."""
        return np.where(self.cut, np.float32(0.25), self.prob * (1 - self.prob))


def check_finite(names: Sequence[str], values: NDArray[np.float32], model: str) -> None:
    """Raise ModelError, naming `model` and the column, unless all values (K, N) are finite.

    >>> check_finite(["model_variance"], np.array([[np.nan]]), "version 3")
    Traceback (most recent call last):
    modwatch.common.errors.ModelError: version 3 returns no finite number in model_variance
    """
    finite = np.isfinite(values).all(axis=1)
    if not finite.all():
        raise ModelError(f"{model} returns no finite number in {names[int(np.argmin(finite))]}")


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
    def columns(self) -> tuple[str, ...]:
        """Names of the columns of its predictions, `PLAIN` first."""
        ...

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
    names: tuple[str, ...] = PLAIN,
) -> Predictions:
    """Return predictions for `texts`, in their order; equal texts are predicted once.

    A text has the prediction of its most toxic passage: one toxic part makes a comment toxic.
    Except for the columns `names` of each text, memory does not grow with the number of texts.

    Source: MaxP of Dai & Callan (2019); the rule of multiple instances, Dietterich et al. (1997).

    >>> def predict(ids):
    ...     return Predictions.of(np.array([len(words) / 8 for words in ids]))
    >>> def split(texts):
    ...     return [([part.split() for part in text.split(".")], False) for text in texts]
    >>> score_in_windows(["a", "a.a b", "a"], tokenize=split, predict=predict).prob.tolist()
    [0.125, 0.25, 0.125]
    """
    place: dict[str, int] = {}
    where = np.fromiter((place.setdefault(text, len(place)) for text in texts), np.intp, len(texts))
    values = np.zeros((len(names), len(place)), np.float32)
    start = 0
    for window in _tokenized(list(place), tokenize):
        _predict_most_toxic(values[:, start : start + len(window)], window, predict)
        start += len(window)
    return Predictions(names=names, values=values[:, where])


def _predict_most_toxic(
    values: NDArray[np.float32], window: Passages, predict: Callable[[Ids], Predictions]
) -> None:
    """Set the values (K, n), zeros, of n texts to the predictions of their most toxic passages.

    Texts of one passage are predicted by themselves, so that no long text changes their batches,
    and thereby their rounding.
    """
    one = [row for row, (passages, _) in enumerate(window) if len(passages) == 1]
    if one:
        values[:, one] = predict([window[row][0][0] for row in one]).values
    several = (
        (row, ids)
        for row, (passages, _) in enumerate(window)
        for ids in passages
        if len(passages) > 1
    )
    while part := list(islice(several, WINDOW)):
        row = np.array([row for row, _ in part])
        found = predict([ids for _, ids in part]).values
        order = np.lexsort((found[0], row))
        most = order[np.flatnonzero(np.diff(row[order], append=-1))]  # the last of each row
        most = most[found[0, most] >= values[0, row[most]]]
        values[:, row[most]] = found[:, most]
    values[1] = [cut for _, cut in window]


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
