"""How labels are split between slice and confirmations: checked by labelling as planned."""

import numpy as np
import pytest
from reviewed_days import community, labelled_by_people, reviewed_day

from modwatch.common.errors import DesignError, MetricInputError
from modwatch.routing.design import RoutingPolicy
from modwatch.routing.label_plan import plan_labels
from modwatch.statistics.live.labelled_day import LabelledDay
from modwatch.statistics.live.measure import measure_days
from modwatch.statistics.live.sample import Sample

POLICY = RoutingPolicy(review_fraction=0.1, slice_share=0.2)
RATES = (0.02, 0.2)


@pytest.fixture(scope="module")
def days():
    rng = np.random.default_rng(1)
    return [community(rng, 4000, 0.2) for _ in range(3)]


@pytest.fixture(scope="module")
def labelled(days):
    rng = np.random.default_rng(2)
    reviewed = [reviewed_day(rng, *day, slice_share=0.2) for day in days]
    return [labelled_by_people(rng, day, 0.13, rates=RATES) for day in reviewed]


def width_of(found, metric):
    row = found.set_index("metric").loc[metric]
    return row["high"] - row["low"]


def then(rng, days, share):
    """Return the days with the same top and a slice of another share of as many routed ones."""
    alpha = 0.1 * (0.8 + share)
    return [
        reviewed_day(rng, *day, review_fraction=alpha, slice_share=0.1 * share / alpha)
        for day in days
    ]


def test_the_planned_slice_gives_the_planned_width(days):
    rng = np.random.default_rng(1)
    now = [reviewed_day(rng, *day, slice_share=0.2) for day in days]
    plan = plan_labels(now, POLICY, widths=[0.04]).set_index("metric").loc["accuracy"]
    assert plan["labels"] > 1.5 * plan["labels_now"]
    assert plan["confirmations"] == 0
    found = []
    for seed in range(4):
        planned = then(np.random.default_rng(seed), days, plan["slice_share"])
        table = measure_days(planned, review_fractions=[0.1], strategies=["uncertainty"])
        found.append(width_of(table, "accuracy"))
    assert np.mean(found) == pytest.approx(0.04, rel=0.2)


@pytest.fixture(scope="module")
def plan(labelled):
    """The splits for three widths, from people with the given error rates."""
    return plan_labels(labelled, POLICY, widths=[0.1, 0.07, 0.0001], error_rates=RATES)


@pytest.fixture(scope="module")
def planned(plan):
    """The split for accuracy within 0.07."""
    return plan[plan["width"] == 0.07].set_index("metric").loc["accuracy"]


@pytest.mark.simulation
def test_slice_and_confirmations_that_were_planned_give_the_planned_width(days, planned):
    assert planned["total"] == planned["labels"] + planned["confirmations"]
    assert planned["confirmations_now"] > 0
    found = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        again = then(rng, days, float(planned["slice_share"]))
        share = planned["confirmation_share"]
        labels = [labelled_by_people(rng, day, share, rates=RATES) for day in again]
        table = measure_days(labels, review_fractions=[0.1], strategies=["uncertainty"])
        found.append(width_of(table, "accuracy"))
    assert np.mean(found) == pytest.approx(0.07, rel=0.25)


@pytest.mark.soak
def test_a_budget_is_kept_and_gives_the_width_that_takes_it_or_a_narrower_one_if_larger(labelled):
    """The two questions have the same answer, the wider way round."""
    plan = plan_labels(labelled, POLICY, widths=[0.07]).set_index("metric")
    enough = float(plan.loc["accuracy", "total"])
    found = {
        budget: plan_labels(labelled, POLICY, budget=budget).set_index("metric")
        for budget in (enough, 3 * enough)
    }
    assert found[enough].loc["accuracy", "width"] == pytest.approx(0.07, rel=0.05)
    for metric in ("accuracy", "oc_accuracy"):
        widths = [match.loc[metric, "width"] for match in found.values()]
        assert widths[1] < 0.9 * widths[0]
        for budget, item in found.items():
            assert 0.9 * budget <= item.loc[metric, "total"] <= budget + 1


def test_narrower_takes_more_labels_and_what_cannot_be_is_missing(plan):
    for _, rows in plan.groupby("metric"):
        needed = rows.sort_values("width")["labels"]
        assert needed.dropna().is_monotonic_decreasing
    narrowest = plan[plan["width"] == 0.0001].set_index("metric")["labels"]
    assert narrowest[["accuracy", "oc_accuracy", "oc_auroc"]].isna().all()
    assert plan["slice_share"].dropna().between(0, 1).all()


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        ({"error_rates": (0.5, 0.5)}, "sum to 1: such labels tell nothing"),
        ({"error_rates": (0.3, 0.1)}, "false-positive rate must be in"),
        ({"error_rates": (0.0, 0.7)}, "false-negative rate must be in"),
        ({"error_rates": (float("nan"), 0.1)}, "false-positive rate must be in"),
        ({"budget": 0}, "more than 0 labels"),
        ({"budget": float("nan")}, "more than 0 labels"),
        ({"widths": [0]}, "width"),
        ({"widths": [1.5]}, "width"),
    ],
)
def test_budgets_widths_and_error_rates_that_cannot_be_are_refused(wanted, reason):
    with pytest.raises((DesignError, MetricInputError), match=reason):
        plan_labels([], POLICY, **wanted)


def test_without_labels_nothing_is_planned():
    assert plan_labels([], POLICY).empty
    assert plan_labels([], POLICY, budget=100).empty


def test_no_row_is_repeated_beyond_what_it_stands_for():
    """A slice of sixteen times its size would hold more comments than there are."""
    rng = np.random.default_rng(3)
    prob, label = community(rng, 120, 0.3)
    day = reviewed_day(rng, prob, label, slice_share=0.5)
    many = Sample([day], repeat=16)
    assert many.label.size < many.size
    assert (np.bincount(day.stratum[day.rows(16)]) <= day.population).all()
    plan = plan_labels([day], POLICY, widths=[0.3, 0.1, 0.01])
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
    plan = plan_labels([day], POLICY, widths=[0.001]).set_index("metric")
    assert plan.loc["accuracy", "labels"] == 20
