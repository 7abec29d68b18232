"""The standard error of strata with few labels, or labels that are all alike."""

import numpy as np
import pytest

from modwatch.statistics.audit.estimates import AuditEstimate, AuditEstimator
from modwatch.statistics.audit.share_interval import IntervalOptions, interval
from modwatch.statistics.audit.stratified import StratumCounts

SCORES = [0.01, 0.2, 0.05, 0.3]


def estimator(
    labels: list[int],
    positives: list[int],
    *,
    population: list[int] | None = None,
    sides: str = "both",
) -> AuditEstimator:
    """Return the estimator of four strata of unflagged comments, and one of flagged comments."""
    sizes = population or [500] * 4
    rest = StratumCounts.from_arrays(
        population=sizes, labels=labels, positives=positives, score=SCORES
    )
    flagged = StratumCounts.from_arrays(population=[200], labels=[60], positives=[45], score=[0.9])
    return AuditEstimator(
        flagged=flagged.weighted(),
        unflagged=rest.weighted(),
        comments=(200, sum(sizes)),
        options=IntervalOptions(sides=sides),
    )


def is_honest(figure: AuditEstimate) -> bool:
    """Return whether the error is none, or about as wide as the interval."""
    if figure.value is None or figure.error is None:
        return figure.error is None
    assert figure.low is not None
    assert figure.high is not None
    return figure.error >= (figure.high - figure.low) / 10


@pytest.mark.parametrize(
    ("labels", "positives"),
    [
        ([1, 1, 1, 1], [1, 1, 1, 0]),
        ([1, 1, 1, 1], [1, 1, 1, 1]),
        ([1, 1, 40, 40], [0, 1, 3, 2]),
        ([2, 2, 2, 2], [2, 1, 2, 2]),
        ([30, 30, 30, 30], [30, 0, 0, 0]),
    ],
)
def test_error_is_as_wide_as_the_interval_or_none(labels, positives):
    for figure in estimator(labels, positives).estimates():
        assert is_honest(figure), figure


def test_strata_of_one_label_each_vary_like_all_labels():
    figure = estimator([1, 1, 1, 1], [1, 1, 1, 0]).estimate("prevalence")
    assert figure.error == pytest.approx(0.196, abs=0.005)


def test_labels_that_show_the_error_keep_the_textbook_one():
    figure = estimator([50] * 4, [5, 10, 8, 15]).estimate("prevalence_unflagged")
    rates = np.array([5, 10, 8, 15]) / 50
    variance = (rates * (1 - rates) / 49 * (1 - 50 / 500) / 16).sum()
    assert figure.error == pytest.approx(np.sqrt(variance))


@pytest.mark.parametrize("sides", ["lower", "upper"])
def test_one_bound_is_enough_to_judge_the_error(sides):
    assert estimator([3] * 4, [3, 0, 3, 0], sides=sides).estimate("prevalence").error is None
    assert estimator([50] * 4, [5, 10, 8, 15], sides=sides).estimate("prevalence").error


def test_strata_that_are_labelled_whole_have_no_error():
    census = estimator([1, 20, 3, 7], [1, 4, 0, 7], population=[1, 20, 3, 7])
    assert census.estimate("prevalence_unflagged").error == 0
    part = estimator([1, 20, 3, 50], [1, 4, 0, 7], population=[1, 20, 3, 500])
    figure = part.estimate("prevalence_unflagged")
    assert figure.error == pytest.approx(np.sqrt(0.14 * 0.86 / 49 * 0.9) * 500 / 524)


def test_lone_labels_are_not_taken_for_certain():
    counts = StratumCounts.from_arrays(
        population=[500] * 4, labels=[1] * 4, positives=[1, 1, 1, 0], score=SCORES
    )
    low, high = interval(counts.weighted(), IntervalOptions())
    assert high - low > 0.4
