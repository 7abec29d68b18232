"""What the collaborative metrics refuse, and what has no value."""

import math

import numpy as np
import pytest

from modwatch.common.errors import MetricInputError
from modwatch.statistics.collaboration import collaborative as c

pytestmark = pytest.mark.usefixtures("floating_point_errors_raise")

ALL_FIVE = [c.oc_accuracy, c.oc_auroc, c.oc_auprc, c.review_efficiency, c.review_effectiveness]

GOOD = {"y_true": [0, 1], "y_prob": [0.2, 0.7], "y_score": [1, 2], "review_fraction": 0.5}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y_true": [1]}, "y_true 1, y_prob 2"),
        ({"y_true": [0.3, 1]}, "label_threshold"),
        ({"y_true": [math.nan, 1]}, "y_true contains NaN"),
        ({"y_true": [-0.1, 1], "label_threshold": 0.5}, r"y_true contains values outside \[0, 1\]"),
        ({"label_threshold": 1}, r"label_threshold must be in \[0, 1\), got 1"),
        ({"y_prob": [0.5, math.nan]}, "y_prob contains NaN"),
        ({"y_prob": [0.5, 1.5]}, r"y_prob contains values outside \[0, 1\]"),
        ({"y_score": [1, math.inf]}, "y_score contains NaN or infinity"),
        ({"y_score": [1]}, "y_true 2, y_score 1"),
        ({"review_fraction": 1.1}, r"review_fraction must be in \[0, 1\], got 1.1"),
        ({"review_fraction": -0.1}, "review_fraction"),
        ({"sample_weight": [1, -1]}, "sample_weight contains negative values"),  # π < 0
        ({"sample_weight": [1, math.inf]}, "sample_weight contains NaN or infinity"),  # π = 0
        ({"sample_weight": [1, 5e-324]}, "sample_weight contains values other than 0 outside"),
        ({"sample_weight": [1]}, "sample_weight 1"),
        ({"threshold": 2}, "threshold"),
    ],
)
def test_input_that_does_not_fit_is_refused(change, message):
    for metric in ALL_FIVE:
        with pytest.raises(MetricInputError, match=message):
            metric(**(GOOD | change))


@pytest.mark.parametrize("metric", ALL_FIVE)
def test_an_empty_day_and_weightless_rows_have_no_value(metric):
    assert metric([], [], [], review_fraction=0.5) is None
    assert metric(**GOOD, sample_weight=[0, 0]) is None


@pytest.mark.parametrize("metric", ALL_FIVE)
def test_rows_without_weight_are_not_there(metric):
    more = {
        "y_true": [0, 1, 1],
        "y_prob": [0.2, 0.7, 0.1],
        "y_score": [1, 2, 9],
        "review_fraction": 0.5,
    }
    assert metric(**more, sample_weight=[1, 1, 0]) == metric(**GOOD)


def test_one_class_and_no_errors_have_no_value():
    assert c.oc_auroc([1, 1], [0.2, 0.7], [1, 2], review_fraction=0.5) is None
    assert c.oc_auroc([0, 0], [0.2, 0.7], [1, 2], review_fraction=0.5) is None
    assert c.oc_auprc([0, 0], [0.2, 0.7], [1, 2], review_fraction=0.5) is None
    assert c.oc_auprc([1, 1], [0.2, 0.7], [1, 2], review_fraction=0.5) == 1
    assert c.review_effectiveness([0, 1], [0.2, 0.7], [1, 2], review_fraction=0.5) is None
    assert c.review_efficiency([0, 1], [0.2, 0.7], [1, 2], review_fraction=0.5) == 0


@pytest.mark.parametrize("metric", ALL_FIVE)
def test_soft_labels_are_cut_at_the_threshold_that_is_named(metric):
    soft, prob, score = np.array([0.0, 0.2, 0.7, 0.9]), [0.1, 0.6, 0.4, 0.8], [4, 3, 2, 1]
    for cut in (0, 0.2, 0.7):
        hard = metric((soft > cut).astype(int), prob, score, review_fraction=0.25)
        assert metric(soft, prob, score, review_fraction=0.25, label_threshold=cut) == hard
    assert metric([0, 1], prob[:2], score[:2], review_fraction=0.5, label_threshold=0.7) == metric(
        [0, 1], prob[:2], score[:2], review_fraction=0.5
    )


def test_the_curve_takes_soft_labels_and_refuses_as_the_metrics_do():
    table = c.collaboration_curve([0.1, 0.9], [0.2, 0.7], label_threshold=0.5)
    assert table.equals(c.collaboration_curve([0, 1], [0.2, 0.7]))
    assert c.collaboration_curve([], [], review_fractions=[0.5])[[*c.METRICS]].isna().all(axis=None)
    for change, message in (
        ({"y_true": [0.1, 0.9]}, "label_threshold"),
        ({"review_fractions": [0.1, 2]}, "review_fraction must be in .* got 2"),
        ({"strategies": ["chance"]}, "strategy must be one of .* got 'chance'"),
        ({"interpolation": "linear"}, "interpolation must be one of .* got 'linear'"),
    ):
        with pytest.raises(MetricInputError, match=message):
            c.collaboration_curve(**({"y_true": [0, 1], "y_prob": [0.2, 0.7]} | change))
