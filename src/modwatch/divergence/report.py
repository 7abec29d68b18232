"""How a model agrees with groups of annotators: figures with intervals, tests and shrinkage."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from modwatch.disagreement.annotations import Annotations
from modwatch.divergence.conformity import conformity_delta, distribution, divergences
from modwatch.divergence.groups import Groups
from modwatch.errors import MetricInputError
from modwatch.metrics.intervals import LEVEL, NORMAL_QUANTILE
from modwatch.metrics.significance import holm

Floats = NDArray[np.float64]

_DRAWS, _DRAWS_A_ROW = 1_000, 40

#: Columns of the sums of an annotator.
_N, _HITS, _TP, _FP, _FN, _DELTAS, _DELTA, _BELOW, _AT, _ABOVE = range(10)
_SIGNS = [_BELOW, _AT, _ABOVE]


@dataclass(frozen=True, kw_only=True)
class _Ratio:
    """A metric that is a ratio of two sums over annotations."""

    above: Callable[[Floats], Floats]
    below: Callable[[Floats], Floats]
    low: float
    high: float = 1.0

    def value(self, sums: Floats) -> Floats:
        """Return the metric of sums (…, 10), NaN where it is undefined."""
        above, below = self.above(sums), self.below(sums)
        out = np.full(np.shape(above), np.nan)
        return np.asarray(np.divide(above, below, out=out, where=below > 0))

    def error(self, sums: Floats) -> float:
        """Return the standard error of the metric of annotators (A, 10), linearised."""
        value = self.value(sums.sum(axis=0))
        influence = (self.above(sums) - value * self.below(sums)) / self.below(sums).sum()
        return float(np.sqrt(len(sums) / (len(sums) - 1) * (influence**2).sum()))


#: Metrics by name.
METRICS = {
    "agreement": _Ratio(above=lambda s: s[..., _HITS], below=lambda s: s[..., _N], low=0.0),
    "f1": _Ratio(
        above=lambda s: 2 * s[..., _TP],
        below=lambda s: 2 * s[..., _TP] + s[..., _FP] + s[..., _FN],
        low=0.0,
    ),
    "mean_delta": _Ratio(above=lambda s: s[..., _DELTA], below=lambda s: s[..., _DELTAS], low=-1.0),
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
    the decisions against the group's labels (Urbinati et al. 2025, table 1); `mean_delta`, the mean
    conformity delta; `uncertainty_divergence`, KL of the deltas of all annotators from the group's
    (Eq. 5, 0.5 added to each number).

    Columns: `group`, `metric`, `value`; `low` and `high`, a 95 % interval for the people of whom
    the group's annotators are a sample, on the same items (Student's t of the linearised ratio,
    annotators as clusters); `difference` from the value of all other grouped annotators; `p_value`
    of a permutation test that groups do not matter, and `p_holm`, corrected for all rows; `shrunk`,
    `shrunk_low` and `shrunk_high`, the estimate under partial pooling of the groups (normal-normal,
    DerSimonian & Laird 1986), by which small groups should be read; `annotators`, `annotations`;
    `reason` where there is no value. Suppressed groups have a row with the reason alone.

    `uncertainty_divergence` has neither interval nor shrinkage: it is 0 or more, and chance alone
    makes it more; the test says whether it is more than that.

    Args:
        annotations: of two classes; each annotator's first labels count.
        y_prob: (I,) probabilities of the last class.
        groups: of the annotators.
        threshold: decisions are positive above.
        draws: permutations; None: 1,000, or 40 for each row, without which none of many rows could
            have a p-value below 0.05 after the correction.
        seed: of the permutations.

    Raises:
        MetricInputError: more than two classes, or invalid probabilities.

    >>> annotations = Annotations.of(
    ...     item=np.repeat(np.arange(50), 12), annotator=np.tile(np.arange(12), 50),
    ...     label=np.tile([0] * 6 + [1] * 6, 50),
    ... )
    >>> groups = Groups.of(annotations, {a: "mild" if a < 6 else "strict" for a in range(12)})
    >>> table = group_report(annotations, np.full(50, 0.9), groups, draws=99)
    >>> table.loc[table["metric"] == "agreement", ["group", "value"]].to_numpy().tolist()
    [['mild', 0.0], ['strict', 1.0]]
    """
    if annotations.n_classes != 2:
        raise MetricInputError(f"there must be two classes, got {annotations.n_classes}")
    sums = _sums(annotations, y_prob, threshold)
    members = groups.code >= 0
    sums, code = sums[members], groups.code[members]
    size = len(groups.names)
    rows = []
    for metric in METRICS:
        rows += [_row(metric, name, sums[code == g]) for g, name in enumerate(groups.names)]
    for g, name in enumerate(groups.names):
        rows.append(_divergence_row(name, sums[code == g], sums))
    table = pd.DataFrame(rows)
    observed = _statistics(sums, code, size)
    table["difference"] = observed["difference"]
    draws = max(_DRAWS, _DRAWS_A_ROW * len(table)) if draws is None else draws
    table["p_value"] = _permuted(sums, code, size, observed["statistic"], draws, seed)
    table["p_holm"] = holm(table["p_value"])
    for metric in METRICS:
        of_metric = table["metric"] == metric
        columns = ["shrunk", "shrunk_low", "shrunk_high"]
        table.loc[of_metric, columns] = _shrunk(table[of_metric])
    blank = [{"group": name, "reason": reason} for name, reason in groups.suppressed.items()]
    made = pd.concat([table.drop(columns="error"), pd.DataFrame(blank)], ignore_index=True)
    return made[_COLUMNS]


_COLUMNS = [
    *("group", "metric", "value", "low", "high", "difference", "p_value", "p_holm"),
    *("shrunk", "shrunk_low", "shrunk_high", "annotators", "annotations", "reason"),
]


def _sums(annotations: Annotations, y_prob: ArrayLike, threshold: float) -> Floats:
    """Return the sums (A, 10) of each annotator."""
    flagged = distribution(y_prob, annotations)[:, 1] > threshold
    first = annotations.first
    person, positive = annotations.annotator[first], annotations.label[first] == 1
    decision = flagged[annotations.item[first]]
    deltas = conformity_delta(annotations, y_prob)
    size = len(annotations.annotators)

    def count(rows: NDArray[np.bool_]) -> Floats:
        return np.bincount(person[rows], minlength=size).astype(np.float64)

    def sign(rows: NDArray[np.bool_]) -> Floats:
        return np.bincount(deltas.annotator[rows], minlength=size).astype(np.float64)

    below, above = sign(deltas.delta < 0), sign(deltas.delta > 0)
    every = np.bincount(deltas.annotator, minlength=size).astype(np.float64)
    return np.stack(
        [
            np.bincount(person, minlength=size).astype(np.float64),
            count(positive == decision),
            count(positive & decision),
            count(~positive & decision),
            count(positive & ~decision),
            every,
            np.bincount(deltas.annotator, deltas.delta.astype(np.float64), size),
            below,
            every - below - above,
            above,
        ],
        axis=1,
    )


def _row(metric: str, group: str, sums: Floats) -> dict[str, object]:
    """Return the row of a ratio for the annotators (A, 10) of a group."""
    ratio = METRICS[metric]
    value = float(ratio.value(sums.sum(axis=0)))
    row: dict[str, object] = {
        "group": group,
        "metric": metric,
        "annotators": len(sums),
        "annotations": int(sums[:, _N].sum()),
    }
    if np.isnan(value):
        return {**row, "reason": f"{metric} is undefined: no label of it counts"}
    error = ratio.error(sums)
    margin = float(stats.t.ppf((1 + LEVEL) / 2, len(sums) - 1)) * error
    low, high = max(value - margin, ratio.low), min(value + margin, ratio.high)
    return {**row, "value": value, "low": low, "high": high, "error": error, "reason": ""}


def _divergence_row(group: str, own: Floats, everybody: Floats) -> dict[str, object]:
    return {
        "group": group,
        "metric": DIVERGENCE,
        "value": float(divergences(everybody[:, _SIGNS].sum(axis=0), own[:, _SIGNS].sum(axis=0))),
        "annotators": len(own),
        "annotations": int(own[:, _N].sum()),
        "reason": "",
    }


def _statistics(sums: Floats, code: NDArray[np.intp], size: int) -> dict[str, Floats]:
    """Return the difference from all others, and the test's statistic, of each row in order."""
    own = np.stack([np.bincount(code, column, size) for column in sums.T], axis=1, dtype=float)
    total = sums.sum(axis=0)
    differences = [each.value(own) - each.value(total - own) for each in METRICS.values()]
    divergence = divergences(total[_SIGNS], own[:, _SIGNS])
    difference = np.concatenate([*differences, np.full(size, np.nan)])
    statistic = np.concatenate([*(np.abs(each) for each in differences), divergence])
    return {"difference": difference, "statistic": statistic}


def _permuted(
    sums: Floats, code: NDArray[np.intp], size: int, observed: Floats, draws: int, seed: int
) -> Floats:
    """Return the share of permutations of the groups with a statistic as large, plus one."""
    rng = np.random.default_rng(seed)
    larger = np.ones_like(observed)
    for _ in range(draws):
        found = _statistics(sums, rng.permutation(code), size)["statistic"]
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
