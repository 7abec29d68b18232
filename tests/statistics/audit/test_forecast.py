"""What a plan promises before anybody labels is what its audits then find."""

from dataclasses import replace

import numpy as np
import pytest
from audit_making import make_comments, make_plan

from modwatch.audits.descriptions import describe_forecast, describe_plan
from modwatch.statistics.audit.estimates import ENOUGH_POSITIVES, AuditEstimator
from modwatch.statistics.audit.forecast import METRICS, forecast, sufficient
from modwatch.statistics.audit.plan import planned_calibrations, planned_strata
from modwatch.statistics.audit.sample_design import ScoreCounts, design
from modwatch.statistics.audit.stratified import StratumCounts
from modwatch.statistics.recalibration import Calibration
from modwatch_lab.audit_designs import draw_positives, hostile, routed_labels


def test_a_forecast_of_a_plan_is_always_the_same():
    plan = make_plan(make_comments())
    assert forecast(plan) == forecast(plan)
    assert [item.metric for item in forecast(plan)] == list(METRICS)


def test_more_labels_are_forecast_to_tell_more():
    comments = make_comments()
    few, many = (forecast(make_plan(comments, labels)) for labels in (100, 2_000))
    for before, after in zip(few, many, strict=True):
        assert after.high - after.low < 0.7 * (before.high - before.low)
        assert after.insufficient <= before.insufficient


def test_a_second_stage_counts():
    comments = make_comments()
    one = make_plan(comments, 300)
    two = replace(one, second_stage_labels=600, first_stage_share=1 / 3)
    width = [forecast(plan)[2].high - forecast(plan)[2].low for plan in (one, two)]
    assert width[1] < 0.8 * width[0]


def test_few_labels_known_beforehand_make_the_forecast_less_sure():
    plan = make_plan(make_comments(prevalence=0.02), 150)
    known, unknown = (
        replace(plan, calibrations={"unflagged": Calibration(labels=labels, positives=positives)})
        for labels, positives in ((100_000, 1_000), (50, 0))
    )
    assert forecast(unknown)[0].insufficient > forecast(known)[0].insufficient


def test_where_nothing_can_be_estimated_it_says_so():
    plan = make_plan(make_comments(), 100)
    strata = tuple(replace(item, score=0.0) for item in plan.strata)
    found = forecast(replace(plan, strata=strata))[0]
    assert (found.insufficient, found.value) == (1.0, None)
    assert "recall cannot be estimated" in describe_forecast(replace(plan, strata=strata))


def test_it_states_what_the_forecast_rests_on():
    plan = make_plan(make_comments(), 300)
    assert describe_forecast(plan).startswith("by the scores alone: recall about 0.")
    source = "labels of the comments routed from 2026-01-05 to 2026-01-07"
    known = {
        "flagged": Calibration(source=source, labels=1_200, positives=90),
        "unflagged": Calibration(source=source, labels=3_000, positives=7),
    }
    assert describe_forecast(replace(plan, calibrations=known)).startswith(
        f"by {source} (90 positives among 1,200 flagged and 7 positives among 3,000 unflagged): "
    )
    expected = {"unflagged": Calibration(intercept=1.0, source="expected prevalence")}
    assert "the prevalence that was expected" in describe_plan(replace(plan, calibrations=expected))


def actual(population, made, generator, repetitions):
    """Return many audits by a design."""
    sides = (made.flagged, population.flagged), (made.unflagged, population.unflagged)
    counts = []
    for planned, side in sides:
        positives = np.bincount(planned.strata.assign(side.score), side.label).astype(int)
        found = draw_positives(
            planned.population, positives, planned.labels, generator, repetitions=repetitions
        )
        counts.append(
            StratumCounts.from_arrays(
                population=planned.population, labels=planned.labels, positives=found,
                score=planned.score,
            ).weighted()
        )  # fmt: skip
    comments = population.flagged.label.size, population.unflagged.label.size
    return AuditEstimator(flagged=counts[0], unflagged=counts[1], comments=comments)


def test_which_audits_have_an_estimate_is_what_each_alone_says():
    population = hostile("300 comments")
    sides = population.flagged, population.unflagged
    made = design(*(ScoreCounts.from_scores(side.score) for side in sides), 40)
    audits = actual(population, made, np.random.default_rng(0), 60)
    found = sufficient(audits, "recall")
    assert 0 < found.sum() < 60
    enough = audits.unflagged.positives.sum(-1) >= ENOUGH_POSITIVES
    assert (found == enough).all()


@pytest.mark.simulation
def test_audits_are_as_wide_as_their_plans_forecast():
    """With labels of a random slice; an audit's prevalence is only known to a third or so."""
    population = hostile("30 % hidden")
    generator = np.random.default_rng(5)
    sides = population.flagged, population.unflagged
    scores = [ScoreCounts.from_scores(side.score) for side in sides]
    ratios, chances = [], []
    for _ in range(3):
        made = design(*scores, 1_000, known=routed_labels(population, 1_000, generator))
        plan = replace(
            make_plan(make_comments()),
            population=tuple(
                replace(day, comments=sum(item.comments for item in scores) if not number else 0,
                        flagged=scores[0].comments if not number else 0)
                for number, day in enumerate(make_plan(make_comments()).population)
            ),
            strata=planned_strata(made),
            calibrations=planned_calibrations(made),
        )  # fmt: skip
        result = forecast(plan)[0]
        audits = actual(population, made, generator, 100)
        given = sufficient(audits, "recall")
        ends = audits.interval_estimate("recall")
        chances.append((result.insufficient, 1 - given.mean()))
        ratios.append((result.high - result.low) / np.median((ends.high - ends.low)[given]))
    assert 0.7 < np.median(ratios) < 1.4
    forecast_, found = np.mean(chances, axis=0)
    assert forecast_ == pytest.approx(found, abs=0.25)
