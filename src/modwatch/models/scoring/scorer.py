"""The interface between the daily pipeline and a model, in process or on a server."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

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
