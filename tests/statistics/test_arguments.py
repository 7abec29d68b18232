"""What a statistic accepts."""

import numpy as np
import pandas as pd
import pytest

from modwatch.common.errors import DesignError, MetricInputError, ModwatchError
from modwatch.statistics import arguments
from modwatch.statistics.collaboration.model_comparison import ScoredByModel, compare_models
from modwatch.statistics.disagreement.annotations import Annotations
from modwatch.statistics.divergence.profiles import Profiles, demographic_divergence
from modwatch.statistics.drift.shift_segments import explain_shift

pytestmark = pytest.mark.usefixtures("floating_point_errors_raise")


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
    column = arguments.column("x", values)
    assert column.dtype == np.float64
    assert column.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1, None], "x contains NaN or infinity; drop or impute those rows"),
        ([np.inf, -np.inf], "x contains NaN or infinity"),
        (pd.array([1, None], dtype="Int64"), "x "),
        (["0.5"], "x should be numeric; pass an array of floats"),
        (np.array([1j]), "should be numeric"),
        (np.array(["2026-01-01"], dtype="datetime64[D]"), "should be numeric"),
        ([[1], [1, 2]], "should be numeric"),
        ([object()], "should be numeric"),
        (1.0, r"x should be a 1d array, got an array of shape \(\)"),
        ([[1.0]], r"x should be a 1d array, got an array of shape \(1, 1\)"),
    ],
)
def test_anything_else_is_refused(values, message):
    with pytest.raises(MetricInputError, match=message):
        arguments.column("x", values)


def test_a_message_contains_no_value_of_the_column():
    with pytest.raises(MetricInputError) as caught:
        arguments.column("x", ["a private text"])
    assert "private" not in str(caught.value)


def test_the_callers_array_is_left_alone():
    given = np.array([0.2, 0.8])
    given.flags.writeable = False
    assert arguments.labels(given, threshold=0.5).tolist() == [0, 1]
    assert given.tolist() == [0.2, 0.8]


@pytest.mark.parametrize("threshold", [-0.1, 1, np.nan])
def test_a_label_threshold_leaves_both_labels_possible(threshold):
    with pytest.raises(MetricInputError, match="label_threshold"):
        arguments.labels([0, 1], threshold)


def test_weights_are_masses_of_a_sensible_size():
    assert arguments.weights([0, 1e-100, 1e100], 3).tolist() == [0, 1e-100, 1e100]
    for wrong in (-1, 1e101, 1e-101):
        with pytest.raises(MetricInputError, match="pass inverse inclusion probabilities"):
            arguments.weights([wrong], 1)


def test_no_columns_of_different_length():
    with pytest.raises(
        MetricInputError, match="y_true 2, y_prob 2, sample_weight 1; pass one row a comment"
    ):
        arguments.rows([0, 1], [0, 1], [1])


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


@pytest.mark.parametrize("missing", [None, np.nan, pd.NaT, pd.NA, np.datetime64("NaT")])
def test_a_missing_name_is_refused(missing):
    with pytest.raises(MetricInputError, match="1 values of groups are missing"):
        arguments.names("groups", ["a", missing])


def compared_models(groups):
    model = ScoredByModel(prob=[0.9, 0.1] * 60, threshold=0.5)
    return compare_models([1, 0] * 60, model, model, groups=groups, review_fraction=0.1, draws=1)


def explained(**columns):
    cells = pd.DataFrame(
        {"platform": ["a", "b"], "thread": ["t", "u"], "identity": ["(none)"] * 2, **columns}
    )
    counts = dict.fromkeys(("comments", "reference_comments"), 100)
    counts |= dict.fromkeys(("flagged", "reference_flagged"), 10)
    return explain_shift(
        cells.assign(**counts), ["platform"], transient=["thread"], labels=["identity"]
    )


def profiles_of(groups):
    share = np.repeat(np.eye(40)[[0, 39]], 2, axis=0)
    profiles = Profiles(annotator=np.arange(4), share=share, left_out=0)
    return demographic_divergence(profiles, groups, clusters=2)


ANNOTATED = {"item": [0, 0, 1, 1], "annotator": ["a", "b"] * 2, "label": ["x", "y"] * 2}


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("groups", lambda missing: compared_models([{"a"}] * 119 + [{missing}])),
        ("groups", lambda missing: compared_models([["a"]] * 119 + [missing])),
        ("groups", lambda missing: profiles_of([0, 0, 1, missing])),
        ("platform", lambda missing: explained(platform=["a", missing])),
        ("thread", lambda missing: explained(thread=["t", missing])),
        ("identity", lambda missing: explained(identity=["women", missing])),
        *(
            (
                name,
                lambda missing, name=name: Annotations.from_columns(
                    **ANNOTATED | {name: [*ANNOTATED[name][:3], missing]}
                ),
            )
            for name in ANNOTATED
        ),
        (
            "classes",
            lambda missing: Annotations.from_columns(**ANNOTATED, classes=["x", "y", missing]),
        ),
    ],
)
def test_no_statistic_takes_a_missing_name_for_a_group(name, call):
    for missing in (None, np.nan, pd.NaT):
        with pytest.raises(MetricInputError, match=rf"\b{name}\b"):
            call(missing)
