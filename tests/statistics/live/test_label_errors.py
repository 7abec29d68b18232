"""Estimates with and without people's errors, and with errors that everybody makes."""

from dataclasses import replace

import numpy as np
import pytest

from modwatch.statistics.label_truth import ErrorEvidence
from modwatch.statistics.live.label_errors import COLUMNS, label_error_table
from modwatch.statistics.live.labelled_day import Confirmations, fully_labelled
from modwatch.statistics.live.measure import Measured, measure_days

DEPLOYED = {"review_fraction": 0.1, "strategy": "uncertainty"}


@pytest.fixture(scope="module")
def day():
    """A day on which every comment is labelled, and every second one confirmed, with errors."""
    rng = np.random.default_rng(1)
    prob = rng.beta(0.5, 2, 3000)
    truth = rng.random(3000) < prob
    labels = np.where(truth[:, None], rng.random((3000, 2)) >= 0.1, rng.random((3000, 2)) < 0.03)
    rows = np.arange(0, 3000, 2)
    return replace(
        fully_labelled(labels[:, 0].astype(int), prob),
        confirmations=Confirmations(row=rows, label=labels[rows, 1].astype(int)),
    )


def test_the_table_has_the_estimates_by_what_is_supposed_about_errors(day):
    table = label_error_table(
        Measured.from_days([day], ErrorEvidence.sharing(0.5, 0.5)), **DEPLOYED
    )
    assert tuple(table.columns) == COLUMNS
    asked = {"review_fractions": [0.1], "strategies": ["uncertainty"]}
    found = {
        "value": measure_days([day], known=ErrorEvidence.sharing(0.5, 0.5), **asked),
        "independent": measure_days([day], known=ErrorEvidence.sharing(0, 0), **asked),
        "uncorrected": measure_days([replace(day, confirmations=None)], **asked),
    }
    for name, measured in found.items():
        of = measured.set_index("metric")["value"]
        rows = table[table[name].notna()]
        assert set(rows["metric"]) >= {"accuracy", "oc_auroc", "review_efficiency"}
        assert rows[name].tolist() == pytest.approx([of[metric] for metric in rows["metric"]])
    assert set(table["shared_false_positive"]) == set(table["shared_false_negative"]) == {0.5}


def test_intervals_that_allow_for_shared_errors_are_wider(day):
    table = label_error_table(Measured.from_days([day]), **DEPLOYED).set_index("metric")
    for metric in ("accuracy", "recall_flagged", "precision_flagged"):
        row = table.loc[metric]
        assert row["high"] - row["low"] > row["independent_high"] - row["independent_low"]


def test_labels_that_are_the_truth_have_no_table():
    table = label_error_table(Measured.from_days([fully_labelled([1, 0], [0.9, 0.6])]), **DEPLOYED)
    assert table.empty
    assert tuple(table.columns) == COLUMNS
