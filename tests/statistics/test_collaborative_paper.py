"""What Kivlichan et al. (2021) state or print, recomputed."""

import itertools

import numpy as np
import pytest
from brute_force import alphas, columns, places, rows, times
from hypothesis import given
from sklearn.metrics import roc_auc_score

from modwatch.statistics.collaboration import collaborative as c
from modwatch.statistics.collaboration import model_metrics
from modwatch.statistics.collaboration.model_metrics import accuracy, prevalence
from modwatch.statistics.collaboration.review_strategies import review_scores

#: Accuracy, ECE and Brier score of tables 2 and 3: five models with either loss.
IN_DOMAIN = [
    (0.9231, 0.0245, 0.0548),
    (0.9233, 0.0280, 0.0548),
    (0.9274, 0.0198, 0.0508),
    (0.9231, 0.0235, 0.0544),
    (0.9226, 0.0281, 0.0549),
    (0.9476, 0.1486, 0.0628),
    (0.9455, 0.0076, 0.0388),
    (0.9472, 0.1442, 0.0622),
    (0.9479, 0.1536, 0.0639),
    (0.9467, 0.0075, 0.0379),
]
OUT_OF_DOMAIN = [
    (0.9628, 0.0128, 0.0246),
    (0.9640, 0.0070, 0.0253),
    (0.9671, 0.0136, 0.0241),
    (0.9625, 0.0141, 0.0242),
    (0.9633, 0.0076, 0.0248),
    (0.9795, 0.1973, 0.0377),
    (0.9784, 0.0182, 0.0264),
    (0.9790, 0.1896, 0.0360),
    (0.9795, 0.1998, 0.0381),
    (0.9790, 0.0176, 0.0266),
]


def community(accuracy, size=10_000):
    """Return labels and probabilities of a model that is as often right as told."""
    rng = np.random.default_rng(1)
    prob = rng.random(size)
    wrong = rng.permutation(size) < round((1 - accuracy) * size)
    return ((prob > 0.5) ^ wrong).astype(int), prob


@given(rows, alphas)
def test_equation_2_holds_with_the_reviewed_count(drawn, alpha):
    label, prob, score = columns(drawn)
    share = places(alpha, label.size) / label.size
    gain = share * (c.review_efficiency(label, prob, score, review_fraction=alpha) or 0)
    assert c.oc_accuracy(label, prob, score, review_fraction=alpha) == pytest.approx(
        accuracy(label, prob) + gain
    )


@given(rows, alphas, times)
def test_equation_2_holds_with_alpha_for_masses(drawn, alpha, times):
    weight = np.array(times[: len(drawn)]) + 0.5
    gain = alpha * (
        c.review_efficiency(*columns(drawn), review_fraction=alpha, sample_weight=weight) or 0
    )
    expected = accuracy(*columns(drawn)[:2], sample_weight=weight) + gain
    assert c.oc_accuracy(
        *columns(drawn), review_fraction=alpha, sample_weight=weight
    ) == pytest.approx(expected)


@pytest.mark.parametrize("printed", sorted({row[0] for row in IN_DOMAIN + OUT_OF_DOMAIN}))
def test_the_identities_of_the_appendices_hold_at_the_printed_accuracies(printed):
    label, prob = community(printed)
    assert accuracy(label, prob) == pytest.approx(printed)
    curve = c.collaboration_curve(label, prob).astype(dict.fromkeys(c.METRICS, float))
    gain = curve["alpha"] * curve["review_efficiency"]
    assert np.allclose(curve["oc_accuracy"], printed + gain)  # B: Acc + RE(α)·α
    assert np.allclose(curve["review_effectiveness"], gain / (1 - printed))  # A.2: TP/(TP+FN)
    for row in curve.itertuples():  # B: Acc(1−α)·(1−α) + α
        kept = np.argsort(review_scores(prob, row.strategy))[: round(10_000 * (1 - row.alpha))]
        rest = accuracy(label[kept], prob[kept])
        assert row.oc_accuracy == pytest.approx(rest * (1 - row.alpha) + row.alpha)


def test_the_gain_by_focal_loss_equals_a_tenth_reviewed_if_a_quarter_of_it_is_wrong():
    # Figure 9 calls 0.9231 → 0.9476 (table 2) worth a review fraction of 10 %: RE = 0.245.
    label = np.zeros(10_000, int)
    label[:769] = 1  # the errors of a model that flags nothing
    score = np.zeros(10_000)
    score[:245], score[9_245:] = 1, 1
    args, at = (label, np.zeros(10_000), score), {"review_fraction": 0.1}
    assert accuracy(*args[:2]) == 0.9231
    assert c.oc_accuracy(*args, **at) == 0.9476
    assert c.review_efficiency(*args, **at) == 0.245
    assert c.review_effectiveness(*args, **at) == pytest.approx(245 / 769)


def test_the_corpora_are_as_toxic_as_they_say():
    civil, talk = (50_350, 1_999_514), (21_384, 223_549)
    shares = [
        prevalence([1, 0], sample_weight=[toxic, all_ - toxic]) for toxic, all_ in (civil, talk)
    ]
    assert [round(share, 3) for share in shares] == [0.025, 0.096]


@given(rows, times)
def test_the_squared_calibration_error_is_at_most_the_brier_score(drawn, times):
    label, prob, _ = columns(drawn)
    if any(times[: len(drawn)]):
        weight = times[: len(drawn)]
        error = model_metrics.expected_calibration_error(label, prob, sample_weight=weight)
        assert error**2 <= model_metrics.brier_score(label, prob, sample_weight=weight) + 1e-12


def test_two_rows_of_table_3_cannot_come_from_one_set_of_labels():
    # So the authors' Brier score and ECE read their soft labels differently; ours cannot.
    apart = [ece for _, ece, brier in IN_DOMAIN + OUT_OF_DOMAIN if (ece - 5e-5) ** 2 > brier + 5e-5]
    assert apart == [0.1973, 0.1998]


@given(rows)
def test_mean_effectiveness_over_capacities_is_the_calibration_auroc(drawn):
    label, prob, _ = columns(drawn)
    area = model_metrics.calibration_auroc(label, prob)
    if area is None:
        return
    score, n = review_scores(prob, "uncertainty"), label.size
    caught = [
        c.review_effectiveness(label, prob, score, review_fraction=k / n) for k in range(n + 1)
    ]
    errors = 1 - accuracy(label, prob)
    assert np.trapezoid(caught, dx=1 / n) == pytest.approx(errors / 2 + (1 - errors) * area)


def test_the_calibration_auprc_is_the_area_of_efficiency_over_effectiveness():
    label, prob = community(0.9, size=60)
    score = review_scores(prob, "uncertainty")
    points = [(0.0, 1.0)]
    for k in range(1, 61):
        args, at = (label, prob, score), {"review_fraction": k / 60}
        points.append((c.review_effectiveness(*args, **at), c.review_efficiency(*args, **at)))
    area = sum((right - left) * re for (left, _), (right, re) in itertools.pairwise(points))
    expected = model_metrics.calibration_auprc(label, prob, interpolation="step")
    assert area == pytest.approx(expected)


def test_with_part_reviews_that_area_is_the_interpolated_one():
    label, prob = community(0.8, size=60)
    prob = prob.round(1)
    capacities = np.linspace(0, 1, 4001)[1:]
    curve = c.collaboration_curve(
        label,
        prob,
        review_fractions=capacities,
        strategies=["uncertainty"],
        sample_weight=np.full(60, 0.5),
    )
    area = np.trapezoid(
        curve["review_efficiency"].to_numpy(float), curve["review_effectiveness"].to_numpy(float)
    )
    assert area == pytest.approx(model_metrics.calibration_auprc(label, prob), abs=1e-3)


def approximate_oc_auroc(label, prob, score, alpha, *, thresholds, bins):
    """Return the area from evenly spaced thresholds and binned scores, as the authors' code does.

    `score` is in [0, 1]. The first and last threshold lie outside [0, 1] and are not corrected.
    """
    left = np.floor(alpha * label.size)
    part = np.zeros(label.size)
    in_bin = np.minimum((score * bins).astype(int), bins - 1)
    for one in range(bins - 1, -1, -1):
        members = in_bin == one
        taken = min(left, members.sum())
        part[members] = taken / max(members.sum(), 1)
        left -= taken
    points = []
    for threshold in np.linspace(0, 1, thresholds):
        flagged = (prob > threshold).astype(float)
        inner = 0 < threshold < 1
        flagged = flagged + (part * (label - flagged) if inner else threshold == 0)
        points.append([(np.minimum(flagged, 1) * side).sum() for side in (1 - label, label)])
    fp, tp = np.array(points[::-1]).T
    return np.trapezoid(tp / label.sum(), fp / (1 - label).sum())


def test_the_approximation_is_that_of_the_authors():
    # The figures of one of their tests, with 4 thresholds and 4 bins.
    label, prob = np.array([1, 0, 0, 1]), np.array([0.31, 0.32, 0.83, 0.64])
    found = approximate_oc_auroc(label, prob, 1 - prob, 0.5, thresholds=4, bins=4)
    assert found == pytest.approx(0.625)
    # Exactly: one of four pairs is left in the wrong order.
    assert c.oc_auroc(label, prob, 1 - prob, review_fraction=0.5) == 0.75


@pytest.mark.parametrize(("sharpness", "least", "most"), [(1, 0, 0.01), (3, 0.08, 0.12)])
def test_evenly_spaced_thresholds_lose_area_on_an_over_confident_model(sharpness, least, most):
    rng = np.random.default_rng(7)
    latent = rng.normal(-4, 2, 20_000)
    label = (rng.random(latent.size) < 1 / (1 + np.exp(-latent))).astype(int)
    prob = 1 / (1 + np.exp(-sharpness * latent))
    score = review_scores(prob, "uncertainty")
    relabelled = np.where(score >= np.sort(score)[-200], 3 * label - 1, prob)
    exact = c.oc_auroc(label, prob, score, review_fraction=0.01)
    assert exact == pytest.approx(roc_auc_score(label, relabelled), abs=1e-9)
    approximate = approximate_oc_auroc(label, prob, 4 * score, 0.01, thresholds=200, bins=1_000)
    assert least <= exact - approximate <= most
