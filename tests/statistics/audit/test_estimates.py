"""Figures of an audit: plain formulas when all is known, honest ends when it is not."""

import numpy as np
import pytest
from audit_drawing import counts
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from modwatch.statistics.audit.estimates import ENOUGH_POSITIVES, AuditEstimator
from modwatch.statistics.audit.metric_intervals import METRICS
from modwatch.statistics.audit.share_interval import IntervalOptions
from modwatch.statistics.audit.stratified import StratumCounts
from modwatch_lab.audit_designs import draw_positives


def side(population, labels, positives, score=0.5):
    """Return the labels of one side; None when it has no comment."""
    if not np.sum(population):
        return None
    return StratumCounts.from_arrays(
        population=population, labels=labels, positives=positives, score=[score] * len(population)
    ).weighted()


def audit(flagged, unflagged, most_intervals=None, **options):
    """Return an audit of two strata sides, each (population, labels, positives)."""
    return AuditEstimator(
        flagged=side(*flagged),
        unflagged=side(*unflagged),
        comments=(int(np.sum(flagged[0])), int(np.sum(unflagged[0]))),
        options=IntervalOptions(**options),
        most_intervals=most_intervals,
    )


NUMBER = st.integers(0, 5000)


@given(NUMBER, NUMBER, NUMBER, NUMBER)
def test_a_census_gives_the_plain_figures_without_width(tp, fp, fn, tn):
    flagged, unflagged, total = tp + fp, fn + tn, tp + fp + fn + tn
    whole = audit(([flagged], [flagged], [tp]), ([unflagged], [unflagged], [fn]))
    result = {figure.metric: figure for figure in whole.estimates()}
    expected = {
        "prevalence_unflagged": (fn, unflagged),
        "precision": (tp, flagged),
        "recall": (tp, tp + fn if flagged else 0),
        "f1": (2 * tp, 2 * tp + fp + fn if tp + fn else 0),
        "accuracy": (tp + tn, total),
        "prevalence": (tp + fn, total),
    }
    for metric, (part, whole_) in expected.items():
        figure = result[metric]
        if not whole_:
            assert figure.status == "insufficient"
            assert figure.value is figure.low is figure.high is figure.error is None
            assert figure.reason.startswith("no ")
            continue
        assert figure.status == "ok"
        ends = [figure.low, figure.value, figure.high]
        assert ends == pytest.approx([part / whole_] * 3, abs=1e-9)
        assert figure.error == pytest.approx(0, abs=1e-12)


@examples(60)
@given(
    counts(most=8),
    counts(most=8),
    st.sampled_from(METRICS),
    st.sampled_from(["both", "lower", "upper"]),
)
def test_the_ends_are_around_any_figure(flagged, unflagged, metric, sides):
    made = AuditEstimator(
        flagged=flagged.weighted(),
        unflagged=unflagged.weighted(),
        comments=(int(flagged.population.sum()), int(unflagged.population.sum())),
        options=IntervalOptions(sides=sides),
    )
    figure = made.interval_estimate(metric)
    assert 0 <= figure.low <= figure.value <= figure.high <= 1
    assert np.isfinite(figure.error)
    assert figure.error >= 0
    result = made.estimate(metric)
    assert (result.value is None) == (result.status == "insufficient") == bool(result.reason)


@examples(40)
@given(counts(most=8), st.sampled_from(METRICS), st.booleans(), st.integers(0, 100))
def test_a_side_without_labels_or_comments_gives_no_numbers_that_are_none(
    labelled, metric, flagged, others
):
    sides = (labelled.weighted(), None) if flagged else (None, labelled.weighted())
    comments = (int(labelled.population.sum()), others)
    made = AuditEstimator(
        flagged=sides[0], unflagged=sides[1], comments=comments if flagged else comments[::-1]
    )
    figure = made.interval_estimate(metric)
    assert 0 <= figure.low <= figure.value <= figure.high <= 1
    result = made.estimate(metric)
    if others and metric not in ("precision", "prevalence_unflagged", "negative_predictive_value"):
        assert result.status == "insufficient"
        negatives = labelled.labels.sum() - labelled.positives.sum()
        if min(labelled.positives.sum(), negatives) >= ENOUGH_POSITIVES:
            assert result.reason.startswith(f"no label of {others} ")
            assert result.reason.endswith("comment" if others == 1 else "comments")


def test_figures_are_those_of_the_formulas_on_a_sample():
    made = audit(([100, 50], [40, 20], [20, 18]), ([9_000, 500], [200, 100], [2, 15]))
    tp, fn = 100 * 0.5 + 50 * 0.9, 9_000 * 0.01 + 500 * 0.15
    fp, total = 150 - tp, 9_650
    expected = {
        "prevalence_unflagged": fn / 9_500,
        "precision": tp / 150,
        "f1": 2 * tp / (2 * tp + fp + fn),
        "accuracy": 1 - (fp + fn) / total,
        "prevalence": (tp + fn) / total,
    }
    for metric, value in expected.items():
        assert float(made.interval_estimate(metric).value) == pytest.approx(value)
    # Recall is corrected by less than its standard error.
    recall = made.estimate("recall")
    assert recall.value != pytest.approx(tp / (tp + fn), abs=1e-4)
    assert recall.value == pytest.approx(tp / (tp + fn), abs=recall.error / 2)
    assert (recall.n, recall.positives) == (360, 55)


def test_standard_errors_are_those_of_repeated_audits():
    generator = np.random.default_rng(11)
    populations, positives = ([1_000, 500], [90_000, 4_000]), ([600, 450], [360, 800])
    labels = ([300, 200], [900, 400])
    sides = [
        (population, sizes, draw_positives(population, known, sizes, generator, repetitions=4_000))
        for population, known, sizes in zip(populations, positives, labels, strict=True)
    ]
    made = audit(*sides, most_intervals=20)
    for metric in METRICS:
        figure = made.interval_estimate(metric)
        typical = float(np.sqrt((figure.error**2).mean()))
        assert figure.value.std() == pytest.approx(typical, rel=0.05)


def test_the_bias_of_recall_is_mended():
    """TP/(TP + FN) is too large on average, FN being in the denominator."""
    generator = np.random.default_rng(12)
    found = (
        generator.binomial(150, 0.04, size=(20_000, 1)),
        generator.binomial(60, 0.8, size=(20_000, 1)),
    )
    made = audit(([2_000], [60], found[1]), ([50_000], [150], found[0]), most_intervals=20)
    truth = 1600 / 3600
    tp, fn = 2_000 * found[1][:, 0] / 60, 50_000 * found[0][:, 0] / 150
    plain = float((tp / (tp + fn)).mean()) - truth
    mended = float(made.interval_estimate("recall").value.mean()) - truth
    assert plain > 0.02
    assert abs(mended) < plain / 3


class TestInsufficient:
    def test_too_few_positives_are_reported_with_the_labels_that_would_do(self):
        found = audit(([100], [50], [40]), ([9_900], [300], [2])).estimate("prevalence_unflagged")
        assert (found.status, found.value, found.low) == ("insufficient", None, None)
        assert (found.bound, found.high) == ("upper", pytest.approx(0.0235, abs=1e-4))
        assert found.labels_needed == 900
        assert found.reason == (
            "2 positives among 300 labels of unflagged comments, fewer than 3; "
            "about 900 labels of them would do"
        )

    def test_one_and_many_are_distinguished(self):
        for labels, positives, words in (
            (1, 0, "0 positives among 1 label of flagged"),
            (9, 1, "1 positive among 9 labels of flagged"),
        ):
            made = audit(([100], [labels], [positives]), ([9_900], [300], [9]))
            assert made.estimate("precision").reason.startswith(words)

    def test_none_found_asks_for_more_but_not_for_more_than_there_are(self):
        result = audit(([100], [50], [40]), ([9_900], [300], [0])).estimate("recall")
        assert result.labels_needed == np.ceil(300 * 6 / 0.7)
        answers = audit(([100], [50], [40]), ([400], [300], [0])).estimate("recall")
        assert answers.labels_needed == 400

    @pytest.mark.parametrize("metric", ["recall", "f1", "prevalence"])
    def test_both_sides_are_needed(self, metric):
        few = audit(([100], [50], [2]), ([9_900], [300], [5]))
        assert "50 labels of flagged comments" in few.estimate(metric).reason
        assert audit(([100], [50], [3]), ([9_900], [300], [3])).estimate(metric).status == "ok"

    def test_precision_is_reported_of_thirty_labels_even_when_none_is_right(self):
        assert audit(([100], [29], [0]), ([900], [99], [0])).estimate("precision").reason
        reported = audit(([100], [30], [0]), ([900], [99], [0])).estimate("precision")
        assert (reported.value, reported.status) == (0.0, "ok")
        assert reported.high > 0.05

    @pytest.mark.parametrize(
        ("flagged", "unflagged", "metric", "reason"),
        [
            (0, 500, "precision", "no flagged comment"),
            (0, 500, "recall", "no flagged comment"),
            (500, 0, "prevalence_unflagged", "no unflagged comment"),
            (0, 0, "accuracy", "no comment"),
            (0, 0, "prevalence", "no comment"),
            (0, 0, "f1", "no comment"),
        ],
    )
    def test_of_no_comment_there_is_no_figure(self, flagged, unflagged, metric, reason):
        made = audit(
            ([flagged], [flagged], [flagged // 2]), ([unflagged], [unflagged], [unflagged // 2])
        )
        assert made.estimate(metric).reason == reason

    @pytest.mark.parametrize("metric", ["recall", "f1"])
    def test_of_no_positive_there_is_no_recall(self, metric):
        made = audit(([5], [5], [0]), ([7], [7], [0]))
        assert made.estimate(metric).reason == "no comment is positive"

    def test_comments_without_a_label_are_not_taken_for_negative(self):
        made = AuditEstimator(flagged=side([10], [5], [4]), unflagged=None, comments=(10, 990))
        for metric in ("recall", "f1", "accuracy", "prevalence", "prevalence_unflagged"):
            outcome = made.estimate(metric)
            assert outcome.reason == "no label of 990 unflagged comments"
            assert outcome.labels_needed is None
        assert made.estimate("precision").value == 0.8
        assert float(made.interval_estimate("recall").low) < 0.02


@pytest.mark.parametrize("metric", METRICS)
def test_a_bound_is_the_end_of_the_interval_with_both_tails(metric):
    sides = ([100, 200], [50, 60], [45, 40]), ([700, 900], [100, 200], [2, 11])
    both = audit(*sides, level=0.9).estimate(metric)
    least = audit(*sides, level=0.95, sides="lower").estimate(metric)
    most = audit(*sides, level=0.95, sides="upper").estimate(metric)
    assert least.low == pytest.approx(both.low, abs=1e-6)
    assert most.high == pytest.approx(both.high, abs=1e-6)
    assert least.high >= both.high
    assert most.low <= both.low
