"""Whether second labels agree with first ones more often than people's error rates explain.

Estimates suppose that a second person does not know the first label; where second labels are copied
or discussed, intervals are too narrow. A comparison of agreement on like comments (Mantel-Haenszel)
warns falsely: who makes few errors agrees with everybody more often. Disagreements are therefore
compared with those expected of independent labels, in a latent class model (Dawid & Skene 1979): a
comment is not toxic, unclear or toxic, with shares by score, and each person calls comments of each
class toxic at a rate of their own. Unclear are comments that are hard for all.

The test can't see that everybody copies everybody alike, or that all share a misreading: in the
model both are few errors. Nor does it see copying by a person who never labels first, or that all
confirmations come quickly. Gold items tell no more: people disagree on first labels that were wrong
far more often than their answers to clear items show. The stated share of shared errors allows for
those. Decision times are not compared: clear comments are decided quickly, and agreed on.
"""

import numpy as np
import pandas as pd
from scipy import stats

from modwatch.statistics.arguments import Floats, Ints
from modwatch.statistics.estimate import holm

#: The kinds of sets that are tested.
KINDS = ("pairs of people", "people", "quick confirmations")
#: Corrected p-values below this are significant.
SIGNIFICANT_DEPENDENCE = 0.01
#: Confirmations of a set that is tested, at least.
MINIMUM_CONFIRMATIONS = 20
#: Share of the expected disagreements that may be missing: the model is an approximation.
_TOLERANCE = 0.05
#: Share of the confirmations that are quick.
_QUICK = 0.1
_BINS, _ROUNDS = 10, 200
#: At the start: shares of the classes, and the rates at which their comments are called toxic.
_SHARES, _RATES = (0.8, 0.1, 0.1), (0.03, 0.5, 0.85)
#: Labels at the common rate that count for each person, by class; the least rate. With few of the
#: unclear class, two people who agree would explain that by comments that are unclear to others.
_SHRUNK, _LEAST = np.array([10.0, 100.0, 10.0]), 1e-4


def dependence_table(labels: pd.DataFrame) -> pd.DataFrame:
    """Return how many sets of confirmations agree too often, one row for each kind of set.

    Columns: `check`, the kind: `pairs of people`, `people` (all that are by a second person),
    `quick confirmations` (the tenth that came soonest after the first label); `tested`, the number
    of sets of `MINIMUM_CONFIRMATIONS` or more; `n`, the confirmations in them; `found`, how many
    sets differ from the first label significantly less often than expected; `p_value`, the least,
    corrected for all sets of all kinds (Holm), NaN without any; `power`, the chance that a set, the
    median of its kind, is found if half of its labels are copied, NaN without any. A p-value is
    exact or too large: the number of disagreements varies less than a binomial one (Hoeffding
    1956). Power is that with half of these labels replaced by the first ones, since the model
    takes a part of such copies for people who err alike.

    Args:
        labels: `prob` in [0, 1] of m labelled comments; `label` 0 or 1, `moderator` and
            `decided_at` of the first label (`…_first`), where known, and the second (`…_second`),
            where there is one.
    """
    pairs = _Pairs(labels)
    sets = pairs.sets(pairs.second)
    sets["p_value"] = holm(stats.binom.cdf(sets["differs"], sets["n"], sets["rate"]))
    sets["found"] = sets["p_value"] < SIGNIFICANT_DEPENDENCE
    level = SIGNIFICANT_DEPENDENCE / max(len(sets), 1)
    by_kind = sets.groupby("check")
    table: pd.DataFrame = by_kind[["tested", "n", "found"]].sum().reindex(KINDS, fill_value=0)
    table["p_value"], table["power"] = by_kind["p_value"].min(), np.nan
    for kind, of_kind in by_kind:
        median = of_kind.sort_values(["n", "differs", "rate"]).index[(len(of_kind) - 1) // 2]
        copied = pairs.sets(pairs.with_copies(*median)).loc[median]
        most = stats.binom.ppf(level, copied["n"], copied["rate"]) - 1
        seen = copied["differs"] / copied["n"]
        table.loc[str(kind), "power"] = stats.binom.cdf(most, copied["n"], seen)
    return table.reset_index(names="check")


class _Pairs:
    """First and second labels, and the sets in which they are compared."""

    def __init__(self, labels: pd.DataFrame) -> None:
        """`labels` are as in `dependence_table`."""
        ends = ("first", "second")
        people, names = pd.factorize(pd.concat([labels[f"moderator_{end}"] for end in ends]))
        one, other = people.reshape(2, -1)
        first, second = (labels[f"label_{end}"].to_numpy(np.float64, na_value=-1) for end in ends)
        delay = labels["decided_at_second"] - labels["decided_at_first"]
        #: (m,) labels; without meaning where there is no second one.
        self.first, self.second = first, second
        self._prob, self._one, self._other = labels["prob"], one, other
        codes = (
            np.minimum(one, other) * len(names) + np.maximum(one, other),
            other,
            np.where(delay <= delay.quantile(_QUICK), 0, -1),
        )
        #: (m,) the set of each confirmation, by kind; −1 for none.
        self._codes = {
            kind: np.where(other >= 0, code, -1) for kind, code in zip(KINDS, codes, strict=True)
        }

    def sets(self, second: Floats) -> pd.DataFrame:
        """Return what is seen and expected of each set with these second labels (m,)."""
        called = _called_toxic(self._prob, self.first, second, self._one, self._other)
        differs, expected = self.first != second, np.abs(self.first - called)
        values = pd.DataFrame({"differs": differs, "expected": expected})
        found = []
        for kind, code in self._codes.items():
            sets = values[code >= 0].groupby(code[code >= 0])
            sums = sets.agg({"differs": ["size", "sum"], "expected": "mean"})
            found.append(sums.set_axis(["n", "differs", "expected"], axis=1).assign(check=kind))
        every = pd.concat(found).set_index("check", append=True)
        every["rate"] = (1 - _TOLERANCE) * every.pop("expected")
        return every.query(f"n >= {MINIMUM_CONFIRMATIONS}").assign(tested=1)

    def with_copies(self, code: int, kind: str) -> Floats:
        """Return the second labels (m,) if half of a set were copied, every second by score."""
        order = np.lexsort((self.second, self.first, self._prob))
        copied, second = order[self._codes[kind][order] == code][::2], self.second.copy()
        second[copied] = self.first[copied]
        return second


def _called_toxic(
    prob: "pd.Series[float]", first: Floats, second: Floats, one: Ints, other: Ints
) -> Floats:
    """Return the probability (m,) that an independent second label is toxic, given the first one.

    `one` and `other` are the numbers of the people; without meaning where `other` is −1. Fitted by
    expectation-maximisation.
    """
    m, rows = first.size, np.flatnonzero(other >= 0)
    place = np.ceil(prob.rank(pct=True).to_numpy(np.float64) * _BINS).astype(np.int64) - 1
    person = np.concatenate([one, other[rows]])
    label = np.concatenate([first, second[rows]])[:, None]
    share = np.tile(_SHARES, (_BINS, 1))  # (bins, 3)
    rate = np.tile(_RATES, (int(person.max(initial=0)) + 1, 1))  # (people, 3)
    for _ in range(_ROUNDS):
        likelihood = np.abs(1 - label - rate[person])
        of_class = share[place] * likelihood[:m]
        of_class[rows] *= likelihood[m:]
        of_class /= of_class.sum(axis=1, keepdims=True)
        weight, before = np.concatenate([of_class, of_class[rows]]), rate
        common = ((weight * label).sum(axis=0) + 0.5) / (weight.sum(axis=0) + 1)
        called = _sums(person, weight * label, len(rate)) + _SHRUNK * common
        rate = np.clip(called / (_sums(person, weight, len(rate)) + _SHRUNK), _LEAST, 1 - _LEAST)
        share = _sums(place, of_class, _BINS) + 0.5
        share /= share.sum(axis=1, keepdims=True)
        if np.abs(rate - before).max() < _LEAST:
            break
    given = share[place] * np.abs(1 - label[:m] - rate[one])
    return np.asarray((given * rate[other]).sum(axis=1) / given.sum(axis=1))


def _sums(place: Ints, values: Floats, size: int) -> Floats:
    """Return the sums (size, 3) of the rows of values (n, 3) by place."""
    return np.column_stack([np.bincount(place, column, size) for column in values.T])
