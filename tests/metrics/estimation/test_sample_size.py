"""How large a slice must be: as the textbook says where it says something, and checked by doing."""

import numpy as np
import pytest
from scipy import stats

from modwatch.errors import MetricInputError
from modwatch.metrics.estimation.labelled_day import LabelledDay
from modwatch.metrics.estimation.measure import measure_days
from modwatch.metrics.estimation.sample import Sample
from modwatch.metrics.estimation.sample_size import labels_for_width, plan_slice


@pytest.mark.parametrize(("rate", "width"), [(0.5, 0.1), (0.2, 0.05), (0.05, 0.02)])
def test_labels_for_a_share_are_near_the_normal_approximation(rate, width):
    wald = rate * (1 - rate) * (2 * stats.norm.ppf(0.975) / width) ** 2
    assert labels_for_width(rate, width) == pytest.approx(wald, rel=0.05)


def test_nothing_to_be_seen_takes_labels_all_the_same():
    none = labels_for_width(0.0, 0.01)
    assert 1 - 0.05 ** (1 / none) == pytest.approx(0.01, rel=0.01)  # mid-P: ½(1−p)ⁿ = 2.5 %


def test_a_small_population_needs_fewer_labels():
    assert labels_for_width(0.5, 0.1, population=500) < labels_for_width(0.5, 0.1)
    assert labels_for_width(0.5, 1e-6, population=500) == 500


def test_the_planned_slice_gives_the_planned_width(make_community, review):
    rng = np.random.default_rng(1)
    asked = {"review_fractions": [0.1], "strategies": ["uncertainty"]}
    days = [make_community(rng, 4000, 0.2) for _ in range(3)]
    now = [review(rng, *day, slice_share=0.2) for day in days]
    plan = plan_slice(now, review_fraction=0.1, widths=[0.05]).set_index("metric").loc["accuracy"]
    assert plan["labels"] > 1.5 * plan["labels_now"]
    share = plan["labels"] / sum(int(day.sample.sum()) for day in now)
    # The same top, and the slice that was planned beside it.
    alpha = 0.1 * (0.8 + share)
    then = [
        review(rng, *day, review_fraction=alpha, slice_share=0.1 * share / alpha) for day in days
    ]
    row = measure_days(then, **asked).set_index("metric").loc["accuracy"]
    assert row["high"] - row["low"] == pytest.approx(0.05, rel=0.2)


def test_narrower_takes_more_labels_and_what_cannot_be_is_missing(make_community, review):
    rng = np.random.default_rng(2)
    day = review(rng, *make_community(rng, 3000, 0.1), slice_share=0.3)
    plan = plan_slice([day], review_fraction=0.1, widths=[0.5, 0.05, 0.0001])
    for _, rows in plan.groupby("metric"):
        needed = rows.sort_values("width")["labels"]
        assert needed.dropna().is_monotonic_decreasing
    narrowest = plan[plan["width"] == 0.0001].set_index("metric")["labels"]
    assert narrowest[["accuracy", "oc_accuracy", "oc_auroc"]].isna().all()
    assert plan["share"].dropna().between(0, 1).all()


@pytest.mark.parametrize("width", [0, -0.1, 1.5, float("nan")])
def test_a_width_that_cannot_be_is_refused(width):
    with pytest.raises(MetricInputError, match="width"):
        plan_slice([], review_fraction=0.1, widths=[width])
    with pytest.raises(MetricInputError, match="width"):
        labels_for_width(0.5, width)


def test_without_labels_nothing_is_planned():
    assert plan_slice([], review_fraction=0.1).empty


def test_no_row_is_repeated_beyond_what_it_stands_for(make_community, review):
    """A slice of sixteen times its size would hold more comments than there are."""
    rng = np.random.default_rng(3)
    prob, label = make_community(rng, 120, 0.3)
    day = review(rng, prob, label, slice_share=0.5)
    many = Sample([day], repeat=16)
    assert many.label.size < many.size
    assert (np.bincount(day.stratum[day.rows(16)]) <= day.population).all()
    plan = plan_slice([day], review_fraction=0.1, widths=[0.3, 0.1, 0.01])
    assert (plan["labels"].dropna() <= prob.size).all()


def test_where_everything_would_have_a_label_any_width_is_reached():
    """Ten of twenty were looked at: twice as many are all."""
    day = LabelledDay(
        prob=np.linspace(0, 1, 20),
        stratum=np.ones(20, int),
        label=np.arange(20) % 3 == 0,
        labelled=np.arange(20) % 2 == 0,
        population=np.array([0, 20]),
        sample=np.array([0, 10]),
    )
    plan = plan_slice([day], review_fraction=0.1, widths=[0.001]).set_index("metric")
    assert plan.loc["accuracy", "labels"] == 20


def test_more_labels_than_anybody_can_have_are_refused():
    assert labels_for_width(0.5, 0.0005) > 10**7
    with pytest.raises(MetricInputError, match="pass a larger width"):
        labels_for_width(0.5, 1e-7)
