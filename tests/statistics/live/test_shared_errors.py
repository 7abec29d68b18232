"""Estimates with and without people's errors, and with errors that everybody makes."""

from dataclasses import replace

import numpy as np
import pytest

from modwatch.statistics.label_truth import SHARED, GivenLabels, KnownAnswers, true_labels
from modwatch.statistics.live.labelled_day import Confirmations, fully_labelled
from modwatch.statistics.live.measure import measure_days
from modwatch.statistics.live.shared_errors import (
    COLUMNS,
    SharedErrors,
    label_error_table,
    shared_errors,
)

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


def test_the_table_holds_headline_uncorrected_and_band(day):
    table = label_error_table([day], **DEPLOYED)
    assert tuple(table.columns) == COLUMNS
    ok = table[table["status"] == "ok"]
    headline = measure_days([day], review_fractions=[0.1], strategies=["uncertainty"])
    plain = measure_days(
        [replace(day, confirmations=None)], review_fractions=[0.1], strategies=["uncertainty"]
    )
    for row in ok.itertuples():
        for found, value in ((headline, row.value), (plain, row.uncorrected)):
            assert found.set_index("metric").loc[row.metric, "value"] == pytest.approx(value)
        assert row.shared_low <= row.low <= row.value <= row.high <= row.shared_high
    assert set(ok["metric"]) >= {"accuracy", "oc_auroc", "review_efficiency"}


def test_labels_that_are_the_truth_have_no_table():
    table = label_error_table([fully_labelled([1, 0], [0.9, 0.6])], **DEPLOYED)
    assert table.empty
    assert tuple(table.columns) == COLUMNS


def test_the_share_of_shared_errors_is_stated_or_known_from_gold():
    ones = np.ones(3000, np.int64)
    rng = np.random.default_rng(0)
    truth = rng.random(3000) < 0.3
    result = np.where(truth[:, None], rng.random((3000, 3)) >= 0.1, rng.random((3000, 3)) < 0.02)
    labels = true_labels(
        GivenLabels(
            prob=np.full(3000, 0.3),
            group=0 * ones,
            given=3 * ones,
            toxic=result.sum(axis=1).astype(np.int64),
        )
    )
    assert shared_errors(labels, None) == SharedErrors()
    few = KnownAnswers(toxic=10, toxic_wrong=5, other=10, other_wrong=5)
    assert shared_errors(labels, few) == SharedErrors(false_positive=SHARED, false_negative=SHARED)
    # People contradict gold as often as each other: no error is shared, but for chance.
    alike = KnownAnswers(toxic=5000, toxic_wrong=500, other=20000, other_wrong=400)
    found = shared_errors(labels, alike)
    assert max(found.false_positive, found.false_negative) < 0.3
    # Twice as often: half of the errors are shared.
    twice = KnownAnswers(toxic=5000, toxic_wrong=1000, other=20000, other_wrong=800)
    found = shared_errors(labels, twice)
    assert 0.4 < found.false_positive < 0.65
    assert 0.4 < found.false_negative < 0.65
