"""Two models on the same labels: exact where all is known, and honest where it is not."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from modwatch import statistics as metrics
from modwatch.common.errors import MetricInputError
from modwatch.statistics.live.labelled_day import Confirmations, fully_labelled
from modwatch.statistics.live.measure import measure_days
from modwatch.statistics.live.paired import COLUMNS, METRICS, ModelDays, Setting, compare_days

SETTING = Setting(review_fraction=0.1)


def scored(rng, label, noise):
    """Return probabilities that see the label through noise."""
    logit = -2 + 3 * label + rng.normal(0, noise, label.size)
    return 1 / (1 + np.exp(-logit))


@pytest.fixture(scope="module")
def truth():
    """Labels, and the probabilities of a worse and a better model, of two days."""
    rng = np.random.default_rng(3)
    days = []
    for _ in range(2):
        label = (rng.random(2000) < 0.2).astype(int)
        days.append((label, scored(rng, label, 2.0), scored(rng, label, 1.0)))
    return days


def models(truth, *, confirmations=None):
    days = [replace(fully_labelled(y, old), confirmations=confirmations) for y, old, _ in truth]
    champion = ModelDays(days=days, threshold=0.5)
    return champion, champion.scored_by([new for *_, new in truth], threshold=0.4)


def sampled(day, share, rng):
    """Return the day with labels of a part of the comments, as if that were the slice."""
    size = len(day.prob)
    rows = rng.permutation(size)[: int(share * size)]
    labelled = np.zeros(size, bool)
    labelled[rows] = True
    return replace(
        day,
        stratum=np.where(labelled, 1, -1),
        labelled=labelled,
        population=np.array([0, size]),
        sample=np.array([0, rows.size]),
    )


def test_with_all_labels_the_difference_is_exact(truth):
    table = compare_days(*models(truth), SETTING)
    assert tuple(table.columns) == COLUMNS
    rows = table.set_index("metric")
    label, old, new = (np.concatenate(part) for part in zip(*truth, strict=True))
    exact = {
        "accuracy": [metrics.accuracy(label, old), metrics.accuracy(label, new, threshold=0.4)],
        "auroc": [metrics.auroc(label, old), metrics.auroc(label, new)],
        "auprc": [metrics.auprc(label, old), metrics.auprc(label, new)],
    }
    for metric, (before, after) in exact.items():
        row = rows.loc[metric, ["champion", "challenger", "value", "low", "high"]]
        assert row.tolist() == pytest.approx([before, after, *[after - before] * 3], abs=1e-9)
    for metric in METRICS:
        row = rows.loc[metric]
        assert row["low"] == pytest.approx(row["value"], abs=1e-9)
    for days, column in ((models(truth)[0], "champion"), (models(truth)[1], "challenger")):
        of_one = measure_days(
            days.days, threshold=days.threshold, review_fractions=[0.1], strategies=["uncertainty"]
        ).set_index("metric")
        for metric in METRICS:
            assert rows.loc[metric, column] == pytest.approx(of_one.loc[metric, "value"], abs=1e-9)


def test_what_the_models_decide_differently_is_counted(truth):
    rows = compare_days(*models(truth), SETTING).set_index("metric")
    label, old, new = (np.concatenate(part) for part in zip(*truth, strict=True))
    flags = old > 0.5, new > 0.4
    assert rows.loc["same_decision", "value"] == (flags[0] == flags[1]).mean()
    assert rows.loc["rank_correlation", "value"] == pytest.approx(
        pd.Series(old).corr(pd.Series(new), method="spearman")
    )
    for name, only in (("champion", flags[0] & ~flags[1]), ("challenger", flags[1] & ~flags[0])):
        row = rows.loc[f"flagged_by_{name}_only"]
        assert row[name] == only.sum()
        assert row["value"] == pytest.approx(label[only].mean())
    reviewed = [
        {(day, row) for day, item in enumerate(truth) for row in top(item[at])} for at in (1, 2)
    ]
    assert rows.loc["same_reviewed", "value"] == len(reviewed[0] & reviewed[1]) / len(reviewed[0])


def top(prob):
    return np.argsort(-prob * (1 - prob), kind="stable")[:200]


@pytest.mark.simulation
def test_a_sample_finds_the_better_model_though_people_err(truth):
    rng = np.random.default_rng(5)
    days = []
    for label, old, _ in truth:
        labels = np.where(rng.random((label.size, 2)) < 0.04, 1 - label[:, None], label[:, None])
        day = sampled(fully_labelled(labels[:, 0], old), 0.5, rng)
        rows = np.flatnonzero(day.labelled)[::2]
        confirmed = Confirmations(row=rows, label=labels[rows, 1])
        days.append(replace(day, confirmations=confirmed))
    champion = ModelDays(days=days, threshold=0.5)
    other = champion.scored_by([new for *_, new in truth], threshold=0.4)
    rows = compare_days(champion, other, SETTING).set_index("metric")
    exact = compare_days(*models(truth), SETTING).set_index("metric")
    for metric in ("accuracy", "auroc", "oc_accuracy", "flagged_by_champion_only"):
        assert rows.loc[metric, "low"] <= exact.loc[metric, "value"] <= rows.loc[metric, "high"]
    assert rows.loc["auroc", "low"] > 0
    # Pairs tell more than two separate intervals.
    alone = [
        measure_days(model.days, threshold=model.threshold, review_fractions=[], strategies=[])
        .set_index("metric")
        .loc["auroc"]
        for model in (champion, other)
    ]
    widths = sum(row["high"] - row["low"] for row in alone)
    assert rows.loc["auroc", "high"] - rows.loc["auroc", "low"] < widths


def test_a_model_next_to_itself_differs_in_nothing(truth):
    rng = np.random.default_rng(6)
    days = ModelDays(
        days=[sampled(fully_labelled(y, old), 0.3, rng) for y, old, _ in truth], threshold=0.5
    )
    rows = compare_days(days, days, SETTING).set_index("metric")
    assert (
        rows.loc[["same_decision", "rank_correlation", "same_reviewed"], "value"].tolist()
        == [pytest.approx(1.0)] * 3
    )
    for metric in METRICS:
        assert rows.loc[metric, "value"] == 0
        assert rows.loc[metric, ["low", "high"]].tolist() == [0, 0]
    assert rows.loc["flagged_by_champion_only", "status"] == "insufficient"


def test_where_nothing_is_labelled_nothing_is_stated(truth):
    day = fully_labelled(*truth[0][:2])
    blank = replace(
        day,
        labelled=np.zeros(len(day.prob), bool),
        stratum=np.full(len(day.prob), -1),
        population=np.array([0, len(day.prob)]),
        sample=np.array([0, 50]),
    )
    champion = ModelDays(days=[blank], threshold=0.5)
    other = champion.scored_by([truth[0][2]], threshold=0.5)
    rows = compare_days(champion, other, SETTING).set_index("metric")
    assert (rows.loc[list(METRICS), "status"] == "insufficient").all()
    assert rows.loc["same_decision", "status"] == "ok"


def test_constant_scores_have_no_rank_correlation(truth):
    champion, _ = models(truth)
    flat = champion.scored_by([np.full(2000, 0.3)] * 2, threshold=0.5)
    rows = compare_days(champion, flat, SETTING).set_index("metric")
    assert "rank_correlation" not in rows.index
    assert rows.loc["auroc", "challenger"] == pytest.approx(0.5)


def test_other_days_and_no_comments_are_refused(truth):
    champion, challenger = models(truth)
    day = challenger.days[0]
    other = replace(challenger, days=[replace(day, labelled=~day.labelled), challenger.days[1]])
    with pytest.raises(MetricInputError, match="same days with the same labels"):
        compare_days(champion, other, SETTING)
    none = ModelDays(days=[fully_labelled([], [])], threshold=0.5)
    with pytest.raises(MetricInputError, match="no comment"):
        compare_days(none, none, SETTING)
