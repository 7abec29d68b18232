"""The sensitivity analysis: what it says, what it leaves alone, and that its intervals hold."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from modwatch.errors import MetricInputError
from modwatch.metrics.corrections import FORMULAS, Totals
from modwatch.metrics.estimate import COLUMNS as ESTIMATE_COLUMNS
from modwatch.metrics.estimate import measure_days
from modwatch.metrics.labelled import fully_labelled
from modwatch.metrics.moderator_error import (
    GoldAnswers,
    LabelPairs,
    assumed_error,
    error_rate,
    gold_error,
    moderator_error,
)
from modwatch.metrics.rogan_gladen import (
    ASSUMED_RATES,
    COLUMNS,
    NOT_CORRECTED,
    corrected_rows,
    corrected_table,
    moderator_error_table,
)

TOTALS = Totals(comments=1000, flagged=100, top=90, strategy="uncertainty")


def row(metric, value=None, low=None, high=None, strategy=None, alpha=None):
    status = "insufficient" if value is None else "ok"
    numbers = {"value": value, "low": value if low is None else low, "high": high or value}
    about = {"metric": metric, "strategy": strategy, "alpha": alpha, "n": 50, "effective_n": 40.0}
    return {**about, **numbers, "status": status, "reason": "no label" if value is None else ""}


def table_of(*rows):
    frame = pd.DataFrame(rows)[list(ESTIMATE_COLUMNS)]
    return frame.astype(dict.fromkeys(("alpha", "value", "low", "high"), "Float64"))


def agreeing(differ, n=200):
    first = np.zeros(n)
    return LabelPairs(
        first=first,
        second=(np.arange(n) < differ) * 1.0,
        top=np.arange(n) % 2 == 0,
        weight=first + 1,
    )


@pytest.fixture(scope="module")
def measured():
    """Return the estimates of a day of which every label is known, and its totals."""
    rng = np.random.default_rng(0)
    prob = rng.beta(0.5, 2, 1000)
    day = fully_labelled(prob, (rng.random(1000) < prob).astype(int))
    table = measure_days([day], alphas=[0.1, 0.2], strategies=["uncertainty", "toxicity"])
    return table, Totals.of([day], threshold=0.5, strategy="uncertainty")


def test_no_error_changes_nothing(measured):
    table, totals = measured
    found = corrected_table(table, assumed_error(0.0), totals)
    same = found[found["status"] == "ok"]
    assert set(same["metric"]) == set(FORMULAS)
    for one, other in (
        ("value", "corrected"),
        ("low", "corrected_low"),
        ("high", "corrected_high"),
    ):
        assert same[one].to_numpy(float) == pytest.approx(same[other].to_numpy(float), abs=1e-9)


def test_intervals_without_error_are_those_of_the_estimates():
    rows = [row("accuracy", 0.9, 0.85, 0.97), row("prevalence", 0.02, 0.01, 0.05)]
    found = corrected_table(table_of(*rows), assumed_error(0.0), TOTALS)
    for one, other in (("low", "corrected_low"), ("high", "corrected_high")):
        assert found[one].to_numpy(float) == pytest.approx(found[other].to_numpy(float), abs=1e-4)


def test_every_metric_is_corrected_or_said_not_to_be(measured):
    table, totals = measured
    metrics = set(table["metric"]) - {"completion"}
    assert metrics == FORMULAS.keys() | NOT_CORRECTED.keys()
    found = corrected_table(table, assumed_error(0.01), totals)
    assert len(found) == len(table) - 1
    left = found[found["status"] == "not_corrected"]
    assert set(left["metric"]) == set(NOT_CORRECTED)
    assert left["corrected"].isna().all()
    assert (left["note"] != "").all()
    inside = found[found["status"] == "ok"]
    assert (inside["corrected_low"] <= inside["corrected"]).all()
    assert (inside["corrected"] <= inside["corrected_high"]).all()


def test_values_beyond_the_range_are_cut_and_said_so():
    (found,) = corrected_table(
        table_of(row("prevalence", 0.01, 0.005, 0.015)), assumed_error(0.02), TOTALS
    ).to_dict("records")
    assert (found["corrected"], found["status"]) == (0, "ok")
    assert found["note"] == "-0.01042 before it was cut to [0, 1]"
    assert found["value"] == 0.01


def test_what_errors_could_explain_whole_is_insufficient():
    rows = [row("auroc", 0.8), row("prevalence", 0.01), row("recall_flagged", 0.0)]
    found = corrected_table(
        table_of(*rows, row("precision_flagged", 0.0)), assumed_error(0.02), TOTALS
    ).set_index("metric")
    for metric in ("auroc", "recall_flagged"):
        assert found.loc[metric, "status"] == "insufficient"
        assert "errors could explain" in found.loc[metric, "note"]
        assert found.loc[metric, ["corrected", "corrected_low"]].isna().all()


def test_insufficient_estimates_stay_so():
    rows = [row("prevalence"), row("auroc", 0.8), row("review_effectiveness", 0.5, alpha=0.1)]
    found = corrected_table(table_of(*rows), assumed_error(0.02), TOTALS).set_index("metric")
    assert set(found["status"]) == {"insufficient"}
    assert found["note"].tolist() == [
        "no label",
        "needs prevalence, which is insufficient",
        "needs review_efficiency, which is insufficient",
    ]
    assert found["corrected"].isna().all()


def test_the_table_holds_the_measured_and_the_assumed_rates(measured):
    table, totals = measured
    found = moderator_error_table(table, agreeing(8), totals)
    assert tuple(found.columns) == COLUMNS
    rates = found.drop_duplicates(["source", "error_rate"])[["source", "error_rate"]]
    expected = error_rate(np.zeros(200), (np.arange(200) < 8) * 1.0).value
    assert rates.to_numpy().tolist() == [
        ["measured", expected],
        *(["assumed", rate] for rate in ASSUMED_RATES),
    ]
    without = moderator_error_table(table, agreeing(0, n=10), totals)
    assert set(without["source"]) == {"assumed"}
    assert moderator_error_table(table, agreeing(8), totals).equals(found)


def test_other_sources_stand_by_themselves_and_only_where_they_suffice(measured):
    table, totals = measured
    gold = GoldAnswers(toxic=50, toxic_right=45, other=50, other_right=50)
    few = GoldAnswers(toxic=5, toxic_right=5, other=5, other_right=5)
    others = {
        "retest": moderator_error(agreeing(30)),
        "gold": gold_error(gold),
        "few": gold_error(few),
    }
    found = moderator_error_table(table, agreeing(8), totals, others=others)
    rates = found.groupby("source", sort=False)["error_rate"].first()
    assert rates.index.tolist() == ["measured", "retest", "gold", "assumed"]
    assert rates["gold"] == 0.05
    without = moderator_error_table(table, agreeing(8), totals)
    kept = found[found["source"].isin(["measured", "assumed"])].reset_index(drop=True)
    assert kept.equals(without)
    same = corrected_table(table, assumed_error(0.05), totals)["corrected"]
    of_gold = found[found["source"] == "gold"]["corrected"].reset_index(drop=True)
    assert of_gold.equals(same)


def test_the_rows_beside_the_estimates_are_the_deployed_ones(measured):
    table, totals = measured
    found = corrected_rows(table, agreeing(8), totals, alpha=0.2)
    assert found.columns.tolist() == table.columns.tolist()
    assert found.dtypes.to_dict() == table.dtypes.to_dict()
    setting = found[["metric", "strategy", "alpha"]].astype(object)
    assert setting.where(setting.notna(), "").to_numpy().tolist() == [
        ["moderator_error", "", ""],
        ["accuracy_corrected", "", ""],
        ["prevalence_corrected", "", ""],
        ["oc_accuracy_corrected", "uncertainty", 0.2],
        ["review_efficiency_corrected", "uncertainty", 0.2],
    ]
    assert (found["status"] == "ok").all()
    assert found["n"].tolist()[0] == 200
    naive = table.set_index("metric").loc["accuracy", "value"]
    error = found["value"][0]
    assert found["value"][1] == pytest.approx((naive - error) / (1 - 2 * error))


def test_without_enough_pairs_only_their_lack_is_reported(measured):
    table, totals = measured
    found = corrected_rows(table, agreeing(0, n=12), totals, alpha=0.2)
    assert len(found) == 1
    (only,) = found.to_dict("records")
    assert (only["metric"], only["status"], only["n"]) == ("moderator_error", "insufficient", 12)
    assert only["reason"] == "12 pairs of labels; 30 are needed"
    assert found[["value", "low", "high", "alpha"]].isna().all(axis=None)


def test_an_unknown_rate_corrects_nothing():
    error = moderator_error(agreeing(0, n=10))
    with pytest.raises(MetricInputError, match=r"10 pairs of labels.*assume one"):
        corrected_table(table_of(row("accuracy", 0.9)), error, TOTALS)


def sampled_day(rng, error, size=2000, reviewed=100, sampled=400, pairs=150):
    """Return estimates from labels with errors, their pairs, and the true values.

    The reviewed are labelled whole; accuracy and prevalence come from a plain random sample.
    """
    truth, flagged = rng.random(size) < 0.1, rng.random(size) < 0.1
    flagged |= truth & (rng.random(size) < 0.7)
    label = truth ^ (rng.random(size) < error)
    wrong, seen_wrong = flagged != truth, flagged != label
    some = rng.choice(size, sampled, replace=False)
    efficiency = float(seen_wrong[:reviewed].mean())
    rows = [row("review_efficiency", efficiency, strategy="uncertainty", alpha=reviewed / size)]
    for metric, event in (("accuracy", ~seen_wrong), ("prevalence", label)):
        found = stats.binomtest(int(event[some].sum()), sampled).proportion_ci(method="exact")
        rows.append(row(metric, float(event[some].mean()), found.low, found.high))
    again = rng.choice(size, pairs, replace=False)
    second = truth[again] ^ (rng.random(pairs) < error)
    both = LabelPairs(
        first=label[again], second=second, top=again < reviewed, weight=np.ones(pairs)
    )
    true = [wrong[:reviewed].mean(), 1 - wrong.mean(), truth.mean()]
    return table_of(*rows), both, true


@pytest.mark.parametrize("error", [0.02, 0.1])
def test_a_planted_error_is_taken_out_and_the_interval_covers(error):
    rng = np.random.default_rng(11)
    totals = Totals(comments=2000, flagged=300, top=100, strategy="uncertainty")
    naive, found, covered = [], [], []
    for _ in range(150):
        table, pairs, true = sampled_day(rng, error)
        new = corrected_table(table, moderator_error(pairs), totals)
        naive.append(table["value"].to_numpy(float) - true)
        found.append(new["corrected"].to_numpy(float) - true)
        low, high = (new[name].to_numpy(float) for name in ("corrected_low", "corrected_high"))
        covered.append((low <= true) & (true <= high))
    spread = np.std(found, axis=0)
    assert (np.abs(np.mean(naive, axis=0)) > error / 2).all()
    assert (np.abs(np.mean(found, axis=0)) < spread / 5).all()
    assert (np.mean(covered, axis=0) >= 0.93).all()
