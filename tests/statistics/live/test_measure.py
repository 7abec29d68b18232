"""Estimates from partial labels: exact where all is known, honest where little is."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from modwatch.common.errors import MetricInputError
from modwatch.statistics.collaboration import collaborative, model_metrics
from modwatch.statistics.collaboration.review_strategies import review_scores
from modwatch.statistics.intervals import mid_p
from modwatch.statistics.live.labelled_day import LabelledDay, fully_labelled
from modwatch.statistics.live.measure import COLUMNS, measure_days, reliability_estimates
from modwatch.statistics.live.sample import Sample


def cell(table, metric, strategy=None, alpha=None):
    """Return the row of one estimate."""
    found = table[table["metric"] == metric]
    if strategy:
        found = found[(found["strategy"] == strategy) & (found["alpha"] == alpha)]
    assert len(found) == 1
    return found.iloc[0]


def test_where_all_is_known_every_metric_is_the_plain_one(make_community):
    prob, label = make_community(np.random.default_rng(1), 500, 0.1)
    prob = prob.round(2)
    truth = measure_days([fully_labelled(label, prob)], review_fractions=[0.05])
    plain = {
        "accuracy": model_metrics.accuracy,
        "auroc": model_metrics.auroc,
        "auprc": model_metrics.auprc,
        "recall_flagged": model_metrics.recall,
        "precision_flagged": model_metrics.precision,
        "brier": model_metrics.brier_score,
        "ece": model_metrics.expected_calibration_error,
        "calibration_auroc": model_metrics.calibration_auroc,
        "calibration_auprc": model_metrics.calibration_auprc,
    }
    for name, metric in plain.items():
        assert cell(truth, name)["value"] == pytest.approx(metric(label, prob), abs=1e-12)
    for strategy in ("uncertainty", "toxicity"):
        score = review_scores(prob, strategy)
        for name in collaborative.METRICS:
            expected = getattr(collaborative, name)(label, prob, score, review_fraction=0.05)
            assert cell(truth, name, strategy, 0.05)["value"] == pytest.approx(expected, abs=1e-12)
    known = truth[truth["status"] == "ok"]
    assert (known["high"] - known["low"]).max() == pytest.approx(0, abs=1e-12)


def test_efficiency_of_the_routed_top_is_exact(make_community, review):
    rng = np.random.default_rng(2)
    prob, label = make_community(rng, 2000, 0.05)
    table = measure_days([review(rng, prob, label)], review_fractions=[0.05])
    row = cell(table, "review_efficiency", "uncertainty", 0.05)
    score = review_scores(prob, "uncertainty")
    truth = collaborative.review_efficiency(label, prob, score, review_fraction=0.05)
    assert row["value"] == row["low"] == row["high"] == pytest.approx(truth)
    assert row["n"] == 100


def test_no_error_seen_still_leaves_an_interval(review):
    rng = np.random.default_rng(3)
    prob = np.linspace(0.01, 0.2, 1000)
    row = cell(measure_days([review(rng, prob, np.zeros(1000, int))]), "accuracy")
    assert row["value"] == row["high"] == 1
    assert 0.6 < row["low"] < 0.8  # ten labels stand for nine hundred comments: ½(1−q)¹⁰ = 2.5 %


def test_a_stratum_without_labels_makes_the_estimate_insufficient(make_community, review):
    rng = np.random.default_rng(4)
    day = review(rng, *make_community(rng, 2000, 0.05))
    third = replace(day, labelled=day.labelled & (day.stratum != 3))
    row = cell(measure_days([third]), "accuracy")
    assert row["status"] == "insufficient"
    assert "stratum 3" in row["reason"]
    assert all(row.isna()[["value", "low", "high"]])
    top = cell(
        measure_days([third], review_fractions=[0.05]), "review_efficiency", "uncertainty", 0.05
    )
    assert top["status"] == "ok"  # the top was reviewed whatever happened elsewhere


def test_in_a_window_another_day_stands_in_for_an_empty_stratum(make_community, review):
    rng = np.random.default_rng(5)
    first, second = (review(rng, *make_community(rng, 2000, 0.05)) for _ in range(2))
    first = replace(first, labelled=first.labelled & (first.stratum != 3))
    assert cell(measure_days([first, second]), "accuracy")["status"] == "ok"
    blank = replace(first, labelled=first.labelled & (first.stratum == 0))
    row = cell(measure_days([second, blank]), "accuracy")
    assert row["status"] == "insufficient"
    assert "day 2" in row["reason"]


def test_an_empty_day_and_an_unrouted_one_have_no_numbers():
    empty = fully_labelled(np.empty(0), np.empty(0))
    unrouted = LabelledDay(
        prob=np.array([0.2, 0.9]),
        stratum=np.array([-1, -1]),
        label=np.array([0, 0]),
        labelled=np.zeros(2, bool),
        population=np.array([0, 2]),
        sample=np.array([0, 0]),
    )
    for days in ([], [empty], [unrouted]):
        table = measure_days(days)
        assert (table["status"] == "insufficient").all()
        assert table["value"].isna().all()
        assert (table["reason"] != "").all()
    assert (measure_days([empty, fully_labelled([1], [0.9])])["n"] <= 1).all()


def test_the_table_is_that_of_measurements_and_repeats_itself(make_community, review):
    rng = np.random.default_rng(6)
    day = review(rng, *make_community(rng, 1000, 0.1), completion=0.9)
    table = measure_days([day], seed=3)
    assert tuple(table.columns) == COLUMNS
    assert table.equals(measure_days([day], seed=3))
    assert not table.duplicated(["metric", "strategy", "alpha"]).any()
    numbers = table[table["status"] == "ok"]
    assert (numbers["low"] <= numbers["value"]).all()
    assert (numbers["value"] <= numbers["high"]).all()
    assert numbers["low"].min() >= 0
    assert numbers["high"].max() <= 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"prob": np.array([0.5, 0.5])}, "inconsistent numbers"),
        ({"prob": np.array([0.5, 0.5, 2.0])}, r"\[0, 1\]"),
        ({"label": np.array([1, 0, 7])}, "0 and 1"),
        ({"population": np.array([1, 3])}, "counts 4 comments, but 3"),
        ({"stratum": np.array([0, 1, 5])}, "has no stratum"),
        ({"stratum": np.array([1, 1, 1])}, "more labels than sample"),
        ({"population": np.array([1])}, "inconsistent numbers"),
    ],
)
def test_a_day_that_contradicts_its_design_is_refused(change, message):
    good = {
        "prob": np.array([0.9, 0.2, 0.1]),
        "stratum": np.array([0, 1, 1]),
        "label": np.array([1, 0, 0]),
        "labelled": np.ones(3, bool),
        "population": np.array([1, 2]),
        "sample": np.array([1, 2]),
    }
    LabelledDay(**good)
    with pytest.raises(MetricInputError, match=message):
        LabelledDay(**(good | change))


@pytest.mark.simulation
def test_intervals_cover(make_community, review):
    rng = np.random.default_rng(8)
    asked = {"review_fractions": [0.1], "strategies": ["uncertainty"]}
    names = ["accuracy", "oc_accuracy", "review_efficiency", "oc_auroc"]
    hits = []
    for seed in range(25):
        days = [make_community(rng, 1000, 0.2, over_confident=True) for _ in "ab"]
        routed = [review(rng, *day, completion=0.9, slice_share=0.3) for day in days]
        estimate = measure_days(routed, seed=seed, **asked).set_index("metric").loc[names]
        truth = measure_days([fully_labelled(label, prob) for prob, label in days], **asked)
        value = truth.set_index("metric").loc[names, "value"]
        inside = ((estimate["low"] <= value) & (value <= estimate["high"])).astype(float)
        hits.append(inside.where(estimate["status"] == "ok").to_numpy(float))
    assert np.isfinite(hits).mean(axis=0).min() >= 0.4  # areas of two small days may be too vague
    assert np.nanmean(hits, axis=0).min() >= 0.8  # nominal 0.95; the benchmark counts more exactly


@pytest.mark.simulation
def test_totals_are_unbiased_over_draws(make_community, review):
    rng = np.random.default_rng(9)
    prob, label = make_community(rng, 500, 0.2, over_confident=True)
    wrong, errors = (prob > 0.5) != label, []
    for _ in range(300):
        day = review(rng, prob, label, completion=0.8, slice_share=0.5, minimum=8)
        sample = Sample([day])
        seen = ((sample.prob > 0.5) != sample.label).astype(float)
        errors.append(sample.total(seen, sample.everything()).value - wrong.sum())
    assert abs(np.mean(errors)) < 4 * np.std(errors) / np.sqrt(len(errors))


def test_the_reliability_diagram_of_a_known_day_is_the_plain_curve(make_community):
    prob, label = make_community(np.random.default_rng(10), 400, 0.3)
    found = reliability_estimates([fully_labelled(label, prob)], n_bins=10)
    plain = model_metrics.reliability_curve(label, prob, n_bins=10)
    for name in ("lower", "upper", "mean_prob", "positive_rate", "count"):
        here, there = (table[name].to_numpy(float, na_value=-1) for table in (found, plain))
        assert here == pytest.approx(there, abs=1e-12)
    known = found[found["status"] == "ok"].astype({"positive_rate": float, "count": float})
    for row in known.to_dict("records"):  # chance in the labels themselves is left
        expected = mid_p(row["positive_rate"] * row["count"], row["count"])
        assert (row["low"], row["high"]) == pytest.approx(expected, abs=1e-9)


def test_a_bin_without_labels_has_no_rate_and_few_labels_a_wide_one(make_community, review):
    rng = np.random.default_rng(11)
    day = review(rng, *make_community(rng, 2000, 0.02))
    bins = reliability_estimates([day], n_bins=10)
    assert set(bins["status"]) == {"ok", "insufficient"}
    assert (
        bins.loc[bins["status"] == "insufficient", ["positive_rate", "low", "high"]]
        .isna()
        .all(axis=None)
    )
    ok = bins[bins["status"] == "ok"]
    assert (ok["low"] <= ok["positive_rate"]).all()
    assert (ok["positive_rate"] <= ok["high"]).all()
    assert reliability_estimates([]).empty


def test_weights_fit_the_known_scores(make_community, review):
    """Post-strata bring the weighted rows to the number of comments near their score."""
    rng = np.random.default_rng(12)
    days = [review(rng, *make_community(rng, 4000, 0.2), slice_share=0.5) for _ in range(2)]
    sample = Sample(days)
    assert sample.weight.sum() == pytest.approx(sample.size)
    flagged = sample.flagged(0.5)
    assert sample.weight[sample.prob > 0.5].sum() == pytest.approx(flagged.mass)
    assert (sample.weight >= 1).all()


def test_scores_that_say_nothing_have_areas_all_the_same(make_community, review):
    """Constant scores: AUROC is one half, and one more positive does not change that."""
    label = np.array([0, 1, 0, 1, 1, 0])
    score = np.full(label.size, 0.25)
    table = measure_days(
        [fully_labelled(label, np.full(label.size, 0.5))], review_fractions=[0, 0.5]
    )
    for name, metric in (("auroc", collaborative.oc_auroc), ("auprc", collaborative.oc_auprc)):
        assert cell(table, name)["value"] == pytest.approx(0.5)
        for alpha in (0, 0.5):
            found = cell(table, f"oc_{name}", "uncertainty", alpha)["value"]
            assert found == pytest.approx(metric(label, score, score, review_fraction=alpha))
    rng = np.random.default_rng(14)
    _, label = make_community(rng, 2000, 0.3)
    row = cell(measure_days([review(rng, np.full(2000, 0.4), label)]), "auroc")
    assert (row["value"], row["low"], row["high"]) == pytest.approx((0.5, 0.5, 0.5), abs=1e-9)


@pytest.mark.parametrize("toxic", [0, 1])
def test_rounding_carries_no_estimate_past_its_ends(review, toxic):
    """All right or all wrong: sums of weights that do not add up to the last digit."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        sizes = 350 + 7 * seed, 133
        days = [
            review(rng, np.zeros(n), np.full(n, toxic), completion=0.9, slice_share=0.9)
            for n in sizes
        ]
        bins = reliability_estimates(days).rename(columns={"positive_rate": "value"})
        found = pd.concat([measure_days(days), bins])
        ends = found.loc[found["status"] == "ok", ["low", "value", "high"]].to_numpy(float)
        assert ends.min() >= 0
        assert ends.max() <= 1
        assert (np.diff(ends, axis=1) >= 0).all()


def test_an_area_that_may_lie_anywhere_is_not_reported(make_community, review):
    rng = np.random.default_rng(14)
    day = review(rng, *make_community(rng, 1500, 0.05))
    row = cell(measure_days([day]), "auroc")
    assert row["status"] == "insufficient"
    assert "more labels" in row["reason"]


def test_decisions_are_taken_as_they_are_and_curves_by_the_scores():
    """Six comments, in the head: three decisions contradict prob > 0.5."""
    prob = np.array([0.9, 0.75, 0.7, 0.3, 0.25, 0.1])
    flagged = np.array([True, False, False, True, False, False])
    label = np.array([1, 1, 0, 1, 0, 0])
    day = fully_labelled(label, prob, flagged=flagged)
    table = measure_days([day], review_fractions=[1 / 6], strategies=["toxicity"])
    assert cell(table, "accuracy")["value"] == pytest.approx(5 / 6)  # only 0.75 is wrong
    assert cell(table, "precision_flagged")["value"] == 1
    assert cell(table, "recall_flagged")["value"] == pytest.approx(2 / 3)
    assert cell(table, "auroc")["value"] == pytest.approx(8 / 9)  # 0.3 loses against 0.7
    # 0.9 is reviewed: it was right, so nothing is gained.
    assert cell(table, "oc_accuracy", "toxicity", 1 / 6)["value"] == pytest.approx(5 / 6)
    assert cell(table, "review_efficiency", "toxicity", 1 / 6)["value"] == 0
    # The wrong decision is that on 0.75, as uncertain as 0.25 and more than 0.9 and 0.1.
    assert cell(table, "calibration_auroc")["value"] == pytest.approx(2.5 / 5)
    by_threshold = measure_days([fully_labelled(label, prob)], review_fractions=[1 / 6])
    assert cell(by_threshold, "accuracy")["value"] == pytest.approx(4 / 6)
