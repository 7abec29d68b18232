"""Shares of positives whose number is estimated."""

import numpy as np
import pytest

from modwatch.statistics.intervals import PartialTotal, mid_p
from modwatch.statistics.live.areas import Side, mean_credit


def side(events, rows, credit, *, span=1e6):
    """Return a side of which `events` of `rows` equal rows are positive, few of them seen."""
    share = np.full(rows, 1 / rows)
    event = (np.arange(rows) < events).astype(float)
    total = PartialTotal(seen=0, span=span, event=event, share=share, error=share)
    return Side(total=total, positive=event, credit=np.full(rows, credit), seen=np.zeros(rows))


def test_where_all_is_seen_the_share_is_known():
    none = np.zeros(4)
    sides = [
        Side(
            total=PartialTotal(seen=count, span=0, event=none, share=none, error=none),
            positive=none,
            credit=np.full(4, credit),
            seen=np.full(4, count / 4),
        )
        for count, credit in ((3, 1.0), (1, 0.0))
    ]
    assert mean_credit(sides, np.random.default_rng(0)) == (0.75, (0.75, 0.75))


def test_no_positive_has_no_share():
    assert mean_credit([side(0, 5, 1.0)], np.random.default_rng(0)) is None


def test_two_counts_give_the_interval_of_a_binomial_share():
    """Of rare positives on two sides, the share is binomial given their number."""
    value, (low, high) = mean_credit(
        [side(30, 10_000, 1.0), side(10, 10_000, 0.0)], np.random.default_rng(1)
    )
    expected = mid_p(30, 40)
    assert value == pytest.approx(0.75, abs=0.01)
    assert (low, high) == pytest.approx(expected, abs=0.02)


def test_the_same_credit_everywhere_leaves_no_doubt():
    value, bounds = mean_credit([side(3, 50, 0.4), side(2, 80, 0.4)], np.random.default_rng(2))
    assert value == pytest.approx(0.4)
    assert bounds == pytest.approx((0.4, 0.4))


def test_none_seen_on_a_side_does_not_mean_none_is_there():
    value, (low, high) = mean_credit(
        [side(20, 1000, 1.0), side(0, 1000, 0.0)], np.random.default_rng(3)
    )
    assert value == high == 1
    assert 0.8 < low < 0.95


@pytest.mark.simulation
def test_few_positives_do_not_bias_the_share():
    """A plain quotient of Poisson counts is above its truth by a third of its spread here."""
    rng = np.random.default_rng(4)
    rows, wanted, plain, found = 400, 0.7, [], []
    for lost in rng.binomial(rows, 3 / rows, size=1500):
        sides = [side(0, rows, 0.0), side(lost, rows, 0.0, span=400.0)]
        sure = np.zeros(rows)
        sure[0] = 7.0
        sides[0] = Side(
            total=PartialTotal(
                seen=7, span=0, event=sure, share=np.zeros(rows), error=np.zeros(rows)
            ),
            positive=sure,
            credit=np.ones(rows),
            seen=sure,
        )
        found.append(mean_credit(sides, rng)[0])
        plain.append(7 / (7 + lost))
    spread = np.std(found)
    assert abs(np.mean(found) - wanted) < spread / 5 < abs(np.mean(plain) - wanted) * 2
    assert abs(np.mean(found) - wanted) < abs(np.mean(plain) - wanted) / 2


def test_what_no_row_stands_for_may_be_positive_or_not():
    """Nineteen positives were seen to win and one to lose; one comment more was not looked at."""
    none, seen = np.zeros(2), np.array([19.0, 0.0])
    sides = [
        Side(
            total=PartialTotal(
                seen=count, span=0, event=none, share=none, error=none, unknown=unknown
            ),
            positive=none,
            credit=np.full(2, credit),
            seen=seen if credit else np.array([0.0, 1.0]),
        )
        for count, unknown, credit in ((19, 0, 1.0), (1, 1, 0.0))
    ]
    value, (low, high) = mean_credit(sides, np.random.default_rng(5))
    assert value == high == 0.95
    assert low == pytest.approx(19 / 21)
