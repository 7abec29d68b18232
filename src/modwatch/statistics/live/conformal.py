"""Conformal prediction: sets of labels that contain the true one at a stated rate.

Split-conformal prediction for two classes (Vovk et al. 2005; Angelopoulos & Bates 2021), with the
nonconformity score 1 − p(y). Labelled comments of the same stream are the calibration sample. If
some were more likely to be labelled than others, their inverse inclusion probabilities make the
guarantee hold for the stream (weighted exchangeability, Tibshirani et al. 2019). Groups are
calibrated apart (Mondrian), so that the guarantee holds in each.

The guarantee is an average over samples of calibration and new comments: P(label in set) ≥
`coverage`. It does not hold for a single comment, and assumes labels without errors. Rows of a
sample of days count as toxic with the probability inferred from their labels, and with their
weights.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from modwatch.common.errors import MetricInputError
from modwatch.statistics import arguments
from modwatch.statistics.agreement import observed_agreement
from modwatch.statistics.arguments import Floats
from modwatch.statistics.live.labelled_day import LabelledDay
from modwatch.statistics.live.sample import Sample

#: Of sums of weights: a p-value of 0.1 is not above 1 − 0.9.
_ROUNDING = 1e-12


@dataclass(frozen=True, kw_only=True)
class ConformalPrediction:
    """Prediction sets of n comments."""

    #: (n, 2) p-value in (0, 1] of each label: the share of calibration comments that conform less.
    p_value: Floats
    #: (n, 2) whether the label is in the set.
    contains: NDArray[np.bool_]

    @property
    def size(self) -> NDArray[np.int64]:
        """(n,) labels in each set: 1 is a decision; 2 means that both are possible, 0 neither."""
        return np.asarray(self.contains.sum(axis=1))

    @property
    def review_score(self) -> Floats:
        """(n,) in [0, 3): sets of two labels come first, empty ones next, then the less sure.

        Within sets of a size, the p-value of the less likely label decides.
        """
        first = np.array([1.0, 0.0, 2.0])[self.size]
        return np.asarray(first + self.p_value.min(axis=1) * (1 - 1e-12))


def conformal_prediction(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    new_prob: ArrayLike,
    *,
    coverage: float = 0.9,
    sample_weight: ArrayLike | None = None,
    new_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    new_groups: ArrayLike | None = None,
) -> ConformalPrediction:
    """Return prediction sets that contain the label with probability ≥ `coverage`.

    A label is in the set if its p-value is above 1 − coverage. Equal scores count as conforming
    less, so that ties make sets larger, never smaller. A group without labelled comments gets both
    labels.

    Args:
        y_true: (m,) labels 0 or 1 of the calibration comments, which the model was not trained on.
        y_prob: (m,) their probabilities.
        new_prob: (n,) probabilities of the comments to predict.
        coverage: in (0, 1).
        sample_weight: (m,) inverse inclusion probabilities; 1 each by default.
        new_weight: (n,) those of the new comments, in the same unit. None: the largest of the
            group's calibration comments, which never covers less.
        groups, new_groups: (m,) and (n,) groups that are calibrated apart; None: one group.

    Raises:
        MetricInputError: arguments out of range or of different lengths, or only one of `groups`
            and `new_groups`.

    >>> found = conformal_prediction([0, 0, 1, 1], [0.1, 0.2, 0.8, 0.9], [0.05, 0.5], coverage=0.7)
    >>> found.contains.tolist(), found.size.tolist()
    ([[True, False], [False, False]], [1, 0])
    """
    y, p, w = arguments.rows(y_true, y_prob, sample_weight, None)
    new = arguments.probabilities(new_prob, name="new_prob")
    if not 0 < coverage < 1:
        raise MetricInputError(f"coverage must be between 0 and 1, got {coverage}")
    if (groups is None) != (new_groups is None):
        raise MetricInputError("pass both of groups and new_groups, or none")
    own = np.asarray(np.zeros(y.size) if groups is None else groups)
    others = np.asarray(np.zeros(new.size) if new_groups is None else new_groups)
    given = (
        None if new_weight is None else arguments.weights(new_weight, new.size, name="new_weight")
    )
    if given is not None:
        arguments.same_length(new_prob=new, new_weight=given)
    arguments.same_length(y_true=y, groups=own)
    arguments.same_length(new_prob=new, new_groups=others)
    p_value = np.ones((new.size, 2))
    score = np.where(y == 1, 1 - p, p)
    for group in np.unique(others):
        rows, wanted = own == group, others == group
        if w[rows].sum() > 0:
            mass = w[rows].max() if given is None else given[wanted]
            p_value[wanted] = _p_values(score[rows], w[rows], new[wanted], mass)
    return ConformalPrediction(p_value=p_value, contains=p_value > 1 - coverage + _ROUNDING)


def _p_values(score: Floats, weight: Floats, new: Floats, new_weight: Floats | float) -> Floats:
    """Return the p-values (n, 2): the weight of scores that are as high, the new one's with it."""
    order = np.argsort(score)
    above = np.append(np.cumsum(weight[order][::-1])[::-1], 0.0)
    found = [
        (above[np.searchsorted(score[order], value, "left")] + new_weight) / (above[0] + new_weight)
        for value in (new, 1 - new)
    ]
    return np.stack(found, axis=1)


def conformal_coverage(
    y_true: ArrayLike,
    prediction: ConformalPrediction,
    *,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    minimum: int = 30,
) -> pd.DataFrame:
    """Return the coverage of prediction sets by group: value, low, high, n, mean size, reason.

    The row `all` comes first; `attrs["gap"]` is the largest less the smallest coverage of a group,
    None with fewer than two.

    Args:
        y_true: (n,) labels of the predicted comments.
        prediction: their sets.
        groups: (n,); None: no groups.
        sample_weight: (n,) inverse inclusion probabilities.
        minimum: labels below which a group has no value.

    Raises:
        MetricInputError: different lengths, labels other than 0 and 1.

    >>> made = conformal_prediction([0, 1] * 50, [0.1, 0.9] * 50, [0.2, 0.8], coverage=0.8)
    >>> conformal_coverage([0, 1], made, minimum=1)["value"].tolist()
    [0.0]
    """
    y = arguments.labels(y_true)
    w = arguments.weights(sample_weight, y.size)
    of = np.asarray(np.full(y.size, "") if groups is None else groups)
    arguments.same_length(y_true=y, prediction=prediction.size, sample_weight=w, groups=of)
    hit = prediction.contains[np.arange(y.size), y.astype(np.int64)].astype(np.float64)
    rows = {"all": np.ones(y.size, bool)}
    if groups is not None:
        rows |= {str(group): of == group for group in np.unique(of)}
    table = []
    for name, chosen in rows.items():
        part = chosen & (w > 0)
        found = observed_agreement(
            hit[part], np.ones(int(part.sum())), sample_weight=w[part], minimum=minimum
        )
        size = float(np.average(prediction.size[part], weights=w[part])) if part.any() else None
        table.append(
            {
                "group": name,
                "value": found.value,
                "low": found.low,
                "high": found.high,
                "n": found.n,
                "mean_size": size,
                "reason": found.reason,
            }
        )
    made = pd.DataFrame(table)
    values = made["value"].iloc[1:].dropna()
    made.attrs["gap"] = float(values.max() - values.min()) if len(values) > 1 else None
    return made


Ints = NDArray[np.integer]

#: Coverage of the sets.
COVERAGE = 0.9

#: Comments that get sets at once: a day may have millions.
_AT_ONCE = 500_000


def crossed_sets(
    sample: Sample, toxic: Floats, group: Ints | None = None, *, seed: int = 0
) -> NDArray[np.bool_]:
    """Return whether either label is in the set (m, 2) of each row.

    A random half of the rows calibrates the sets of the other half, and the other way round, so
    that no row calibrates its own set. Rows of a `group` (m,) are calibrated apart.

    >>> from modwatch.statistics import fully_labelled
    >>> sample = Sample([fully_labelled([0, 1] * 40, [0.1, 0.8] * 40)])
    >>> crossed_sets(sample, sample.label)[:2].tolist()
    [[True, False], [False, True]]
    """
    codes = np.zeros(toxic.size, np.int64) if group is None else group
    half = _halves(2 * codes + sample.top, sample.prob, np.random.default_rng(seed))
    contains = np.empty((toxic.size, 2), np.bool_)
    for new in (half, ~half):
        found = _predicted(
            toxic[~new], sample.prob[~new], sample.weight[~new], codes[~new],
            sample.prob[new], sample.weight[new], codes[new],
        )  # fmt: skip
        contains[new] = found.contains
    return contains


def set_review_scores(
    days: Sequence[LabelledDay], sample: Sample, toxic: Floats, groups: Sequence[Ints]
) -> Iterator[Floats]:
    """Yield the conformal review score (N,) of each day, by ascending probability.

    Every row of the sample calibrates the sets of its group; `groups` (N,) are those of a day's
    comments. See `modwatch.statistics.live.conformal.ConformalPrediction.review_score`.
    """
    of_rows = [group[day.rows()] for day, group in zip(days, groups, strict=True)]
    codes = np.concatenate([np.empty(0, np.int64), *of_rows])
    for day, group in zip(days, groups, strict=True):
        order = np.argsort(day.prob, kind="stable")
        score = np.empty(order.size)
        for start in range(0, order.size, _AT_ONCE):
            rows = order[start : start + _AT_ONCE]
            prob = day.prob[rows].astype(np.float64)
            found = _predicted(toxic, sample.prob, sample.weight, codes, prob, None, group[rows])
            score[start : start + rows.size] = found.review_score
        yield score


def _predicted(
    toxic: Floats,
    prob: Floats,
    weight: Floats,
    group: Ints,
    new_prob: Floats,
    new_weight: Floats | None,
    new_group: Ints,
) -> ConformalPrediction:
    """Return the sets of new comments; each calibration row has either label, with its share."""
    return conformal_prediction(
        np.repeat([0, 1], toxic.size),
        np.tile(prob, 2),
        new_prob,
        coverage=COVERAGE,
        sample_weight=np.concatenate([weight * (1 - toxic), weight * toxic]),
        new_weight=new_weight,
        groups=np.tile(group, 2),
        new_groups=new_group,
    )


def _halves(stratum: Ints, prob: Floats, generator: np.random.Generator) -> NDArray[np.bool_]:
    """Return a random half (m,) of the rows: one of every two neighbours by score in a stratum.

    >>> half = _halves(np.zeros(4, int), np.array([0.1, 0.8, 0.2, 0.9]), np.random.default_rng(0))
    >>> bool(half[0]) + bool(half[2]), bool(half[1]) + bool(half[3])
    (1, 1)
    """
    order = np.lexsort([prob, stratum])
    first = generator.random((order.size + 1) // 2) < 0.5
    half = np.empty(order.size, np.bool_)
    half[order] = np.stack([first, ~first], axis=1).ravel()[: order.size]
    return half
