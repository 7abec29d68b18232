"""Estimates of all comments by their scores: exact masses, the check by the design, history."""

from dataclasses import replace

import numpy as np
import pytest
from reviewed_days import community, labelled_by_people, reviewed_day

from modwatch.statistics import review_scores
from modwatch.statistics.label_truth import ErrorEvidence, GivenLabels, KnownErrors
from modwatch.statistics.live.census import OWN_PART, Census, reconciled
from modwatch.statistics.live.estimator import MetricEstimate
from modwatch.statistics.live.labelled_day import Confirmations
from modwatch.statistics.live.measure import Measured, measure_days
from modwatch.statistics.live.sample import Sample

ASKED = {
    "review_fractions": [0.1],
    "strategies": ["uncertainty"],
    "known": ErrorEvidence.sharing(0, 0),
}


def reviewed(rng, prevalence=0.05, *, size=5000, odds=1.0):
    """Return a day that people labelled, and its true labels; odds are above the score's."""
    prob, label = community(rng, size, prevalence)
    label |= rng.random(size) < np.clip((odds - 1) * prob, 0, 1)
    day = labelled_by_people(rng, reviewed_day(rng, prob, label), 0.13, rates=(0.005, 0.05))
    return day, label


def stream(seed, days, **more):
    rng = np.random.default_rng(seed)
    return [reviewed(rng, **more)[0] for _ in range(days)]


@pytest.mark.parametrize("strategy", ["uncertainty", "toxicity", "hybrid"])
def test_rows_represent_every_part_of_the_comments_exactly(strategy):
    days = stream(1, 3)
    census = Census(days)
    whole = census.everything()
    assert census.masses(whole).sum() == pytest.approx(15_000)
    for threshold in (0.2, 0.5):
        flagged = census.flagged(threshold)
        expected = sum((day.prob > threshold).sum() for day in days)
        assert census.masses(flagged).sum() == pytest.approx(expected)
    alphas = [0.03, 0.1, 0.4]
    for alpha, review in zip(alphas, census.reviewed(strategy, alphas, threshold=0.5), strict=True):
        domain = review.domain
        assert census.masses(domain).sum() == pytest.approx(domain.mass)
        assert census.masses(review.at_stake).sum() == pytest.approx(15_000 - domain.mass)
        highest = [
            np.argsort(-review_scores(day.prob, strategy))[: int(alpha * 5000)] for day in days
        ]
        flagged = sum((day.prob[top] > 0.5).sum() for day, top in zip(days, highest, strict=True))
        assert census.masses(domain)[census.prob > 0.5].sum() == pytest.approx(flagged)


def test_the_value_by_score_counts_and_the_interval_holds_a_part_of_that_by_the_design():
    made = {
        "metric": "accuracy", "strategy": None, "alpha": None, "n": 9, "effective_n": 9.0,
        "completion": 1.0,
    }  # fmt: skip

    def estimate(value, low, high):
        return MetricEstimate.from_interval(value, (low, high), **made)

    sampled, modelled = estimate(0.9, 0.8, 0.95), estimate(0.85, 0.83, 0.87)
    inner = 0.9 - OWN_PART * 0.1, 0.9 + OWN_PART * 0.05
    assert reconciled(sampled, modelled).known == pytest.approx((0.85, 0.83, inner[1]))
    inside = estimate(0.9, 0.895, 0.905)
    assert reconciled(sampled, inside).known == pytest.approx((0.9, *inner))
    assert reconciled(sampled, estimate(0.9, 0.7, 0.98)).known == (0.9, 0.7, 0.98)
    apart = estimate(0.7, 0.68, 0.72)
    assert reconciled(sampled, apart).known == (0.9, 0.68, 0.95)
    nothing = MetricEstimate.insufficient("no label", **made)
    assert reconciled(nothing, modelled).known == modelled.known
    assert reconciled(nothing, modelled).reason == ""
    assert reconciled(sampled, nothing) == sampled


@pytest.fixture
def by_score_alone(monkeypatch):
    """Intervals that need not hold a part of that by the design."""
    monkeypatch.setattr(f"{Census.__module__}.OWN_PART", 0.0)


@pytest.mark.usefixtures("by_score_alone")
def test_without_follow_ups_missing_labels_may_be_toxic_more_often_than_others():
    rng = np.random.default_rng(6)
    (day, label), earlier = reviewed(rng), Sample(stream(5, 20)).given
    given = day.labelled & (rng.random(label.size) < np.where(label == 1, 0.7, 0.95))
    partly = without(day, ~given)
    # A fourth of the earlier labels were answers to follow-ups, which were like the others.
    followed = replace(earlier, group=earlier.group + 4 * (np.arange(earlier.group.size) % 4 == 0))

    def prevalence(day, history):
        table = measure_days([day], history=history, **ASKED).set_index("metric")
        return table.loc["prevalence", ["low", "high"]].astype(float)

    complete, unknown, known = (
        prevalence(*asked) for asked in ((day, earlier), (partly, earlier), (partly, followed))
    )
    assert unknown["low"] < label.mean() < unknown["high"]
    widths = [found["high"] - found["low"] for found in (complete, known, unknown)]
    # The ends are quantiles of 1,000 draws, whose standard error is 2.5 % of a width.
    assert 0.7 * widths[0] < widths[1] < 1.3 * widths[0] < widths[2]


def without(day, gone):
    """Return the day without the labels of some comments."""
    labelled = day.labelled & ~gone
    kept = labelled[day.confirmations.row]
    given = Confirmations(row=day.confirmations.row[kept], label=day.confirmations.label[kept])
    return replace(day, labelled=labelled, confirmations=given)


@pytest.mark.parametrize(
    "case", ["one person", "no label in the slice", "gold that all fail", "equal scores"]
)
def test_bad_input_widens_the_intervals_or_leaves_no_figure(case):
    rng = np.random.default_rng(6)
    (day, label), known = reviewed(rng), ErrorEvidence()
    usual = measure_days([day], **ASKED | {"known": known}).set_index("metric")
    if case == "one person":
        day = replace(day, confirmations=Confirmations.none())
    if case == "no label in the slice":
        day = without(day, day.stratum > 0)
    if case == "gold that all fail":
        known = replace(known, false_negative=KnownErrors(answers=200, wrong=200, shared=0.3))
    if case == "equal scores":
        alike = reviewed_day(rng, np.full(label.size, 0.3), label)
        day = labelled_by_people(rng, alike, 0.13, rates=(0.005, 0.05))
    found = measure_days([day], **ASKED | {"known": known}).set_index("metric")
    truth = {"accuracy": ((day.prob > 0.5) == label).mean(), "prevalence": label.mean()}
    for metric, value in truth.items():
        row, before = found.loc[metric], usual.loc[metric]
        if row["status"] == "ok":
            assert row["low"] <= value <= row["high"]
            assert row["high"] - row["low"] > before["high"] - before["low"]
    assert (found.loc["accuracy", "status"] == "ok") == (case != "no label in the slice")


@pytest.mark.usefixtures("by_score_alone")
def test_a_single_day_has_figures_and_earlier_labels_narrow_them():
    (day,) = stream(2, 1, prevalence=0.01)
    history = Sample(stream(3, 30, prevalence=0.01)).given
    options = {"threshold": 0.5, **ASKED}
    known = options.pop("known")
    (alone, own_alone), (both, own) = (
        [
            table.set_index("metric")
            for table in Measured.from_days([day], known, history=earlier).tables(**options)
        ]
        for earlier in (None, history)
    )
    assert own_alone["value"].isna()["oc_auroc"]
    assert both.loc["oc_auroc", "status"] == "ok"
    width = (table["high"] - table["low"] for table in (alone, both))
    narrower = next(width) / next(width)
    assert narrower[["accuracy", "prevalence", "oc_accuracy"]].min() > 1.5
    assert own_alone["value"]["accuracy"] == pytest.approx(own["value"]["accuracy"], abs=0.01)


def test_labels_of_another_stream_are_left():
    """Earlier comments were toxic three times as often at the same score."""
    rng = np.random.default_rng(4)
    found = [reviewed(rng) for _ in range(5)]
    days, truth = [day for day, _ in found], np.mean([label.mean() for _, label in found])
    history = Sample(stream(5, 30, odds=3.0)).given
    table = measure_days(days, history=history, **ASKED).set_index("metric")
    assert table.loc["prevalence", "low"] < truth < table.loc["prevalence", "high"]


def test_earlier_labels_alone_are_no_labels():
    (day,) = stream(8, 1)
    rows = np.empty(0, np.int64)
    bare = replace(
        day,
        labelled=np.zeros(5000, bool),
        confirmations=replace(day.confirmations, row=rows, label=rows),
    )
    nothing = np.zeros(0)
    empty = GivenLabels(prob=nothing, group=rows, given=rows, toxic=rows)
    for history in (Sample(stream(9, 3)).given, empty):
        table = measure_days([bare], history=history, **ASKED).set_index("metric")
        assert table.loc["accuracy", "status"] == "insufficient"
