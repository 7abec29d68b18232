"""Flip rates: how often an annotator's label is not the one that they give most often.

Two estimators (Gordon et al. 2021, section 4): by strata of items, from labels that annotators gave
again; and without any such label, from how well a matrix factorisation predicts each label
(`factorisation.estimate_flip_rates` takes the one that the data allow, and says why).
"""

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import special

from modwatch.common.errors import MetricInputError
from modwatch.statistics import arguments
from modwatch.statistics.arguments import Floats
from modwatch.statistics.disagreement.annotations import Annotations, Counts
from modwatch.statistics.intervals import clopper_pearson

Method = Literal["strata", "pooled", "svd", "fixed"]

#: Items with retests that a stratum requires, and strata that the paper recommends (section 6.3.1).
MINIMUM_ITEMS, RECOMMENDED_STRATA = 100, 10
#: Most strata by the share of minority labels, and by quantiles.
_FINEST, _QUANTILES = 50, 10
#: Of rates computed from others.
_ROUNDING = 1e-12
#: Level of a test on whether strata differ.
_LEVEL = 0.01


def flip_rate(self_disagreement: ArrayLike, *, classes: int = 2) -> Floats:
    """Return the flip rate p in [0, (K−1)/K] of a test-retest disagreement rate r, elementwise.

    p solves 1 − r = (1−p)² + p²/(K−1): both labels are the annotator's primary label, or both are
    the same other one. For two classes p = (1 − √(1−2r))/2 (Gordon et al. 2021, Eq. 3).

    Args:
        self_disagreement: r, the share of pairs of labels by one annotator of one item that differ.
        classes: number K of classes.

    Raises:
        MetricInputError: r is outside [0, (K−1)/K]: as often as by chance, or more; or K < 2.

    >>> flip_rate(0.291).round(3).tolist()
    0.177
    >>> flip_rate([0.0, 0.5]).tolist()
    [0.0, 0.5]
    """
    if classes < 2:
        raise MetricInputError(f"classes must be at least 2, got {classes}")
    r = arguments.numeric("self_disagreement", self_disagreement)
    ratio = classes / (classes - 1)
    if not ((r >= 0) & (r * ratio <= 1 + _ROUNDING)).all():
        raise MetricInputError(
            f"self_disagreement must be in [0, {1 / ratio:g}] for {classes} classes: labels that "
            "differ more often than by chance have no flip rate"
        )
    return np.asarray((1 - np.sqrt(np.clip(1 - ratio * r, 0, 1))) / ratio)


@dataclass(frozen=True, kw_only=True)
class FlipRates:
    """Flip rates of a set of annotations, with the 5th and 95th percentile of each."""

    method: Method
    #: Why this estimator.
    reason: str
    #: One row a stratum, or all: `low`, `high` (share of minority labels in a stratum); `items`,
    #: `retests`, `self_disagreement`, `flip_rate`, `flip_rate_low`, `flip_rate_high`.
    table: pd.DataFrame = field(repr=False)
    #: Row of the table of each item (I,).
    row: NDArray[np.intp] = field(repr=False)

    def rates(self, bound: Literal["low", "high"] | None = None) -> Floats:
        """Return the flip rate of each item (I,), or a bound of it."""
        column = "flip_rate" if bound is None else f"flip_rate_{bound}"
        return np.asarray(self.table[column].to_numpy(np.float64)[self.row])

    @property
    def mean(self) -> float:
        """Mean flip rate of the items."""
        return float(self.rates().mean())


def retest_flip_rates(
    annotations: Annotations,
    *,
    by: ArrayLike | None = None,
    strata: int | None = None,
) -> FlipRates:
    """Return flip rates by strata of items, from labels that annotators gave again.

    Items are stratified by the share of labels that are not the majority's (Gordon et al. 2021,
    section 4.2), or by quantiles of `by`. A retest counts in the stratum that the labels of the
    *other* annotators give: with the annotator's own, flipped labels would make the stratum in
    which they are counted, so that flip rates come out too small where people agree, and too large
    where they do not. For the same reason few annotators an item make strata that tell more about
    slips than about items; `by`, such as a model's probability, does not depend on the labels.

    Args:
        annotations: with retests.
        by: (I,) any property of the items that their labels do not influence.
        strata: number of strata. None: the most (50, or 10 of `by`) with `MINIMUM_ITEMS` items
            with retests each; one for all if their rates do not differ (χ² test, 1 %).

    Raises:
        MetricInputError: too few retests, or a stratum whose labels differ as often as by chance.
    """
    retests = annotations.retests
    if by is None:
        own = _without_own(annotations)
        usable = own.sum(axis=1) > 0
        place = minority_share(np.where(usable[:, None], own, 1.0))
        of_items, top = minority_share(annotations.counts()), 1 - 1 / annotations.n_classes
        name, most = "the share of minority labels", _FINEST
    else:
        of_items = _ranks(by, len(annotations.items))
        place, usable = of_items[retests.item], np.ones(retests.item.size, bool)
        top, name, most = 1.0, "`by`", _QUANTILES
    differ, item, place = retests.differ[usable], retests.item[usable], place[usable]
    if item.size < MINIMUM_ITEMS:
        raise MetricInputError(
            f"there are {item.size} retests; at least {MINIMUM_ITEMS} are required. Collect more, "
            "or use svd_flip_rates"
        )
    chosen = strata or finest_strata(place, item, top, most) or 1
    of_retest = stratum_of(place, chosen, top)
    if strata is None and not groups_differ(of_retest, differ):
        chosen, of_retest = 1, np.zeros_like(of_retest)
    of_item = stratum_of(of_items, chosen, top)
    rates = _filled(_table(of_retest, differ, chosen, annotations.n_classes))
    return FlipRates(
        method="pooled" if chosen == 1 else "strata",
        reason=_reason(chosen, name, recommended=by is None),
        table=with_strata(rates, of_item, top),
        row=of_item,
    )


def _reason(strata: int, name: str, *, recommended: bool) -> str:
    if strata == 1:
        return f"strata of items by {name} do not differ in their flip rates, or are too small"
    few = recommended and strata < RECOMMENDED_STRATA
    hint = f"; the paper recommends at least {RECOMMENDED_STRATA}" if few else ""
    return f"{strata} strata of items by {name} differ in their flip rates{hint}"


def fixed_flip_rate(annotations: Annotations, rate: float) -> FlipRates:
    """Return one flip rate for all items, which is known or assumed; 0: every label is an opinion.

    >>> annotations = Annotations.from_columns(item=[0, 0], annotator=[0, 1], label=[0, 1])
    >>> fixed_flip_rate(annotations, 0.1).rates().tolist()
    [0.1]
    """
    row = {"items": len(annotations.items), "retests": 0, "self_disagreement": np.nan}
    table = pd.DataFrame([row | dict.fromkeys(_RATES[1:], rate)])
    of_item = np.zeros(len(annotations.items), np.intp)
    return FlipRates(method="fixed", reason="given", table=table, row=of_item)


def minority_share(counts: Counts) -> Floats:
    """Return the share (I,) of labels that are not the majority's; counts (I, K), none empty.

    >>> minority_share(np.array([[6.0, 4.0], [3.0, 0.0]])).tolist()
    [0.4, 0.0]
    """
    return np.asarray(1 - counts.max(axis=1) / counts.sum(axis=1))


_RATES = ["self_disagreement", "flip_rate", "flip_rate_low", "flip_rate_high"]


def _ranks(by: ArrayLike, items: int) -> Floats:
    """Return the rank (I,) in (0, 1] of each item by a property."""
    values = arguments.column("by", by)
    if values.size != items:
        raise MetricInputError(f"by has {values.size} values for {items} items; pass one each")
    return np.asarray(np.searchsorted(np.sort(values), values, side="right") / items)


def _without_own(annotations: Annotations) -> Counts:
    """Return the counts (R, K) of each retest's item without the label of its annotator."""
    own = annotations.counts()[annotations.retests.item]
    own[np.arange(len(own)), annotations.retests.original] -= 1
    return own


def stratum_of(spread: Floats, strata: int, widest: float) -> NDArray[np.intp]:
    """Return the stratum (n,) of shares in [0, widest]."""
    return np.minimum((spread / widest * strata + 1e-9).astype(np.intp), strata - 1)


def with_strata(rates: pd.DataFrame, of_item: NDArray[np.intp], top: float) -> pd.DataFrame:
    """Return the rates of strata of [0, top] with their bounds and numbers of items in front."""
    edges = np.linspace(0, top, len(rates) + 1)
    items = np.bincount(of_item, minlength=len(rates))
    strata = pd.DataFrame({"low": edges[:-1], "high": edges[1:], "items": items})
    return pd.concat([strata, rates], axis=1)


def finest_strata(place: Floats, item: NDArray[Any], top: float, most: int = _FINEST) -> int | None:
    """Return the most strata of [0, top] with `MINIMUM_ITEMS` items in each that is used."""
    for strata in range(most, 0, -1):
        pairs = np.unique(stratum_of(place, strata, top) * np.int64(1 << 32) + item)
        sizes = np.bincount(pairs >> 32, minlength=strata)
        if sizes.any() and sizes[sizes > 0].min() >= MINIMUM_ITEMS:
            return strata
    return None


def groups_differ(group: NDArray[Any], differ: NDArray[np.bool_]) -> bool:
    """Return whether the shares of differing pairs depend on the group (χ² test)."""
    size = np.bincount(group)
    hits = np.bincount(group, weights=differ)[size > 0]
    size = size[size > 0]
    share = hits.sum() / size.sum() if size.size else 0.0
    if size.size < 2 or share in (0.0, 1.0):
        return False
    statistic = np.sum((hits - size * share) ** 2 / (size * share * (1 - share)))
    return bool(special.chdtrc(size.size - 1, statistic) < _LEVEL)


def _table(
    group: NDArray[Any], differ: NDArray[np.bool_], groups: int, classes: int
) -> pd.DataFrame:
    """Return retests, disagreement and flip rate of each group; NaN where there is no retest."""
    size = np.bincount(group, minlength=groups).astype(np.float64)
    hits = np.bincount(group, differ.astype(np.float64), groups)
    most = 1 - 1 / classes
    known = size > 0
    r = np.divide(hits, size, out=np.full(groups, np.nan), where=known)
    if (r[known] >= most).any():
        (worst, *_) = np.flatnonzero(known & (r >= most)).tolist()
        raise MetricInputError(
            f"stratum {worst}: {int(hits[worst])} of {int(size[worst])} labels given again differ, "
            "as often as by chance; a flip rate cannot be computed"
        )
    low, high = clopper_pearson(hits, size, (0.05, 0.05))
    bounds = {"": r, "_low": low, "_high": np.minimum(high, most)}
    rates = {
        f"flip_rate{name}": np.where(
            known, flip_rate(np.nan_to_num(rates), classes=classes), np.nan
        )
        for name, rates in bounds.items()
    }
    return pd.DataFrame({"retests": size.astype(np.int64), "self_disagreement": r, **rates})


def _filled(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table with the rates of the nearest stratum where one has items but no retests."""
    known = np.flatnonzero(table["retests"] > 0)
    nearest = known[np.abs(np.arange(len(table))[:, None] - known).argmin(axis=1)]
    filled = table.copy()
    filled[_RATES] = table[_RATES].to_numpy()[nearest]
    filled["borrowed"] = table["retests"].to_numpy() == 0
    return filled
