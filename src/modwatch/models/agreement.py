"""How closely a model's predictions in bfloat16 agree with those in fp32."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

#: Share of the comments that is reviewed, for `reviewed_overlap`.
_REVIEWED = 0.1


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """What changes between two precisions of the same model."""

    #: Comments that were compared.
    comments: int
    #: Largest |Δp|, in [0, 1].
    largest_difference: float
    #: Share of the comments that only one of them flags, in [0, 1].
    decisions_changed: float
    #: Share of the tenth with the highest p(1−p) that both have in common, in [0, 1].
    reviewed_overlap: float

    @property
    def close(self) -> bool:
        """Whether one may stand for the other.

        No probability differs by more than 0.005, at most one decision in a thousand does, and at
        least 99 % of the reviewed comments are the same.
        """
        return (
            self.largest_difference <= 5e-3
            and self.decisions_changed <= 1e-3
            and self.reviewed_overlap >= 0.99
        )


def agreement(
    exact: NDArray[np.floating], coarse: NDArray[np.floating], *, threshold: float
) -> Agreement:
    """Return the agreement of the probabilities (n,) of the same comments, one at least.

    >>> agreement(np.array([0.2, 0.6]), np.array([0.201, 0.6]), threshold=0.5)
    Agreement(comments=2, largest_difference=0.001, decisions_changed=0.0, reviewed_overlap=1.0)
    """
    reviewed = max(1, round(_REVIEWED * len(exact)))
    first, second = (
        set(np.argsort(-prob * (1 - prob), kind="stable")[:reviewed].tolist())
        for prob in (exact, coarse)
    )
    return Agreement(
        comments=len(exact),
        largest_difference=round(float(np.abs(exact - coarse).max()), 6),
        decisions_changed=float(np.mean((exact > threshold) != (coarse > threshold))),
        reviewed_overlap=len(first & second) / reviewed,
    )
