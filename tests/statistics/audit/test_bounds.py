"""What an audit reports covers the truth, whatever it reports: an interval or a bound, with all
labels or without the difficult ones. Unconditionally: no audit is left out for what it found."""

import dataclasses

import numpy as np
import pytest
from audit_drawing import counts
from audit_making import Auditor, label_all, make_comments, make_plan
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from modwatch.audits.verify import read_evidence
from modwatch.statistics.audit.estimates import AuditEstimate, AuditEstimator
from modwatch.statistics.audit.labels import AuditLabel, unlabelled
from modwatch.statistics.audit.metric_intervals import METRICS
from modwatch.statistics.audit.results import computed
from modwatch.statistics.audit.share_interval import IntervalOptions
from modwatch.statistics.audit.stratified import StratumCounts

AUDITS = 40
LEAST = 0.9  # of 40 audits: 95 %, less a standard error and a half


def truth_of(tp, fn, sizes):
    fp, tn = sizes[0] - tp, sizes[1] - fn
    return {
        "recall": tp / (tp + fn),
        "precision": tp / sizes[0],
        "prevalence_unflagged": fn / sizes[1],
        "negative_predictive_value": tn / sizes[1],
        "accuracy": (tp + tn) / sum(sizes),
        "prevalence": (tp + fn) / sum(sizes),
        "specificity": tn / (tn + fp),
        "false_positive_rate": fp / (tn + fp),
        "f1": 2 * tp / (2 * tp + fp + fn),
    }


def holds(estimate: AuditEstimate, truth: float) -> bool:
    """Return whether what is reported holds: nothing reported claims nothing."""
    low = 0.0 if estimate.low is None else estimate.low
    high = 1.0 if estimate.high is None else estimate.high
    return low - 1e-9 <= truth <= high + 1e-9


@examples(60)
@given(counts(most=6), counts(most=6), st.sampled_from(METRICS))
def test_a_bound_contains_the_interval_that_it_stands_for(one, other, metric):
    """So choosing between the two by the labels costs no coverage."""
    made = AuditEstimator(
        flagged=one.weighted(),
        unflagged=other.weighted(),
        comments=(int(one.population.sum()), int(other.population.sum())),
    )
    ends = made.interval_estimate(metric)
    assert made.bound(metric, upper=False) <= ends.low + 1e-9
    assert made.bound(metric, upper=True) >= ends.high - 1e-9


def side(population, labels, positives):
    return StratumCounts.from_arrays(
        population=population, labels=labels, positives=positives, score=[0.1] * len(population)
    ).weighted()


def test_recall_is_at_least_what_the_ends_of_the_sides_make_it():
    made = AuditEstimator(
        flagged=side([1000], [100], [90]), unflagged=side([9000], [300], [1]), comments=(1000, 9000)
    )
    recall = made.estimate("recall")
    fewest, most = 1000 * made.side("flagged").low, 9000 * made.side("unflagged").high
    assert (recall.status, recall.value, recall.high, recall.bound) == (
        "insufficient", None, None, "lower",
    )  # fmt: skip
    assert recall.low == pytest.approx(fewest / (fewest + most))
    missed = made.estimate("prevalence_unflagged")
    assert (missed.bound, missed.low, missed.high) == ("upper", None, most / 9000)


def test_a_one_sided_audit_has_no_bound_on_its_other_side():
    made = AuditEstimator(
        flagged=side([1000], [100], [90]), unflagged=side([9000], [300], [1]),
        comments=(1000, 9000), options=IntervalOptions(sides="upper"),
    )  # fmt: skip
    assert (made.estimate("recall").bound, made.estimate("recall").low) == (None, None)


@pytest.mark.simulation
def test_difficult_comments_without_a_label():
    """Two in five missed positives are disputed and never settled: the rest alone covers 19 %."""
    generator = np.random.default_rng(5)
    sizes, labels, shares = (4_000, 96_000), (300, 1500), (0.85, 0.041)
    truth = truth_of(*(round(n * p) for n, p in zip(sizes, shares, strict=True)), sizes)
    held, ignored = dict.fromkeys(METRICS, 0), 0
    for _ in range(AUDITS):
        plain, extremes = [], {}
        for name, size, drawn, share in zip(
            ("flagged", "unflagged"), sizes, labels, shares, strict=True
        ):
            positives = generator.hypergeometric(
                round(size * share), size - round(size * share), drawn
            )
            lost = generator.binomial(positives, 0.4)
            other = generator.binomial(drawn - positives, 0.004)
            settled = drawn - lost - other
            plain.append(side([size], [settled], [positives - lost]))
            extremes[name] = (
                side([size], [drawn], [positives - lost]),
                side([size], [drawn], [positives + other]),
            )
        made = AuditEstimator(flagged=plain[0], unflagged=plain[1], comments=sizes)
        ignored += holds(made.estimate("prevalence_unflagged"), truth["prevalence_unflagged"])
        for estimate in dataclasses.replace(made, extremes=extremes).estimates():
            held[estimate.metric] += holds(estimate, truth[estimate.metric])
            assert estimate.low_if_random is not None
    assert {name: n / AUDITS for name, n in held.items() if n < LEAST * AUDITS} == {}
    assert ignored / AUDITS < 0.25


def test_the_ends_take_the_label_that_moves_them_outwards():
    """A census of which 5 comments have no label: the ends are those of all 2⁵ outcomes."""
    none, every = (side([10], [10], [k]) for k in (4, 9))
    plain = side([10], [5], [4])
    made = AuditEstimator(
        flagged=side([20], [20], [15]), unflagged=plain, comments=(20, 10),
        extremes={"unflagged": (none, every)},
    )  # fmt: skip
    recall = made.estimate("recall")
    assert (recall.low, recall.high) == pytest.approx((15 / 24, 15 / 19))
    assert recall.high_if_random < recall.high
    precision = made.estimate("precision")
    assert (precision.low, precision.high, precision.low_if_random) == (0.75, 0.75, None)


# --- which comments have no label ----------------------------------------------------------------


def labels_of(*what):
    """Return a plan's sample and labels: of each drawn comment, what people said, in order."""
    comments = make_comments(600)
    auditor = Auditor(comments=comments, plan=make_plan(comments, 100))
    auditor.begin()

    def people(drawn, truth):
        labels = []
        for item, given_ in zip(drawn, what, strict=False):
            labels += [
                AuditLabel(
                    day=item.day, comment_id=item.comment_id, labeller=f"p{number}",
                    action="label", label=label, decided_at="2026-02-01T00:00:00+00:00",
                    decision="00",
                )
                for number, label in enumerate(given_)
            ]  # fmt: skip
        return labels

    auditor.people = people
    auditor.draw_and_label(stop=True)
    return read_evidence(auditor.folder)


def test_disputed_passed_over_and_not_reached_are_distinguished():
    evidence = labels_of([1], [], [1, 0], [0, 0], [], [], [1], [])
    found = unlabelled(evidence.samples, evidence.labels)
    keys = [(sample.day, sample.comment_id) for sample in evidence.samples[-1]]
    assert found.disputed == {keys[2]}
    assert found.passed_over == {keys[1], keys[4], keys[5]}
    assert found.not_reached == {*keys[7:]}
    assert found.unknown == found.disputed | found.passed_over
    counted = computed(evidence)["missing"]
    assert counted == {"disputed": 1, "passed_over": 3, "not_reached": len(keys) - 7}


def test_whoever_passes_over_positives_widens_the_interval_and_hides_nothing():
    comments = make_comments(3000, prevalence=0.1)
    results = []
    for passing in (False, True):
        auditor = Auditor(
            comments=comments,
            plan=make_plan(comments, 500),
            people=lambda drawn, truth, passing=passing: [
                row
                for row in label_all(drawn, truth)
                if not (passing and row.label and row.comment_id.endswith(("1", "2", "3")))
            ],
        )
        auditor.begin()
        auditor.draw_and_label()
        document = computed(read_evidence(auditor.folder))
        results.append({figure["metric"]: figure for figure in document["figures"]})
    honest, other = (result["prevalence_unflagged"] for result in results)
    assert other["value"] < honest["value"]
    assert other["high"] >= honest["high"] - 1e-9
    assert other["high_if_random"] < other["high"]
    assert honest["high_if_random"] is None
