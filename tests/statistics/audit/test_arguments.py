"""Whatever does not fit is named; nothing reaches numpy that it would choke on."""

import numpy as np
import pandas as pd
import pytest

from modwatch.common.errors import DesignError, MetricInputError, ModwatchError
from modwatch.statistics.audit import arguments


@pytest.mark.parametrize(
    "values",
    [[1.5], [-1], [np.nan], [np.inf], ["3"], ["many"], [None], [[1], [1, 2]], [2.0**60], [1j]],
)
def test_what_is_no_whole_number_is_refused(values):
    with pytest.raises(MetricInputError, match=r"^labels (must|contains|should|has rows)"):
        arguments.whole_numbers("labels", values)


@pytest.mark.parametrize("values", [[2, 3], [2.0, 3.0], np.uint8([2, 3]), pd.Series([2, 3])])
def test_whole_numbers_of_any_type_are_taken(values):
    found = arguments.whole_numbers("labels", values)
    assert found.tolist() == [2, 3]
    assert found.dtype == np.int64


def test_whole_numbers_keep_their_shape():
    assert arguments.whole_numbers("positives", [[1, 2], [3, 4]]).tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize("values", [[1.1], [-0.1], [np.nan], [[0.5]], ["x"], 0.5])
def test_what_is_no_share_is_refused(values):
    with pytest.raises(MetricInputError, match=r"^rate (must|contains|should)"):
        arguments.shares("rate", values)


@pytest.mark.parametrize("population", [[], [0], [5, 0], 5, [[5]], [-1], [np.nan], "a"])
def test_a_population_has_strata_with_comments(population):
    with pytest.raises(ModwatchError):
        arguments.strata_sizes(population)


def test_columns_of_another_length_are_named():
    with pytest.raises(MetricInputError, match=r"spread has shape \(3,\) for 2 strata"):
        arguments.one_per_stratum(2, value=np.zeros(2), spread=np.zeros(3))


@pytest.mark.parametrize("labels", [10.5, np.nan, np.inf])
def test_a_budget_is_whole(labels):
    with pytest.raises(DesignError, match="must be whole"):
        arguments.budget(labels)


@pytest.mark.parametrize("tails", [(-0.1, 0.1), (0.1, 0.5), (np.nan, 0.1)])
def test_tails_are_less_than_a_half(tails):
    with pytest.raises(DesignError, match="Tails"):
        arguments.tails(tails)
