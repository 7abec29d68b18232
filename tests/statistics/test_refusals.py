"""Wrong arguments of the pure functions of `modwatch.statistics`, and what is said of them."""

import datetime
from collections.abc import Callable

import numpy as np
import pytest

from modwatch.common.errors import DesignError, MetricInputError
from modwatch.statistics import (
    agreement,
    conformal_prediction,
    label_truth,
    recalibration,
    review_scores,
)
from modwatch.statistics.audit import sample_design
from modwatch.statistics.audit.allocation import beyond as allocation_beyond
from modwatch.statistics.audit.allocation import neyman, proportional
from modwatch.statistics.audit.confirmation_rules import ConfirmationRule, planned_rules
from modwatch.statistics.audit.draw import Scored
from modwatch.statistics.audit.estimates import AuditEstimator
from modwatch.statistics.audit.finite_inversion import hypergeometric_interval
from modwatch.statistics.audit.inversion_interval import inversion_interval
from modwatch.statistics.audit.share_interval import IntervalOptions
from modwatch.statistics.audit.stages import next_stage
from modwatch.statistics.audit.stratified import StratumCounts, combine
from modwatch.statistics.collaboration import collaborative, model_metrics
from modwatch.statistics.collaboration.model_comparison import ScoredByModel, compare_models
from modwatch.statistics.disagreement import primary_labels
from modwatch.statistics.drift import cbpe, distance, profile
from modwatch.statistics.sampling import random_keys

NAN, INF = float("nan"), float("inf")


STRATA = {"population": [10, 10], "labels": [5, 5], "positives": [1, 2], "score": [0.1, 0.2]}


def strata(**changes):
    return StratumCounts.from_arrays(**STRATA | changes)


def beyond(sizes, first, labels):
    return allocation_beyond(np.ones(len(sizes)), np.array(sizes), np.array(first), labels)


def stage(population, labels, positives):
    return StratumCounts.from_arrays(
        population=[population], labels=[labels], positives=positives, score=[0.1]
    )


def combined(*stages, shares, population=(9,)):
    return combine(stages, shares, population=population)


def counts(score, count):
    return sample_design.ScoreCounts(score=np.array(score), count=np.array(count))


def designed(labels, scores=(0.5,) * 100):
    side = sample_design.ScoreCounts.from_scores(scores)
    return sample_design.design(side, side, labels)


def cut(score, bins=8, **more):
    return sample_design.strata(score, bins=bins, **more)


def scored(**changes):
    given = {
        "day": datetime.date(2026, 1, 5),
        "comment_id": ["a"],
        "prob": np.array([0.5], np.float32),
        "flagged": np.array([False]),
    }
    return Scored(**given | changes)


def audit():
    return AuditEstimator(flagged=None, unflagged=None, comments=(1, 1))


def known_labels(**changes):
    fields = {"score": [0.5], "label": [1], "weight": [1.0]} | changes
    arrays = {name: np.array(item, float) for name, item in fields.items()}
    return recalibration.KnownLabels(**arrays, source="slice")


def compared(**changes):
    one = ScoredByModel(prob=[0.1, 0.9], threshold=0.5)
    return compare_models([0, 1], one, one, **{"review_fraction": 0.1} | changes)


def expected(prob, review_fraction=0.1, threshold=0.5):
    score = np.array(prob)
    return [
        *cbpe.expected_performance(
            score, score, review_fraction=review_fraction, threshold=threshold
        )
    ]


def alpha(units, labels, **options):
    return agreement.krippendorff_alpha(units, labels, rng=np.random.default_rng(0), **options)


def given_labels(**changes):
    values = {"prob": 0.5, "group": 0, "given": 1, "toxic": 0} | changes
    return label_truth.GivenLabels(**{name: np.array([item]) for name, item in values.items()})


def known_errors(**changes):
    return label_truth.KnownErrors(**{"answers": 1, "compared": 1, "shared": 0} | changes)


def reviewed(prob=(0.5,), strategy="hybrid", **changes):
    return review_scores(list(prob), strategy, **changes)


def predicted(**changes):
    return conformal_prediction(
        **{"y_true": [0, 1], "y_prob": [0.2, 0.8], "new_prob": [0.5]} | changes
    )


LENGTHS = "inconsistent numbers|for \\d+ strata|equal lengths|different lengths"

#: Plans and wishes: what is asked for cannot be had.
DESIGNS: dict[str, tuple[Callable[[], object], str]] = {
    "no strata": (lambda: proportional([], 10), "the number of comments of each"),
    "an empty stratum": (lambda: proportional([10, 0], 10), "must not contain empty strata"),
    "few labels": (lambda: proportional([10, 10], 3), "3 labels are too few for 2 strata"),
    "a negative budget": (lambda: proportional([10, 10], -1), "too few"),
    "half a label": (lambda: proportional([10, 10], 10.5), "must be whole"),
    "a worst case below 1": (lambda: neyman([9], [0.1], 9, worst_case=0.9), "got 0.9"),
    "no worst case": (lambda: neyman([9], [0.1], 9, worst_case=NAN), "got nan"),
    "fewer than given": (lambda: beyond([9, 9], [3, 3], 5), "5 labels are fewer than the 6"),
    "a rule": (lambda: ConfirmationRule(negative=1.1, positive=0.0), "of a confirmation must be"),
    "a share above 1": (lambda: planned_rules([], 1.1), r"must be in \[0, 1\]"),
    "no bins": (lambda: sample_design.DesignOptions(bins=0), "at least 1, got 0"),
    "prevalence 0": (lambda: sample_design.DesignOptions(expected_prevalence=0.0), "got 0.0"),
    "all flagged": (lambda: sample_design.DesignOptions(flagged_share=1.0), "flagged_share must"),
    "a variance": (lambda: sample_design.DesignOptions(worst_case=0.9), "at least 1, got 0.9"),
    "an empty period": (lambda: designed(100, ()), "The period has no comments"),
    "a budget of NaN": (lambda: designed(NAN), "must be whole"),
    "cut nothing": (lambda: cut([]), "There are no comments"),
    "cut: bins": (lambda: cut([0.5], bins=0), "at least 1, got 0"),
    "interval sides": (lambda: IntervalOptions(sides="left"), "got 'left'"),
    "level 1": (lambda: IntervalOptions(level=1.0), r"must be in \(0.5, 1\)"),
    "all labelled": (lambda: next_stage(stage(9, 9, [1]), 10), "Every comment is labelled already"),
    "few for a stage": (lambda: next_stage(strata(), 3), "3 labels are too few for 2 strata"),
    "shift to 0": (lambda: recalibration.shift_to_mean([0.5], 0.0), r"must be in \(0, 1\)"),
    "shift nothing": (lambda: recalibration.shift_to_mean([], 0.1), "There are no comments"),
    "no labels": (
        lambda: recalibration.calibrated([0.5], [1], known_labels(score=[], label=[], weight=[])),
        "no labels",
    ),
    "no comments": (lambda: recalibration.calibrated([0.5], [0], known_labels()), "no comments"),
    "no salt": (lambda: random_keys(["a"], day="d", design_digest="d", salt=""), "salt"),
}  # fmt: skip

#: Arrays and numbers of the wrong kind, length or range.
INPUTS: dict[str, tuple[Callable[[], object], str]] = {
    "a population of NaN": (lambda: proportional([10, NAN], 10), "NaN"),
    "a spread too few": (lambda: neyman([10, 10], [0.1], 10), LENGTHS),
    "a spread of NaN": (lambda: neyman([10, 10], [0.1, NAN], 10), "NaN"),
    "strata: none": (lambda: strata(**dict.fromkeys(STRATA, ())), "There are no strata"),
    "strata: lengths": (lambda: strata(labels=[5]), "must have equal lengths"),
    "strata: score": (lambda: strata(score=[0.1, 1.1]), r"score must contain values in \[0, 1\]"),
    "strata: NaN": (lambda: strata(score=[0.1, NAN]), "score contains NaN"),
    "strata: unlabelled": (lambda: strata(labels=[0, 5]), "A stratum has no labels"),
    "strata: more labels": (lambda: strata(labels=[5, 11]), "more labels than comments"),
    "strata: more positives": (lambda: strata(positives=[6, 0]), "more positives than labels"),
    "strata: halves": (lambda: strata(positives=[0.5, 0]), "must contain whole numbers"),
    "stages: a half": (lambda: combined(stage(9, 2, [1]), shares=[0.5]), "sum to 1, got 0.5"),
    "stages: two shares": (lambda: combined(stage(9, 2, [1]), shares=[0.5, 0.5]), "Each stage"),
    "stages: another size": (
        lambda: combined(stage(8, 2, [1]), shares=[1.0]), "Stage 1 represents 8 comments, but 9"
    ),
    "stages: repetitions": (
        lambda: combined(stage(9, 2, [1]), stage(7, 2, [[1], [0]]), shares=[0.5, 0.5]),
        "repetitions",
    ),
    "scores: range": (lambda: counts([1.5], [1]), "score"),
    "scores: lengths": (lambda: counts([0.5], [1, 2]), "must have equal lengths"),
    "scores: halves": (lambda: counts([0.5], [0.5]), "count"),
    "cut: expected": (lambda: cut([0.1, 0.2], expected=[0.5, 2.0]), "expected"),
    "assign outside": (
        lambda: sample_design.Strata(edges=(0.5,)).assign([1.5]), "score"
    ),
    "drawn: ids": (lambda: scored(comment_id=["a", "b"]), "inconsistent numbers of samples"),
    "drawn: traits": (lambda: scored(traits={"language": []}), "inconsistent numbers of samples"),
    "drawn: NaN": (lambda: scored(prob=np.array([np.nan], np.float32)), "prob contains"),
    "audit: estimate": (lambda: audit().estimate("auc"), "Metric must be one of .*got 'auc'"),
    "audit: bound": (lambda: audit().bound("kappa", upper=True), "Metric must be one of"),
    "sample: positives": (lambda: hypergeometric_interval(np.array(2), 1, 9), "no more positives"),
    "model: bins": (
        lambda: model_metrics.expected_calibration_error([1], [0.5], n_bins=0), "n_bins"
    ),
    "review: interpolation": (
        lambda: collaborative.oc_auprc([1], [0.5], [1], review_fraction=0.5, interpolation="x"),
        "interpolation",
    ),
    "review: strategy": (lambda: reviewed(strategy="chance"), "must be one of .* got 'chance'"),
    "review: range": (lambda: reviewed([2]), "y_prob"),
    "review: cost": (
        lambda: reviewed(strategy="cost", costs=(-1, 1)), "cost of a false_negative must be"
    ),
    "review: costs": (
        lambda: reviewed(strategy="cost", costs=(1, [1, 2])), "2 costs of a false_positive for 1 "
    ),
    "review: flags": (lambda: reviewed(flagged=[True, False]), "flagged 2"),
    "review: calibrated": (lambda: reviewed(calibrated=[7.0]), "calibrated"),
    "models: margin": (lambda: compared(margin=-1), "margin"),
    "models: fraction": (lambda: compared(review_fraction=2), "review_fraction"),
    "models: groups": (lambda: compared(groups=[[]]), "groups of 1 comments for 2"),
    "primary: sum": (lambda: primary_labels([0.6, 0.6], 0.1), "sum to 1"),
    "primary: one class": (lambda: primary_labels([1.0], 0.1), "at least two classes"),
    "primary: chance": (lambda: primary_labels([0.6, 0.4], 0.5), r"must be in \[0, 0.5\)"),
    "primary: rates": (lambda: primary_labels([[0.6, 0.4]], [0.1, 0.2]), "one for each item"),
    "expected: NaN": (lambda: expected([0.5, NAN]), "prob"),
    "expected: range": (lambda: expected([1.5]), "prob"),
    "expected: threshold": (lambda: expected([0.5], threshold=-1), "threshold"),
    "bins: lengths": (lambda: distance.jensen_shannon([1, 2], [1]), "inconsistent numbers"),
    "bins: NaN": (lambda: distance.jensen_shannon([NAN, 1], [1, 1]), "NaN"),
    "bins: zeros": (
        lambda: distance.population_stability_index([1, 1], [0, 0]), "reference must be counts"
    ),
    "a part of nothing": (lambda: distance.share(0, 0), "is no share"),
    "histogram: above": (lambda: profile.histogram([0.26], 0.25), "outside"),
    "rows: no weight": (lambda: profile.weighted_rows(np.arange(2), [0.0, 0.0]), "weights must be"),
    "rows: negative": (lambda: profile.weighted_rows(np.arange(2), [1.0, -1.0]), "weights must be"),
    "shift: range": (lambda: recalibration.shift_to_mean([1.5], 0.1), "score must"),
    "map: score": (lambda: recalibration.Calibration().probability([1.5]), "score must"),
    "map: intercept": (lambda: recalibration.Calibration(intercept=INF), "finite"),
    "map: slope": (lambda: recalibration.Calibration(slope=-0.1), "slope of at least 0"),
    "known: label": (lambda: known_labels(label=[2]), "other than 0 and 1"),
    "known: lengths": (lambda: known_labels(label=[1, 0]), "inconsistent numbers"),
    "known: weight": (lambda: known_labels(weight=[0.0]), "weight must"),
    "a hidden part": (
        lambda: inversion_interval(strata().weighted(), hidden_share=1.5), r"in \[0, 1\], got 1.5"
    ),
    "pairs: lengths": (lambda: agreement.cohen_kappa([0, 1], [0]), "y1 2, y2 1"),
    "pairs: NaN": (lambda: agreement.observed_agreement([0, NAN], [0, 1]), "y1 contains NaN"),
    "units: NaN": (lambda: alpha([1], [NAN]), "labels contains NaN"),
    "units: resamples": (lambda: alpha([1, 1], [0, 1], resamples=0), "at least 1, got 0"),
    "shared: negative": (lambda: label_truth.ErrorEvidence.sharing(-0.1, -0.1), "shared"),
    "given: more": (lambda: given_labels(toxic=2), "label"),
    "sets: coverage": (lambda: predicted(coverage=1.0), "coverage must be between 0 and 1"),
    "sets: NaN": (lambda: predicted(new_prob=[NAN]), "new_prob contains NaN"),
    "sets: label": (lambda: predicted(y_true=[0, 2]), "y_true contains values other than 0 and 1"),
    "answers: more": (lambda: known_errors(wrong=2), "wrong"),
    "answers: repeated": (lambda: known_errors(repeated=2), "wrong"),
}  # fmt: skip


@pytest.mark.parametrize("name", DESIGNS)
def test_what_cannot_be_had_is_refused(name):
    call, message = DESIGNS[name]
    with pytest.raises(DesignError, match=message):
        call()


@pytest.mark.parametrize("name", INPUTS)
def test_what_does_not_fit_is_refused(name):
    call, message = INPUTS[name]
    with pytest.raises(MetricInputError, match=message):
        call()
