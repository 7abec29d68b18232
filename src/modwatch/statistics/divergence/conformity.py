"""Conformity: is a model closer to an annotator's label, or to the majority's?"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from modwatch.statistics.arguments import Floats
from modwatch.statistics.disagreement.annotations import Annotations, Codes, distribution, majority
from modwatch.statistics.intervals import LEVEL

#: Added to each number of deltas.
SMOOTHING = 0.5
#: Random numbers of an interval.
_NORMALS = 4_000


@dataclass(frozen=True, kw_only=True)
class Conformity:
    """The conformity deltas of M annotations."""

    #: (M,) δ in [−1, 1]: 0 where the annotator gave the majority label, above 0 where the model is
    #: closer to the majority, below 0 where it is closer to the annotator.
    delta: NDArray[np.float32] = field(repr=False)
    #: (M,) codes of item and annotator.
    item: Codes = field(repr=False)
    annotator: Codes = field(repr=False)
    #: Items without a majority, and their annotations; they are left out.
    tied_items: int
    tied_annotations: int

    @property
    def total(self) -> float | None:
        """Mean δ, the paper's general uncertainty; None without annotations."""
        return float(self.delta.mean()) if self.delta.size else None

    def signs(self, chosen: NDArray[np.bool_] | None = None) -> NDArray[np.int64]:
        """Return the numbers (3,) of deltas below, at and above 0, of all or the chosen (M,)."""
        delta = self.delta if chosen is None else self.delta[chosen]
        return np.array([(delta < 0).sum(), (delta == 0).sum(), (delta > 0).sum()])


def conformity_delta(annotations: Annotations, y_prob: ArrayLike) -> Conformity:
    """Return δ = b(t, y_a) − b(t, y_A) of each annotation (Urbinati et al. 2025, Eq. 2).

    b(t, y) = (1/K) Σ (o_k − p_k)² is the Brier score of the label y (Eq. 1), y_a the annotator's
    label and y_A the majority label. The squares cancel: δ = (2/K)·(p(y_A) − p(y_a)), exactly 0 for
    the same label. Each annotator's first label counts.

    Args:
        annotations: of K classes.
        y_prob: (I,) probability of the last of two classes, or (I, K) of all, in the order of
            `annotations.items`.

    Raises:
        MetricInputError: probabilities that are no distribution, or of another number of items.

    >>> annotations = Annotations.from_columns(item=[0, 0, 0], annotator=[0, 1, 2], label=[1, 1, 0])
    >>> [round(float(delta), 2) for delta in conformity_delta(annotations, [0.9]).delta]
    [0.0, 0.0, 0.8]
    """
    prob = distribution(y_prob, annotations, np.float32)
    label, tied = majority(annotations.counts())
    first = annotations.first
    kept = first & ~tied[annotations.item]
    item, given = annotations.item[kept], annotations.label[kept]
    delta = prob[item, label[item]] - prob[item, given]
    delta *= 2 / annotations.n_classes
    seen = np.zeros(len(annotations.items), bool)
    seen[annotations.item] = True
    return Conformity(
        delta=delta.astype(np.float32),
        item=item,
        annotator=annotations.annotator[kept],
        tied_items=int((tied & seen).sum()),
        tied_annotations=int(first.sum() - kept.sum()),
    )


def uncertainty_divergence(
    signs: NDArray[np.number], group_signs: NDArray[np.number], smoothing: float = SMOOTHING
) -> Floats:
    """Return the divergence KL(P‖Q) ≥ 0 of groups' deltas from all (Urbinati et al. 2025, Eq. 5).

    P are the shares of deltas below, at and above 0 among all annotations, "all the disaggregated
    labels in the corpus", those of annotators without a group among them; Q those of each group.
    Natural logarithm. 0 if the shares are equal.

    Args:
        signs: (3,) numbers of all annotations (`Conformity.signs`).
        group_signs: (…, 3) numbers of each group.
        smoothing: added to each number, so that an empty category of a group is finite.

    >>> found = uncertainty_divergence(np.array([10, 80, 10]), np.array([20, 60, 20]))
    >>> round(float(found), 2)
    0.09
    """
    p, q = signs + smoothing, group_signs + smoothing
    p, q = p / p.sum(), q / q.sum(axis=-1, keepdims=True)
    return np.asarray((p * np.log(p / q)).sum(axis=-1))


def divergence_interval(
    signs: Floats, mine: NDArray[np.bool_], rng: np.random.Generator
) -> tuple[float, float]:
    """Return a 95 % interval of `uncertainty_divergence` for the people of whom these are a sample.

    The divergence is about half the squared length of d = (Q − P)/√P, so that noise alone has a
    length. The interval consists of the lengths along d under which the observed one is no
    exception; the noise has the covariance of d, annotators as clusters, with the tails of
    Student's t. The upper end is at least that of the length to expect of noise alone. NaN with
    fewer than two annotators.

    Args:
        signs: (A, 3) numbers of each annotator's deltas below, at and above 0.
        mine: (A,) whether an annotator belongs to the group.
        rng: of the noise.
    """
    own, size = signs[mine], int(mine.sum())
    if size < 2:
        return float("nan"), float("nan")
    p, q = (
        (counts.sum(axis=0) + SMOOTHING) / (counts.sum() + 3 * SMOOTHING) for counts in (signs, own)
    )
    d = (q - p) / np.sqrt(p)
    length, value = (
        float(np.linalg.norm(d)),
        float(uncertainty_divergence(signs.sum(axis=0), own.sum(axis=0))),
    )
    variance, axes = np.linalg.eigh(_covariance(signs, mine, p, q))
    noise = rng.standard_normal((_NORMALS, 3)) * np.sqrt(variance.clip(0)) @ axes.T
    noise *= np.sqrt((size - 1) / rng.chisquare(size - 1, (_NORMALS, 1)))
    squares = (noise**2).sum(axis=1)
    along = noise @ (d / length if length else axes[:, -1])

    def is_exceeded(level: float, observed: float) -> float:
        """Return the true length under which that share of the lengths is at most `observed`."""
        low, high = 0.0, observed + float(np.sqrt(squares.max()))
        for _ in range(50):
            middle = (low + high) / 2
            lengths = np.sqrt(np.maximum(middle**2 + 2 * middle * along + squares, 0))
            low, high = (middle, high) if (lengths <= observed).mean() > level else (low, middle)
        return low

    ends = (
        is_exceeded((1 + LEVEL) / 2, length),
        is_exceeded((1 - LEVEL) / 2, max(length, float(np.sqrt(variance.clip(0).sum())))),
    )
    scale = value / length**2 if length else 0.5
    return scale * ends[0] ** 2, scale * ends[1] ** 2


def _covariance(signs: Floats, mine: NDArray[np.bool_], p: Floats, q: Floats) -> Floats:
    """Return the covariance (3, 3) of (Q − P)/√P, linearised, annotators as clusters."""
    own, size = signs[mine], int(mine.sum())
    influence = -(signs - signs.sum(axis=1, keepdims=True) * p) / signs.sum()
    influence[mine] += (own - own.sum(axis=1, keepdims=True) * q) / own.sum()
    influence[mine] *= np.sqrt(size / (size - 1))
    influence /= np.sqrt(p)
    return np.asarray(influence.T @ influence)
