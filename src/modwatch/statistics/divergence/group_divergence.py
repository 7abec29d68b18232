"""How a model agrees with groups of annotators: figures with intervals, tests and shrinkage."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import special

from modwatch.common.errors import MetricInputError
from modwatch.statistics.arguments import Floats
from modwatch.statistics.decisions import decided_class
from modwatch.statistics.disagreement.annotations import Annotations, distribution
from modwatch.statistics.divergence.annotator_groups import ALIKE, Groups, unlike
from modwatch.statistics.divergence.conformity import (
    conformity_delta,
    divergence_interval,
    uncertainty_divergence,
)
from modwatch.statistics.estimate import holm
from modwatch.statistics.intervals import LEVEL, NORMAL_QUANTILE

_DRAWS, _DRAWS_A_ROW = 1_000, 40

#: Columns of the sums of an annotator; after them true positives, false positives and false
#: negatives of the C scored classes: the last of two, or all of more.
_N, _HITS, _DELTAS, _DELTA, _BELOW, _AT, _ABOVE = range(7)
_SIGNS = [_BELOW, _AT, _ABOVE]
_FIRST_CLASS = 7


@dataclass(frozen=True, kw_only=True)
class _Ratio:
    """A metric that is a ratio of two sums over annotations, or the mean of those of C classes."""

    #: (…, S) sums to (…, C) numerators and denominators.
    above: Callable[[Floats], Floats]
    below: Callable[[Floats], Floats]
    low: float
    high: float = 1.0

    def value(self, sums: Floats) -> Floats:
        """Return the metric of sums (…, S): the mean over the classes in which it is defined."""
        above, below = self.above(sums), self.below(sums)
        ratio = np.divide(above, below, out=np.zeros_like(below), where=below > 0)
        classes = (below > 0).sum(axis=-1)
        out = np.full(np.shape(classes), np.nan)
        return np.asarray(np.divide(ratio.sum(axis=-1), classes, out=out, where=classes > 0))

    def error(self, sums: Floats) -> float:
        """Return the standard error of the metric of annotators (A, S), linearised."""
        if len(sums) < 2:
            return float("nan")
        above, below = self.above(sums), self.below(sums)
        total = below.sum(axis=0)
        known = total > 0
        ratio = above.sum(axis=0)[known] / total[known]
        of_classes = (above[:, known] - ratio * below[:, known]) / total[known]
        influence = of_classes.sum(axis=1) / max(int(known.sum()), 1)
        error = float(np.sqrt(len(sums) / (len(sums) - 1) * (influence**2).sum()))
        if error > ALIKE:
            return error
        value = float(self.value(sums.sum(axis=0)))
        return unlike(len(sums)) * max(value - self.low, self.high - value) / NORMAL_QUANTILE


def _of_classes(sums: Floats) -> list[Floats]:
    """Return true positives, false positives and false negatives (…, C)."""
    return np.split(sums[..., _FIRST_CLASS:], 3, axis=-1)


def _labels_and_decisions(sums: Floats) -> Floats:
    hits, false, missed = _of_classes(sums)
    return np.asarray(2 * hits + false + missed)


#: Metrics by name.
METRICS = {
    "agreement": _Ratio(above=lambda s: s[..., [_HITS]], below=lambda s: s[..., [_N]], low=0.0),
    "f1": _Ratio(above=lambda s: 2 * _of_classes(s)[0], below=_labels_and_decisions, low=0.0),
    "mean_delta": _Ratio(
        above=lambda s: s[..., [_DELTA]], below=lambda s: s[..., [_DELTAS]], low=-1.0
    ),
}
DIVERGENCE = "uncertainty_divergence"


def group_report(
    annotations: Annotations,
    y_prob: ArrayLike,
    groups: Groups,
    *,
    threshold: float = 0.5,
    draws: int | None = None,
    seed: int = 0,
) -> pd.DataFrame:
    """Return a table of how a model agrees with each group; a row each group and metric.

    Metrics: `agreement`, the share of the group's labels that the model's decision equals; `f1`, of
    the decisions against the group's labels (Urbinati et al. 2025, table 1), with more than two
    classes the mean over those among the group's labels or decisions (macro F1); `mean_delta`, the
    mean conformity delta; `uncertainty_divergence`, KL(P‖Q) of the deltas of all annotations,
    P, those of annotators without a shown group among them, from the group's, Q (Eq. 5, 0.5 added
    to each number).

    Columns: `group`, `metric`, `value`; `low` and `high`, a 95 % interval for the people of whom
    the group's annotators are a sample, on the same items (Student's t of the linearised ratio,
    annotators as clusters, and some width where all of them are alike; of a divergence, the values
    under which it is no exception); `difference` from the value of all other grouped annotators,
    with the interval `difference_low` to `difference_high` (Welch's t); `p_value` of a permutation
    test that groups do not matter, and `p_holm`, corrected for all rows; `shrunk`, `shrunk_low` and
    `shrunk_high`, the estimate under partial pooling of the groups (normal-normal, DerSimonian &
    Laird 1986), by which small groups should be read; `annotators`, `annotations`; `reason` where
    there is no value. Suppressed groups have a row with the reason alone.

    `uncertainty_divergence` is 0 or more, and chance alone makes it more; the test says whether it
    is more than that. It is not shrunk. All tests permute groups among the annotators who have one.

    Args:
        annotations: of K classes; each annotator's first labels count.
        y_prob: (I,) probabilities of the last of two classes, or (I, K) of all.
        groups: of the annotators.
        threshold: of two classes, decisions are positive above; of more, the most probable class
            is the decision (the first of several).
        draws: permutations; None: 1,000, or 40 for each row, without which none of many rows could
            have a p-value below 0.05 after the correction.
        seed: of the permutations. The order of rows, items and annotators does not matter.

    Raises:
        MetricInputError: invalid probabilities, or groups of another number of annotators.

    >>> annotations = Annotations.from_columns(
    ...     item=np.repeat(np.arange(50), 12), annotator=np.tile(np.arange(12), 50),
    ...     label=np.tile([0] * 6 + [1] * 6, 50),
    ... )
    >>> group = {a: "mild" if a < 6 else "strict" for a in range(12)}
    >>> groups = Groups.from_annotations(annotations, group)
    >>> table = group_report(annotations, np.full(50, 0.9), groups, draws=99)
    >>> table.loc[table["metric"] == "agreement", ["group", "value"]].to_numpy().tolist()
    [['mild', 0.0], ['strict', 1.0]]
    """
    if groups.code.shape != annotations.annotators.shape:
        raise MetricInputError(
            f"groups are of {groups.code.size} annotators, and annotations of "
            f"{annotations.annotators.size}; make groups of these annotations"
        )
    every = _sums(annotations, y_prob, threshold)
    sums, code = _in_order(every, groups.code)
    rest = every[groups.code < 0][:, _SIGNS]
    signs = np.concatenate([sums[:, _SIGNS], rest[np.lexsort(rest.T)]])
    size = len(groups.names)
    rng = np.random.default_rng(seed)
    rows = []
    for metric in METRICS:
        rows += [_row(metric, name, sums, code == g) for g, name in enumerate(groups.names)]
    for g, name in enumerate(groups.names):
        rows.append(_divergence_row(name, sums[code == g], signs, np.flatnonzero(code == g), rng))
    table = pd.DataFrame(rows, columns=["error", *_COLUMNS])
    of_all = signs.sum(axis=0)
    observed = _statistics(sums, code, size, of_all)
    draws = max(_DRAWS, _DRAWS_A_ROW * len(table)) if draws is None else draws
    p_value = _permuted(sums, code, size, of_all, observed, draws, rng)
    table["p_value"] = np.where(table["value"].isna(), np.nan, p_value)
    table["p_holm"] = holm(table["p_value"])
    for metric in METRICS:
        of_metric = table["metric"] == metric
        columns = ["shrunk", "shrunk_low", "shrunk_high"]
        table.loc[of_metric, columns] = _shrunk(table[of_metric])
    blank = [{"group": name, "reason": reason} for name, reason in groups.suppressed.items()]
    made = pd.concat([table.drop(columns="error"), pd.DataFrame(blank)], ignore_index=True)
    return made[_COLUMNS]


_COLUMNS = [
    *("group", "metric", "value", "low", "high"),
    *("difference", "difference_low", "difference_high", "p_value", "p_holm"),
    *("shrunk", "shrunk_low", "shrunk_high", "annotators", "annotations", "reason"),
]


def _sums(annotations: Annotations, y_prob: ArrayLike, threshold: float) -> Floats:
    """Return the sums (A, S) of each annotator."""
    hits, labels, decisions = _counts(annotations, y_prob, threshold)
    scored = slice(1, 2) if annotations.n_classes == 2 else slice(None)
    of_classes = [values[:, scored] for values in (hits, decisions - hits, labels - hits)]
    alone = [labels.sum(axis=1), hits.sum(axis=1), *_delta_sums(annotations, y_prob)]
    return np.concatenate([np.stack(alone, axis=1), *of_classes], axis=1)


def _counts(annotations: Annotations, y_prob: ArrayLike, threshold: float) -> list[Floats]:
    """Return the labels that equal the decision, the labels, and the decisions (A, K) by class."""
    prob = distribution(y_prob, annotations, np.float32)
    classes, size = annotations.n_classes, len(annotations.annotators)
    decision = decided_class(prob, threshold)
    first = annotations.first
    own = annotations.annotator[first].astype(np.int64) * classes
    label, decided = annotations.label[first], decision[annotations.item[first]]
    right = label == decided
    return [
        np.bincount(cell, minlength=size * classes).reshape(size, classes).astype(np.float64)
        for cell in (own[right] + label[right], own + label, own + decided)
    ]


def _delta_sums(annotations: Annotations, y_prob: ArrayLike) -> list[Floats]:
    """Return the number (A,) of deltas, their sum, and the numbers below, at and above 0."""
    deltas, size = conformity_delta(annotations, y_prob), len(annotations.annotators)
    every, below, above = (
        np.bincount(deltas.annotator[rows], minlength=size).astype(np.float64)
        for rows in (slice(None), deltas.delta < 0, deltas.delta > 0)
    )
    total = np.bincount(deltas.annotator, deltas.delta.astype(np.float64), size)
    return [every, np.asarray(total, np.float64), below, every - below - above, above]


def _in_order(sums: Floats, code: NDArray[np.intp]) -> tuple[Floats, NDArray[np.intp]]:
    """Return sums (A, S) and codes (A,) of annotators with a group, in an order of their own.

    Permutations are drawn by row: without it the order of the annotations would change p-values.
    """
    members = code >= 0
    sums, code = sums[members], code[members]
    # Sums of the same deltas in another order differ by rounding.
    order = np.lexsort([*sums.T.round(9), code])
    return sums[order], code[order]


def _row(metric: str, group: str, sums: Floats, mine: NDArray[np.bool_]) -> dict[str, object]:
    """Return the row of a ratio for a group of the annotators (A, S)."""
    ratio, own, others = METRICS[metric], sums[mine], sums[~mine]
    value = float(ratio.value(own.sum(axis=0)))
    row = {"group": group, "metric": metric, **_numbers(own)}
    if np.isnan(value):
        return {**row, "reason": _undefined(metric)}
    error, freedom = ratio.error(own), float(len(own) - 1)
    low, high = _t_interval(value, error, freedom, ratio.low, ratio.high)
    row |= {"value": value, "low": low, "high": high, "error": error, "reason": ""}
    difference = value - float(ratio.value(others.sum(axis=0)))
    other = ratio.error(others)
    spread, reach = float(np.hypot(error, other)), ratio.high - ratio.low
    if spread > 0:  # Welch and Satterthwaite
        parts = error**4 / freedom + other**4 / (len(others) - 1)
        freedom = spread**4 / parts
    low, high = _t_interval(difference, spread, freedom, -reach, reach)
    return {**row, "difference": difference, "difference_low": low, "difference_high": high}


def _undefined(metric: str) -> str:
    return f"{metric} is undefined: no label of it counts"


def _numbers(own: Floats) -> dict[str, object]:
    return {"annotators": len(own), "annotations": int(own[:, _N].sum())}


def _t_interval(
    value: float, error: float, freedom: float, least: float, most: float
) -> tuple[float, float]:
    """Return the ends of Student's t interval within the bounds; NaN without an error."""
    margin = float(special.stdtrit(freedom, (1 + LEVEL) / 2)) * error
    low, high = np.clip([value - margin, value + margin], least, most)
    return float(low), float(high)


def _divergence_row(
    group: str, own: Floats, signs: Floats, members: NDArray[np.intp], rng: np.random.Generator
) -> dict[str, object]:
    """Return the row of a group with these sums; `members` are their rows of all `signs` (A, 3)."""
    mine = np.isin(np.arange(len(signs)), members)
    row = {"group": group, "metric": DIVERGENCE, **_numbers(own)}
    if not signs[mine].any():
        return {**row, "reason": _undefined(DIVERGENCE)}
    value = float(uncertainty_divergence(signs.sum(axis=0), signs[mine].sum(axis=0)))
    low, high = divergence_interval(signs, mine, rng)
    return {**row, "value": value, "low": low, "high": high, "reason": ""}


def _statistics(sums: Floats, code: NDArray[np.intp], size: int, signs: Floats) -> Floats:
    """Return the statistic of the test of each row in order; `signs` (3,) of all annotations."""
    own = np.stack([np.bincount(code, column, size) for column in sums.T], axis=1, dtype=float)
    total = sums.sum(axis=0)
    differences = [metric.value(own) - metric.value(total - own) for metric in METRICS.values()]
    divergence = uncertainty_divergence(signs, own[:, _SIGNS])
    return np.concatenate([*(np.abs(values) for values in differences), divergence])


def _permuted(
    sums: Floats,
    code: NDArray[np.intp],
    size: int,
    signs: Floats,
    observed: Floats,
    draws: int,
    rng: np.random.Generator,
) -> Floats:
    """Return the share of permutations of the groups with a statistic as large, plus one."""
    larger = np.ones_like(observed)
    for _ in range(draws):
        found = _statistics(sums, rng.permutation(code), size, signs)
        larger += found >= observed - 1e-12
    return np.where(np.isnan(observed), np.nan, larger / (draws + 1))


def _shrunk(table: pd.DataFrame) -> Floats:
    """Return the shrunk values (G, 3) with their intervals."""
    value, error = table["value"].to_numpy(float), table["error"].to_numpy(float)
    found = np.stack([table["value"], table["low"], table["high"]], axis=1).astype(np.float64)
    known = ~np.isnan(value) & (error > 0)
    if known.sum() < 3:  # the variance between groups cannot be estimated from fewer
        return found
    y, v = value[known], error[known] ** 2
    w = 1 / v
    fixed = (w * y).sum() / w.sum()
    excess = (w * (y - fixed) ** 2).sum() - (y.size - 1)
    between = max(excess / (w.sum() - (w**2).sum() / w.sum()), 0.0)
    weight = 1 / (v + between)
    mean = (weight * y).sum() / weight.sum()
    own = between / (between + v)
    shrunk = own * y + (1 - own) * mean
    spread = np.sqrt(own * v + (1 - own) ** 2 / weight.sum())
    margin = NORMAL_QUANTILE * spread
    found[known] = np.stack([shrunk, shrunk - margin, shrunk + margin], axis=1)
    return found
