"""True labels behind the labels of people who err: closed forms, properties, calibration."""

from dataclasses import asdict, replace

import numpy as np
import pandas as pd
import pytest
from reviewed_days import community, labelled_by_people, reviewed_day
from scipy.special import expit, logit

from modwatch.common.errors import MetricInputError
from modwatch.statistics.label_truth import (
    APART,
    DRAWS,
    ErrorEvidence,
    GivenLabels,
    KnownErrors,
    true_labels,
)
from modwatch.statistics.live.labelled_day import Confirmations, LabelledDay, fully_labelled
from modwatch.statistics.live.measure import Measured, measure_days, reliability_estimates
from modwatch.statistics.live.sample import Sample


def team(seed, *, size=4000, errors=(0.02, 0.2), confirmed=0.3, shift=-2.0):
    """Return what a team said of comments, and the true labels of these."""
    rng = np.random.default_rng(seed)
    score = rng.normal(shift, 1.5, size)
    truth = rng.random(size) < expit(score)
    wrong = rng.random((size, 3)) < np.where(truth, errors[1], errors[0])[:, None]
    labels = truth[:, None] ^ wrong
    second = rng.random(size) < np.where(labels[:, 0], 3 * confirmed, confirmed / 3)
    asked = np.column_stack([np.ones(size, bool), second, second & (labels[:, 0] != labels[:, 1])])
    given, toxic = (value.sum(axis=1).astype(np.int64) for value in (asked, asked & labels))
    group = (rng.random(size) < 0.2).astype(np.int64)
    return GivenLabels(prob=expit(score), group=group, given=given, toxic=toxic), truth.astype(int)


def partly_labelled(seed=0, **more):
    rng = np.random.default_rng(seed)
    prob = rng.beta(0.5, 2, 2000)
    stratum = np.where(prob > 0.5, 0, np.where(rng.random(2000) < 0.3, 1, -1))
    population = np.array([(prob > 0.5).sum(), (prob <= 0.5).sum()])
    return LabelledDay(
        prob=prob,
        stratum=stratum,
        label=(rng.random(2000) < prob).astype(int),
        labelled=stratum >= 0,
        population=population,
        sample=np.array([population[0], (stratum == 1).sum()]),
        **more,
    )


def window(prevalence, seed=1):
    """Return four days of 5,000 comments, a tenth of them labelled without errors."""
    rng = np.random.default_rng(seed)
    return [reviewed_day(rng, *community(rng, 5000, prevalence)) for _ in range(4)]


def alone(labels):
    """Return the true labels if no error is shared."""
    return true_labels(labels, ErrorEvidence.sharing(0, 0))


def by_design(days):
    """Return the estimates by the design alone, at the deployed review fraction and at others."""
    measured = Measured.from_days(days, ErrorEvidence.sharing(0, 0))
    estimates = measured.estimates(
        review_fractions=[0.05, 0.1, 0.2],
        strategies=["uncertainty", "toxicity"],
        threshold=0.5,
    )
    table = pd.DataFrame([asdict(sampled) for _, sampled in estimates])
    return table.astype(dict.fromkeys(("alpha", "value", "low", "high"), "Float64"))


def beside_the_plain(days, other):
    """Return the estimates of `days` and of `other`, row by row; the same ones are insufficient."""
    plain, found = by_design(days), by_design(other)
    names = ["metric", "strategy", "alpha", "status", "n"]
    assert found[names].equals(plain[names])
    # Reasons may have numbers, such as the width of an interval, which are rounded.
    shown, expected = (
        table["reason"].str.replace(r"[\d.]+", "", regex=True) for table in (found, plain)
    )
    assert shown.equals(expected)
    return plain[plain["status"] == "ok"], found[found["status"] == "ok"]


def test_without_errors_confirmations_leave_the_plain_estimates():
    """Values within 2 % of the width of the interval, its ends within 0.005."""
    days, rng = window(0.2), np.random.default_rng(2)
    confirmed = [labelled_by_people(rng, day, 0.13, rates=(0.0, 0.0)) for day in days]
    plain, found = beside_the_plain(days, confirmed)
    assert {"oc_accuracy", "oc_auroc", "oc_auprc", "calibration_auroc"} <= set(plain["metric"])
    width = np.maximum((plain["high"] - plain["low"]).to_numpy(float), 0.05)
    away = (found["value"] - plain["value"]).to_numpy(float)
    assert (np.abs(away) <= 0.02 * width).all()
    for end in ("low", "high"):
        assert found[end].to_numpy(float) == pytest.approx(plain[end].to_numpy(float), abs=0.005)


@pytest.mark.simulation
def test_the_posterior_holds_the_truth_as_often_as_it_says():
    errors = []
    for seed in range(8):
        labels, truth = team(seed)
        found = true_labels(labels, ErrorEvidence.sharing(0, 0), seed=seed)
        for part in (labels.prob > 0.3, labels.prob <= 0.3, labels.group == 1):
            effect = part.astype(float)
            drawn = found.deviations(effect, np.ones(effect.size), np.random.default_rng(seed))
            errors.append((truth[part].sum() - found.mean[part].sum()) / drawn.std())
    errors = np.array(errors)
    assert abs(errors.mean()) < 0.5
    assert 0.75 < errors.std() < 1.25
    assert (np.abs(errors) < 1.96).mean() > 0.86


def test_known_answers_tell_the_rates_where_confirmations_do_not():
    labels, truth = team(1, confirmed=0.0)
    known = ErrorEvidence(
        KnownErrors(answers=2000, wrong=40, shared=0.2),
        KnownErrors(answers=500, wrong=100, shared=0.3),
    )
    found = true_labels(labels, known)
    assert found.false_negative.mean() == pytest.approx(0.2, abs=0.07)
    assert found.mean.sum() == pytest.approx(truth.sum(), rel=0.2)


def test_a_toxic_label_more_makes_toxic_likelier():
    found = true_labels(labels := team(5)[0])
    near = np.abs(logit(labels.prob) + 1) < 0.05
    means = {
        (given, toxic): found.mean[near & (labels.given == given) & (labels.toxic == toxic)]
        for given, toxic in ((1, 0), (1, 1), (2, 0), (2, 2), (3, 1), (3, 2))
    }
    order = [
        means[key].mean() for key in ((2, 0), (1, 0), (3, 1), (3, 2), (2, 2)) if means[key].size
    ]
    assert order == sorted(order)
    assert ((found.mean >= 0) & (found.mean <= 1)).all()


@pytest.mark.simulation
def test_the_order_of_the_rows_changes_no_estimate():
    day = labelled_by_people(np.random.default_rng(1), partly_labelled(), 0.3, rates=(0.05, 0.2))
    order = np.random.default_rng(2).permutation(day.prob.size)
    further = day.confirmations
    moved = replace(
        day,
        **{name: getattr(day, name)[order] for name in ("prob", "stratum", "label", "labelled")},
        confirmations=Confirmations(row=np.argsort(order)[further.row], label=further.label),
    )
    one, other = (measure_days([value], review_fractions=[0.1]) for value in (day, moved))
    assert one["reason"].tolist() == other["reason"].tolist()
    for end in ("value", "low", "high"):
        assert other[end].to_numpy(float, na_value=-1) == pytest.approx(
            one[end].to_numpy(float, na_value=-1), abs=1e-9
        )


def test_the_draws_do_not_depend_on_the_sign_of_eigenvectors(monkeypatch):
    """LAPACK may return either, and which one it does differs between processors."""
    labels, _ = team(0, size=400)
    real, found = np.linalg.eigh, true_labels(labels)
    signs = np.array([1, -1])

    def flipped(matrix):
        values, vectors = real(matrix)
        return values, vectors * np.resize(signs, len(values))

    monkeypatch.setattr(np.linalg, "eigh", flipped)
    np.testing.assert_allclose(true_labels(labels).prob, found.prob, rtol=1e-6)


def test_frequent_toxic_comments_are_not_taken_for_false_positives():
    """Where most comments are toxic, a second mode says that nearly all labels are wrong."""
    errors = (0.1, 0.4)
    labels, truth = team(3, errors=errors, shift=1.0)
    found = alone(labels)
    assert found.mean.mean() == pytest.approx(truth.mean(), abs=0.05)
    assert found.false_positive.mean() == pytest.approx(errors[0], abs=0.05)
    assert found.false_negative.mean() == pytest.approx(errors[1], abs=0.05)


def test_constant_and_extreme_scores_are_estimated():
    rng = np.random.default_rng(0)
    truth = rng.random(2000) < 0.3
    result = np.where(truth[:, None], rng.random((2000, 2)) >= 0.1, rng.random((2000, 2)) < 0.02)
    for prob in (np.full(2000, 0.5), np.where(rng.random(2000) < 0.5, 0.0, 1.0)):
        labels = GivenLabels(
            prob=prob,
            group=np.zeros(2000, np.int64),
            given=np.full(2000, 2),
            toxic=result.sum(axis=1).astype(np.int64),
        )
        assert true_labels(labels).mean.mean() == pytest.approx(truth.mean(), abs=0.04)


def test_half_of_the_draws_share_errors_of_either_kind_up_to_the_stated_part():
    labels = team(7)[0]
    plain, found = alone(labels), true_labels(labels, ErrorEvidence.sharing(0.6, 0))
    half = found.prob[: DRAWS // 2].mean(axis=0)[found.cell]
    assert half.sum() == pytest.approx(plain.mean.sum(), rel=0.03)
    assert found.prob[DRAWS // 2 :].mean(axis=0)[found.cell].sum() < 0.97 * half.sum()


def test_answers_to_gold_items_raise_what_is_stated_and_never_lower_it():
    labels = team(7)[0]
    stated = true_labels(labels).mean.sum()
    few, many, less = (
        replace(ErrorEvidence(), false_positive=KnownErrors(compared=n, repeated=k, shared=0.2))
        for n, k in ((10, 10), (400, 240), (400, 0))
    )
    assert true_labels(labels, few).mean.sum() == pytest.approx(stated)
    assert few.false_positive.ends == (-APART, 0.2)
    assert less.false_positive.ends == (0.2, 0.2)
    assert many.false_positive.ends == pytest.approx((0.6, 0.6), abs=0.05)
    assert true_labels(labels, many).mean.sum() < stated
    assert many.independent.false_positive.ends == (0, 0)


def test_confirmations_of_unlabelled_comments_are_refused():
    day = partly_labelled()
    row = np.flatnonzero(~day.labelled)[:1]
    with pytest.raises(MetricInputError, match="first label"):
        replace(day, confirmations=Confirmations(row=row, label=np.array([1])))
    with pytest.raises(MetricInputError):
        replace(day, confirmations=Confirmations(row=np.array([0, 1]), label=np.array([1])))


def test_people_who_may_err_make_every_interval_wider():
    day = partly_labelled()
    people = replace(day, confirmations=Confirmations.none())
    plain, unsure = (measure_days([value], review_fractions=[0.1]) for value in (day, people))
    for table in (plain, unsure):
        table["width"] = table["high"] - table["low"]
    both = plain.merge(unsure, on=["metric", "strategy", "alpha"], suffixes=("", "_unsure"))
    both = both[both["status"].eq("ok") & both["status_unsure"].eq("ok")]
    # Areas by score may be a little narrower than those by the design alone.
    assert (both["width_unsure"] >= both["width"] - 0.02).all()
    assert (both["width_unsure"] > both["width"]).mean() > 0.7
    rates = set(unsure["metric"]) - set(plain["metric"])
    assert rates == {"annotator_false_positive_rate", "annotator_false_negative_rate"}


def test_confirmed_and_overturned_labels_are_counted():
    day = partly_labelled()
    first = np.flatnonzero(day.labelled & (day.label == 1))[:40]
    contradicted = np.concatenate([first[:10], first[:10]])
    day = replace(
        day,
        confirmations=Confirmations(
            row=np.concatenate([first[10:], contradicted]), label=np.repeat([1, 0], [30, 20])
        ),
    )
    row = measure_days([day]).set_index("metric").loc["overturned"]
    assert (row["n"], row["value"]) == (40, 0.25)


def test_the_reliability_diagram_allows_for_errors():
    day = partly_labelled()
    plain = reliability_estimates([day])
    people = reliability_estimates([replace(day, confirmations=Confirmations.none())])
    wide = (people["high"] - people["low"]) - (plain["high"] - plain["low"])
    assert wide.iloc[1:6].mean() > 0


def test_research_labels_are_the_truth():
    table = measure_days([fully_labelled([1, 0, 1], [0.9, 0.6, 0.2])])
    assert "annotator_false_positive_rate" not in set(table["metric"])


@pytest.mark.parametrize(("stratum", "name"), [(0, "top"), (1, "random slice")])
def test_a_stratum_whose_confirmations_all_overturn_gives_no_figures_and_the_reason(stratum, name):
    """Whoever labelled it first was wrong about everything, and two others say so."""
    day = partly_labelled()
    rows = np.flatnonzero(day.labelled & (day.stratum == stratum))
    wrong = day.label.copy()
    wrong[rows] = 1 - wrong[rows]
    further = Confirmations(row=np.repeat(rows, 2), label=np.repeat(day.label[rows], 2))
    table = measure_days([replace(day, label=wrong, confirmations=further)]).set_index("metric")
    assert table.loc["overturned", "value"] == 1
    refused = table.loc[["accuracy", "oc_accuracy", "review_efficiency", "auroc", "ece"]]
    assert (refused["status"] == "insufficient").all()
    assert set(refused["reason"]) == {f"confirmations contradict the first labels of the {name}"}


def test_people_who_err_as_people_do_are_never_stated_to_contradict_each_other():
    """Not even where only toxic labels are confirmed, most of which are wrong."""
    day, errors = partly_labelled(), (0.2, 0.4)
    rows = np.flatnonzero(day.labelled)
    for seed in range(10):
        rng = np.random.default_rng(seed)
        truth = day.label[rows]
        wrong = rng.random((rows.size, 3)) < np.where(truth == 1, errors[1], errors[0])[:, None]
        labels = truth[:, None] ^ wrong
        label = day.label.copy()
        label[rows] = labels[:, 0]
        second = labels[:, 0] == 1
        third = second & (labels[:, 1] == 0)
        further = Confirmations(
            row=np.concatenate([rows[second], rows[third]]),
            label=np.concatenate([labels[second, 1], labels[third, 2]]),
        )
        assert not Sample([replace(day, label=label, confirmations=further)]).contradicted


def test_labels_that_are_all_alike_contradict_nothing():
    day = partly_labelled()
    rows = np.repeat(np.flatnonzero(day.labelled), 2)
    further = Confirmations(row=rows, label=day.label[rows])
    assert not Sample([replace(day, confirmations=further)]).contradicted


@pytest.mark.simulation
def test_small_teams_get_intervals_that_hold_the_truth():
    """Two people give no third label; of one, nothing is confirmed, and rates may be anything."""
    options = {"review_fractions": [0.1], "strategies": ["uncertainty"]}
    metrics = ["accuracy", "prevalence", "oc_accuracy", "review_efficiency"]
    windows, held, widths = 4, {1: 0, 2: 0}, {1: [], 2: []}
    for seed in range(windows):
        rng = np.random.default_rng(100 + seed)
        days = [community(rng, 4000, (0.05, 0.2)[seed % 2]) for _ in range(3)]
        reviewed = [reviewed_day(rng, *day) for day in days]
        whole = [fully_labelled(label, prob) for prob, label in days]
        truth = measure_days(whole, **options).set_index("metric").loc[metrics, "value"]
        for people in held:
            labels = [
                labelled_by_people(rng, day, 0.13, rates=(0.02, 0.2), people=people)
                for day in reviewed
            ]
            found = measure_days(labels, **options).set_index("metric").loc[metrics]
            held[people] += ((found["low"] <= truth) & (truth <= found["high"])).to_numpy(bool)
            widths[people].append((found["high"] - found["low"]).to_numpy(float))
    assert min(held[1]) >= windows - 1
    assert min(held[2]) >= windows - 1
    one, two = (np.mean(widths[people], axis=0) for people in (1, 2))
    assert (one > 1.1 * two).all()


@pytest.mark.parametrize("toxic", [0, 1, 2])
def test_labels_that_are_all_alike_have_an_answer(toxic):
    one = np.ones(300, np.int64)
    found = true_labels(
        GivenLabels(
            prob=np.linspace(0.01, 0.9, 300), group=0 * one, given=2 * one, toxic=toxic * one
        )
    )
    assert np.isfinite(found.mean).all()
    assert np.isfinite(found.climbs).all()


def test_a_group_that_only_earlier_labels_have_has_rates_too():
    one, prob = np.ones(300, np.int64), np.linspace(0.01, 0.9, 300)
    toxic = (np.arange(300) % 9 == 0).astype(np.int64)
    now = GivenLabels(prob=prob, group=0 * one, given=one, toxic=toxic)
    earlier = GivenLabels(prob=prob, group=one, given=one, toxic=toxic)
    found = true_labels(now, history=earlier)
    for rates in (found.false_positive, found.false_negative):
        assert rates.shape[1] == 2
        assert ((rates > 0) & (rates < 1)).all()
