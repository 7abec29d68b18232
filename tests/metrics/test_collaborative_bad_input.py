"""What the collaborative metrics refuse, and what has no value."""

import math

import numpy as np
import pytest

from modwatch.errors import MetricInputError
from modwatch.metrics import collaborative as c

ALL_FIVE = [
    c.oc_accuracy,
    c.oc_auroc,
    c.oc_auprc,
    c.review_efficiency,
    c.review_effectiveness,
]

GOOD = {"label": [0, 1], "prob": [0.2, 0.7], "review_score": [1, 2], "alpha": 0.5}


@pytest.fixture(autouse=True)
def _floating_point_errors_raise():
    with np.errstate(all="raise", under="ignore"):
        yield


@pytest.mark.parametrize("metric", ALL_FIVE)
@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"label": [1]}, "label 1, prob 2"),
        ({"label": [0.3, 1]}, "label_threshold"),
        ({"label": [[0, 1]]}, "label has 2 dimensions"),
        ({"label": [math.nan, 1]}, "label holds NaN"),
        ({"label": [math.nan, 1], "label_threshold": 0.5}, "label holds NaN"),
        ({"label": [-0.1, 1], "label_threshold": 0.5}, r"label holds values outside \[0, 1\]"),
        ({"label_threshold": 1}, r"label_threshold is 1; it must lie in \[0, 1\)"),
        ({"label_threshold": math.nan}, "label_threshold"),
        ({"prob": [0.5, math.nan]}, "prob holds NaN"),
        ({"prob": [0.5, 1.5]}, r"prob holds values outside \[0, 1\]"),
        ({"prob": [-0.1, 0.5]}, r"prob holds values outside \[0, 1\]"),
        ({"prob": ["a", "b"]}, "prob holds something that is not a number"),
        ({"review_score": [1, math.inf]}, "review_score holds NaN or infinity"),
        ({"review_score": [math.inf, -math.inf]}, "review_score holds NaN or infinity"),
        ({"review_score": [1]}, "label 2, review_score 1"),
        ({"alpha": 1.1}, r"alpha is 1.1; it must lie in \[0, 1\]"),
        ({"alpha": -0.1}, "alpha"),
        ({"alpha": math.nan}, "alpha"),
        ({"weight": [1, -1]}, "weight holds negative values"),  # π < 0
        ({"weight": [1, math.inf]}, "weight holds NaN or infinity"),  # π = 0
        ({"weight": [1e308, 1e308]}, "weight holds values that are not 0"),
        ({"weight": [1, 5e-324]}, "weight holds values that are not 0"),
        ({"weight": [1]}, "weight 1"),
        ({"threshold": 2}, "threshold"),
    ],
)
def test_input_that_does_not_fit_is_refused(metric, change, told):
    with pytest.raises(MetricInputError, match=told):
        metric(**(GOOD | change))


@pytest.mark.parametrize("metric", ALL_FIVE)
def test_an_empty_day_and_weightless_rows_have_no_value(metric):
    assert metric([], [], [], 0.5) is None
    assert metric(**GOOD, weight=[0, 0]) is None


@pytest.mark.parametrize("metric", ALL_FIVE)
def test_rows_without_weight_are_not_there(metric):
    more = {"label": [0, 1, 1], "prob": [0.2, 0.7, 0.1], "review_score": [1, 2, 9], "alpha": 0.5}
    assert metric(**more, weight=[1, 1, 0]) == metric(**GOOD)


def test_one_class_and_no_errors_have_no_value():
    assert c.oc_auroc([1, 1], [0.2, 0.7], [1, 2], 0.5) is None
    assert c.oc_auroc([0, 0], [0.2, 0.7], [1, 2], 0.5) is None
    assert c.oc_auprc([0, 0], [0.2, 0.7], [1, 2], 0.5) is None
    assert c.oc_auprc([1, 1], [0.2, 0.7], [1, 2], 0.5) == 1
    assert c.review_effectiveness([0, 1], [0.2, 0.7], [1, 2], 0.5) is None
    assert c.review_efficiency([0, 1], [0.2, 0.7], [1, 2], 0.5) == 0


def test_a_capacity_of_less_than_a_comment_reviews_none():
    assert c.review_efficiency([0, 1], [0.2, 0.7], [1, 2], 0.49) is None


@pytest.mark.parametrize("metric", ALL_FIVE)
def test_soft_labels_are_cut_at_the_threshold_that_is_named(metric):
    soft, prob, score = np.array([0.0, 0.2, 0.7, 0.9]), [0.1, 0.6, 0.4, 0.8], [4, 3, 2, 1]
    for cut in (0, 0.2, 0.7):
        hard = metric((soft > cut).astype(int), prob, score, 0.25)
        assert metric(soft, prob, score, 0.25, label_threshold=cut) == hard
    assert metric([0, 1], prob[:2], score[:2], 0.5, label_threshold=0.7) == metric(
        [0, 1], prob[:2], score[:2], 0.5
    )


def test_the_curve_takes_soft_labels_and_refuses_as_the_metrics_do():
    table = c.collaboration_curve([0.1, 0.9], [0.2, 0.7], label_threshold=0.5)
    assert table.equals(c.collaboration_curve([0, 1], [0.2, 0.7]))
    for change, told in (
        ({"label": [0.1, 0.9]}, "label_threshold"),
        ({"alphas": [0.1, 2]}, "alpha is 2"),
        ({"strategies": ["chance"]}, "strategy is 'chance'"),
        ({"interpolation": "linear"}, "interpolation is 'linear'"),
        ({"toxic_share": 2}, "toxic_share"),
    ):
        with pytest.raises(MetricInputError, match=told):
            c.collaboration_curve(**({"label": [0, 1], "prob": [0.2, 0.7]} | change))


@pytest.mark.parametrize(
    ("label", "missing"),
    [([], c.METRICS), ([1, 1], ["oc_auroc"]), ([0, 0], ["oc_auroc", "oc_auprc"])],
)
def test_what_has_no_value_is_missing_in_the_curve(label, missing):
    curve = c.collaboration_curve(label, [0.9] * len(label), alphas=[0.5])
    empty = set(curve.columns[curve.isna().all()])
    assert empty == set(missing) | ({"review_effectiveness"} if label == [1, 1] else set())


def test_an_unknown_interpolation_is_refused():
    with pytest.raises(MetricInputError, match="interpolation"):
        c.oc_auprc([1], [0.5], [1], 0.5, interpolation="linear")
