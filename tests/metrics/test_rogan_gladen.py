"""Formulas against their definition; the sensitivity analysis and the coverage of its intervals."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from modwatch.errors import MetricInputError
from modwatch.metrics.annotator_error import (
    ErrorRates,
    GoldAnswers,
    LabelPairs,
    annotator_error_rate,
    assumed_error_rates,
    error_rates_from_gold,
    error_rates_from_pairs,
)
from modwatch.metrics.estimation.labelled_day import fully_labelled
from modwatch.metrics.estimation.measure import COLUMNS as ESTIMATE_COLUMNS
from modwatch.metrics.estimation.measure import measure_days
from modwatch.metrics.rogan_gladen import (
    ASSUMED_RATES,
    COLUMNS,
    FORMULAS,
    NOT_CORRECTED,
    PopulationCounts,
    Sampler,
    corrected_rows,
    corrected_table,
    sensitivity_table,
)
from modwatch.metrics.strategies import review_scores

TOTALS = PopulationCounts(comments=1000, flagged=100, top=90, strategy="uncertainty")


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
    day = fully_labelled((rng.random(1000) < prob).astype(int), prob)
    table = measure_days([day], review_fractions=[0.1, 0.2], strategies=["uncertainty", "toxicity"])
    return table, PopulationCounts.of([day], threshold=0.5, strategy="uncertainty")


def test_no_error_changes_nothing(measured):
    table, totals = measured
    found = corrected_table(table, assumed_error_rates(0.0), totals)
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
    found = corrected_table(table_of(*rows), assumed_error_rates(0.0), TOTALS)
    for one, other in (("low", "corrected_low"), ("high", "corrected_high")):
        assert found[one].to_numpy(float) == pytest.approx(found[other].to_numpy(float), abs=1e-4)


def test_every_metric_is_corrected_or_said_not_to_be(measured):
    table, totals = measured
    metrics = set(table["metric"]) - {"completion"}
    assert metrics == FORMULAS.keys() | NOT_CORRECTED.keys()
    found = corrected_table(table, assumed_error_rates(0.01), totals)
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
        table_of(row("prevalence", 0.01, 0.005, 0.015)), assumed_error_rates(0.02), TOTALS
    ).to_dict("records")
    assert (found["corrected"], found["status"]) == (0, "ok")
    assert found["note"] == "-0.01042 before it was cut to [0, 1]"
    assert found["value"] == 0.01


def test_what_errors_could_explain_whole_is_insufficient():
    rows = [row("auroc", 0.8), row("prevalence", 0.01), row("recall_flagged", 0.0)]
    found = corrected_table(
        table_of(*rows, row("precision_flagged", 0.0)), assumed_error_rates(0.02), TOTALS
    ).set_index("metric")
    for metric in ("auroc", "recall_flagged"):
        assert found.loc[metric, "status"] == "insufficient"
        assert "errors could explain" in found.loc[metric, "note"]
        assert found.loc[metric, ["corrected", "corrected_low"]].isna().all()


def test_insufficient_estimates_stay_so():
    rows = [row("prevalence"), row("auroc", 0.8), row("review_effectiveness", 0.5, alpha=0.1)]
    found = corrected_table(table_of(*rows), assumed_error_rates(0.02), TOTALS).set_index("metric")
    assert set(found["status"]) == {"insufficient"}
    assert found["note"].tolist() == [
        "no label",
        "needs prevalence, which is insufficient",
        "needs review_efficiency, which is insufficient",
    ]
    assert found["corrected"].isna().all()


def test_the_table_holds_the_measured_and_the_assumed_rates(measured):
    table, totals = measured
    found = sensitivity_table(table, agreeing(8), totals)
    assert tuple(found.columns) == COLUMNS
    rates = found.drop_duplicates(["source", "error_rate"])[["source", "error_rate"]]
    expected = annotator_error_rate(np.zeros(200), (np.arange(200) < 8) * 1.0).value
    assert rates.to_numpy().tolist() == [
        ["measured", expected],
        *(["assumed", rate] for rate in ASSUMED_RATES),
    ]
    without = sensitivity_table(table, agreeing(0, n=10), totals)
    assert set(without["source"]) == {"assumed"}
    assert sensitivity_table(table, agreeing(8), totals).equals(found)


def test_other_sources_stand_by_themselves_and_only_where_they_suffice(measured):
    table, totals = measured
    gold = GoldAnswers(toxic=50, toxic_right=45, other=50, other_right=50)
    few = GoldAnswers(toxic=5, toxic_right=5, other=5, other_right=5)
    others = {
        "retest": error_rates_from_pairs(agreeing(30)),
        "gold": error_rates_from_gold(gold),
        "few": error_rates_from_gold(few),
    }
    found = sensitivity_table(table, agreeing(8), totals, others=others)
    rates = found.groupby("source", sort=False)["error_rate"].first()
    assert rates.index.tolist() == ["measured", "retest", "gold", "assumed"]
    assert rates["gold"] == 0.05
    without = sensitivity_table(table, agreeing(8), totals)
    kept = found[found["source"].isin(["measured", "assumed"])].reset_index(drop=True)
    assert kept.equals(without)
    same = corrected_table(table, assumed_error_rates(0.05), totals)["corrected"]
    of_gold = found[found["source"] == "gold"]["corrected"].reset_index(drop=True)
    assert of_gold.equals(same)


def test_the_rows_beside_the_estimates_are_the_deployed_ones(measured):
    table, totals = measured
    found = corrected_rows(table, agreeing(8), totals, review_fraction=0.2)
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
    found = corrected_rows(table, agreeing(0, n=12), totals, review_fraction=0.2)
    assert len(found) == 1
    (only,) = found.to_dict("records")
    assert (only["metric"], only["status"], only["n"]) == ("moderator_error", "insufficient", 12)
    assert only["reason"] == "12 pairs of labels; 30 are needed"
    assert found[["value", "low", "high", "alpha"]].isna().all(axis=None)


def test_an_unknown_rate_corrects_nothing():
    error = error_rates_from_pairs(agreeing(0, n=10))
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


@pytest.mark.simulation
@pytest.mark.parametrize("error", [0.02, 0.1])
def test_a_planted_error_is_taken_out_and_the_interval_covers(error):
    rng = np.random.default_rng(11)
    totals = PopulationCounts(comments=2000, flagged=300, top=100, strategy="uncertainty")
    naive, found, covered = [], [], []
    for _ in range(150):
        table, pairs, true = sampled_day(rng, error)
        new = corrected_table(table, error_rates_from_pairs(pairs), totals)
        naive.append(table["value"].to_numpy(float) - true)
        found.append(new["corrected"].to_numpy(float) - true)
        low, high = (new[name].to_numpy(float) for name in ("corrected_low", "corrected_high"))
        covered.append((low <= true) & (true <= high))
    spread = np.std(found, axis=0)
    assert (np.abs(np.mean(naive, axis=0)) > error / 2).all()
    assert (np.abs(np.mean(found, axis=0)) < spread / 5).all()
    assert (np.mean(covered, axis=0) >= 0.93).all()


SIZE, REVIEWED = 400, 40


def metrics(prob, chance, reviewed):
    """Return every metric of comments that are positive with these chances (SIZE,), exactly."""
    flagged = prob > 0.5
    wrong = np.where(flagged, 1 - chance, chance)
    uncertainty = prob * (1 - prob)
    return {
        "prevalence": chance.mean(),
        "accuracy": 1 - wrong.mean(),
        "precision_flagged": chance[flagged].mean(),
        "recall_flagged": chance[flagged].sum() / chance.sum(),
        "auroc": area(prob, chance),
        "calibration_auroc": area(uncertainty, wrong),
        "oc_accuracy": 1 - wrong[~reviewed].sum() / SIZE,
        "review_efficiency": wrong[reviewed].mean(),
        "review_effectiveness": wrong[reviewed].sum() / wrong.sum(),
    }


def area(score, chance):
    """Return P(a positive scores higher than a negative), ties as halves."""
    higher = (score[:, None] > score) + 0.5 * (score[:, None] == score)
    pairs = chance[:, None] * (1 - chance)
    return (higher * pairs).sum() / pairs.sum()


def corrected(seen, error, flagged):
    """Return each metric as seen, corrected."""
    totals = PopulationCounts(comments=SIZE, flagged=flagged, top=REVIEWED, strategy="uncertainty")
    sampler = Sampler(error, totals, seed=0)

    def setting(name):
        team = name.startswith(("oc_", "review_"))
        at = ("uncertainty", REVIEWED / SIZE) if team else (None, None)
        value = seen[name]
        return {
            **dict(zip(("strategy", "alpha"), at, strict=True)),
            **dict.fromkeys(("value", "low", "high"), value),
        }

    return {
        name: float(formula(sampler.draw(setting(name), setting(needed or name)))[0])
        for name, (formula, needed) in FORMULAS.items()
    }


@given(st.floats(0, 0.4), st.integers(0, 2**32 - 1))
def test_what_errors_did_on_average_is_undone(error, seed):
    rng = np.random.default_rng(seed)
    # Ties do not matter to the uniform ranks of turned labels in the area's formula.
    prob = rng.permutation(np.linspace(0.001, 0.9, SIZE))
    truth = (rng.random(SIZE) < prob**2).astype(float)
    uncertain = review_scores(prob, "uncertainty")
    reviewed = np.argsort(np.argsort(-uncertain)) < REVIEWED
    true = metrics(prob, truth, reviewed)
    labels = truth * (1 - error) + (1 - truth) * error
    seen = metrics(prob, labels, reviewed)
    # The team's accuracy when those who review err as well.
    true["oc_accuracy"] -= error * REVIEWED / SIZE
    found = corrected(seen, assumed_error_rates(error), int((prob > 0.5).sum()))
    for name, value in true.items():
        # Of an area, pairs of one label each are counted; one comment is no pair with itself.
        slack = 0.02 if name.endswith("auroc") else 1e-9
        assert found[name] == pytest.approx(value, abs=slack), name


def test_top_and_rest_may_err_at_their_own_rates():
    prob = np.linspace(0.001, 0.9, SIZE)
    truth = (np.arange(SIZE) % 5 == 0).astype(float)
    reviewed = np.argsort(np.argsort(-review_scores(prob, "uncertainty"))) < REVIEWED
    rate = np.where(reviewed, 0.1, 0.01)
    seen = metrics(prob, truth * (1 - rate) + (1 - truth) * rate, reviewed)
    true = metrics(prob, truth, reviewed)
    top, rest = assumed_error_rates(0.1).top, assumed_error_rates(0.01).rest
    found = corrected(seen, ErrorRates(top=top, rest=rest, pooled=rest), 1)
    for name in ("review_efficiency", "review_effectiveness"):
        assert found[name] == pytest.approx(true[name], abs=1e-9)
    assert found["oc_accuracy"] == pytest.approx(true["oc_accuracy"] - 0.1 * REVIEWED / SIZE)
    assert abs(found["accuracy"] - true["accuracy"]) < abs(seen["accuracy"] - true["accuracy"])


def test_oc_accuracy_is_accuracy_and_efficiency_less_the_reviewers_errors():
    """Kivlichan et al., Eq. 2, holds between the corrected metrics as between the true ones."""
    share, e = REVIEWED / SIZE, 0.03
    seen = {"accuracy": 0.9, "review_efficiency": 0.3, "oc_accuracy": 0.9 + share * 0.3}
    seen |= dict.fromkeys(set(FORMULAS) - set(seen), 0.5)
    found = corrected(seen, assumed_error_rates(e), 40)
    whole = found["accuracy"] + share * found["review_efficiency"]
    assert found["oc_accuracy"] == pytest.approx(whole - share * e)


def test_counts_come_from_days():
    day = fully_labelled([1, 0, 0], [0.9, 0.6, 0.1])
    found = PopulationCounts.of([day, day], threshold=0.7, strategy="toxicity")
    assert found == PopulationCounts(comments=6, flagged=2, top=6, strategy="toxicity")


@pytest.mark.parametrize("counts", [(1, 2, 0), (1, 0, 2), (1, -1, 0), (-1, 0, 0)])
def test_impossible_counts_raise(counts):
    comments, flagged, top = counts
    with pytest.raises(MetricInputError, match=r"must be in \[0, "):
        PopulationCounts(comments=comments, flagged=flagged, top=top, strategy="uncertainty")
