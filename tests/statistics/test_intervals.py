"""Intervals of totals: the mid-P Clopper–Pearson interval where it is known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.optimize import brentq

from modwatch.statistics.intervals import PartialTotal, interval

MANY = 1e6


def equal(events, size):
    """Return the total over very many unseen comments, after `size` equal rows were seen."""
    share = np.full(size, 1 / size)
    event = (np.arange(size) < events).astype(float)
    return PartialTotal(seen=0, span=MANY, event=event, share=share, error=share)


@pytest.mark.parametrize(
    ("events", "size"), [(0, 10), (1, 10), (3, 10), (5, 10), (10, 10), (2, 400)]
)
def test_equal_weights_give_mid_p_clopper_pearson(events, size):
    def tail(p, level):
        below = stats.binom.cdf(events, size, p) - stats.binom.pmf(events, size, p) / 2
        return below - level

    low, high = (bound / MANY for bound in interval(equal(events, size).confidence()))
    expected_high = brentq(tail, 1e-9, 1 - 1e-9, args=(0.025,)) if events < size else 1.0
    expected_low = brentq(tail, 1e-9, 1 - 1e-9, args=(0.975,)) if events else 0.0
    assert high == pytest.approx(expected_high, abs=2e-3)
    assert low == pytest.approx(expected_low, abs=2e-3)


@given(st.integers(1, 30).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_interval_holds_the_estimate_and_has_width(drawn):
    total = equal(*drawn)
    low, high = (bound / MANY for bound in interval(total.confidence()))
    assert 0 <= low <= total.value / MANY + 1e-9 <= high + 2e-9 <= 1 + 2e-9
    assert high - low > 0.01


def test_nothing_unseen_leaves_no_width():
    none = np.zeros(3)
    total = PartialTotal(seen=2, span=0, event=np.ones(3), share=none, error=none)
    assert interval(total.confidence()) == (2, 2)


def test_unknown_mass_may_be_all_or_nothing():
    none = np.zeros(1)
    total = PartialTotal(
        seen=1, span=0, event=none, share=none, error=none, unknown=3, supposed=0.5
    )
    assert total.value == 2.5
    assert interval(total.confidence()) == (1, 4)


def test_of_two_unseen_comments_none_or_both_may_be_events():
    share = np.full(3, 1 / 3)
    total = PartialTotal(seen=1, span=2, event=np.array([1.0, 0, 0]), share=share, error=share)
    assert interval(total.confidence()) == (1, 3)
