"""What a statistic accepts."""

import numpy as np
import pandas as pd
import pytest

from modwatch.errors import MetricInputError
from modwatch.metrics import inputs


@pytest.fixture(autouse=True)
def _floating_point_errors_raise():
    with np.errstate(all="raise", under="ignore"):
        yield


@pytest.mark.parametrize(
    "values",
    [
        [0, 1],
        [False, True],
        np.array([0, 1], dtype=np.int8),
        np.array([0, 1], dtype=np.float32),
        np.array([0, 1], dtype=object),
        pd.Series([0, 1]),
        pd.array([0, 1], dtype="Int64"),
        pd.array([False, True], dtype="boolean"),
    ],
)
def test_numbers_of_any_kind_become_floats(values):
    column = inputs.column("x", values)
    assert column.dtype == np.float64
    assert column.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ([1, None], "x holds NaN or infinity; drop or mend those rows first"),
        ([np.inf, -np.inf], "x holds NaN or infinity"),
        (pd.array([1, None], dtype="Int64"), "x holds"),
        (["0.5"], "x holds something that is not a number; pass floats"),
        (np.array([1j]), "not a number"),
        (np.array(["2026-01-01"], dtype="datetime64[D]"), "not a number"),
        ([[1], [1, 2]], "not a number"),
        ([object()], "not a number"),
        (1.0, "x has 0 dimensions; pass a single column"),
        ([[1.0]], "x has 2 dimensions"),
    ],
)
def test_anything_else_is_refused(values, told):
    with pytest.raises(MetricInputError, match=told):
        inputs.column("x", values)


def test_a_message_holds_no_value_of_the_column():
    with pytest.raises(MetricInputError) as caught:
        inputs.column("x", ["a private text"])
    assert "private" not in str(caught.value)


def test_the_callers_array_is_left_alone():
    given = np.array([0.2, 0.8])
    given.flags.writeable = False
    assert inputs.labels(given, threshold=0.5).tolist() == [0, 1]
    assert given.tolist() == [0.2, 0.8]


@pytest.mark.parametrize("threshold", [-0.1, 1, np.nan])
def test_a_label_threshold_leaves_both_labels_possible(threshold):
    with pytest.raises(MetricInputError, match="label_threshold"):
        inputs.labels([0, 1], threshold)


def test_weights_are_masses_of_a_sensible_size():
    assert inputs.weights([0, 1e-100, 1e100], 3).tolist() == [0, 1e-100, 1e100]
    for wrong in (-1, 1e101, 1e-101):
        with pytest.raises(MetricInputError, match="pass inverse inclusion probabilities"):
            inputs.weights([wrong], 1)


def test_no_columns_of_different_length():
    with pytest.raises(MetricInputError, match="label 2, prob 2, weight 1; pass one row a comment"):
        inputs.rows([0, 1], [0, 1], [1])
