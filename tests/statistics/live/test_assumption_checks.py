"""What labels can contradict: found where it is so, and with the chance that is stated."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from simulated_dependence import label_pairs

from modwatch.statistics.live.assumption_checks import LEAST_POWER, assumption_checks
from modwatch.statistics.live.labelled_day import Confirmations, fully_labelled
from modwatch.statistics.live.measure import Measured

ASKED = {
    "review_fractions": [0.1],
    "strategies": ["uncertainty"],
    "threshold": 0.5,
}


def checks_of(day):
    """Return the checks of a day, by name."""
    measured = Measured.from_days([day])
    pairs = label_pairs(0, m=100)
    return assumption_checks(measured, measured.tables(**ASKED), pairs).set_index("check")


def labelled(miss, n=12_000, every=1, seed=0):
    """Return a day of labels, of which some are confirmed.

    `miss` are the chances that a toxic comment with the lowest and with the highest score is not
    called toxic.
    """
    rng = np.random.default_rng(seed)
    prob = rng.beta(0.5, 1.5, n)
    truth = rng.random(n) < prob
    missed = np.interp(prob, [0, 1], miss)[:, None]
    labels = np.where(truth[:, None], rng.random((n, 2)) >= missed, rng.random((n, 2)) < 0.02)
    rows = np.arange(0, n, every)
    confirmations = Confirmations(row=rows, label=labels[rows, 1].astype(int))
    return replace(fully_labelled(labels[:, 0].astype(int), prob), confirmations=confirmations)


def test_more_misses_at_low_scores_are_found_where_labels_can_show_them():
    rising, even, few = (
        checks_of(day).loc["misses by score"]
        for day in (labelled((0.5, 0.05)), labelled((0.2, 0.2)), labelled((0.5, 0.05), every=120))
    )
    assert (rising["found"], even["found"], few["found"]) == (1, 0, 0)
    assert rising["p_value"] < 0.01 < even["p_value"]
    assert LEAST_POWER > even["power"] > 3 * few["power"]


@pytest.mark.parametrize("more", [0.0, 0.01], ids=["by the design alone", "it excludes the score"])
@pytest.mark.parametrize(("half", "power"), [(0.0002, 1.0), (0.025, 0.5), (0.05, 0.1635)])
def test_power_of_the_design_falls_with_the_width_of_its_interval(half, power, more):
    """With 5 % toxic comments, half off: 2.5 points, beside the half width of the interval."""
    day = labelled((0.2, 0.2), n=600)
    own = {"metric": "prevalence", "value": 0.05, "low": 0.05 - half, "high": 0.05 + half}
    row = own | {"low": 0.05 - half - more, "n": 600}
    tables = (pd.DataFrame([row]), pd.DataFrame([own]))
    found = assumption_checks(Measured.from_days([day]), tables, label_pairs(0, m=100))
    row = found.set_index("check").loc["estimates by score"]
    assert (row["found"], row["n"]) == (more > 0, 600)
    assert row["power"] == pytest.approx(power, abs=1e-4)


def test_labels_that_are_the_truth_have_nothing_to_check():
    table = checks_of(fully_labelled([1, 0], [0.9, 0.6]))
    assert not table["found"].any()
    assert "misses by score" not in table.index
