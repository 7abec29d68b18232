"""Estimates that allow for errors of the annotators: coverage, extremes, and bad input."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from audit_making import NOW, Comments, make_comments, make_plan

from modwatch.statistics.audit.confirmation_rules import planned_rules
from modwatch.statistics.audit.draw import DrawnComment, draw
from modwatch.statistics.audit.labels import AuditLabel, in_order, labels_demanded
from modwatch.statistics.audit.plan import SIDES, AuditPlan
from modwatch.statistics.audit.results import Evidence, computed

SEED = "5" * 64
PEOPLE = ("ann", "bob", "cem")
COMMENTS = make_comments(30_000, prevalence=0.05)

Say = Callable[[DrawnComment, str], int]


def plan_of(comments: Comments, labels: int, share: float = 0.2, **changes: Any) -> AuditPlan:
    """Return a plan with an expected share of confirmations."""
    plan = make_plan(comments, labels)
    strata = [(one.side, one.labels, one.score) for one in plan.strata]
    rules = planned_rules(strata, share)
    return replace(plan, **{"confirmations": rules, **changes})


def drawn_by(plan: AuditPlan, comments: Comments, seed: str = SEED) -> Sequence[DrawnComment]:
    return draw(plan, comments.parts, [item.labels for item in plan.strata], seed).comments


def all_labels(
    plan: AuditPlan, drawn: Sequence[DrawnComment], say: Say, people: Sequence[str] = PEOPLE
) -> list[AuditLabel]:
    """Return all labels that the plan demands, as far as there are people."""
    made: list[AuditLabel] = []
    for comment in drawn:
        mine: list[AuditLabel] = []
        for number, name in enumerate(people):
            if mine and labels_demanded(plan, comment, mine) <= number:
                break
            mine.append(
                AuditLabel(
                    day=comment.day, comment_id=comment.comment_id, labeller=name, action="label",
                    label=say(comment, name), decided_at=NOW.replace(minute=number).isoformat(),
                    decision="00",
                )
            )  # fmt: skip
        made += mine
    return made


def erring(truth: Mapping[str, int], up: float, down: float, rng: np.random.Generator) -> Say:
    def say(item: DrawnComment, _: str) -> int:
        toxic = truth[item.comment_id]
        return toxic ^ int(rng.random() < (down if toxic else up))

    return say


def result_of(
    plan: AuditPlan, drawn: Sequence[DrawnComment], labels: Sequence[AuditLabel]
) -> dict[str, Any]:
    return computed(Evidence(plan=plan, samples=[drawn], population={}, labels=labels))


def figure(result: Mapping[str, Any], metric: str) -> dict[str, Any]:
    return next(item for item in result["figures"] if item["metric"] == metric)


def taken_for_true(
    plan: AuditPlan, drawn: Sequence[DrawnComment], labels: Sequence[AuditLabel]
) -> Mapping[str, Any]:
    """Return the result if every final label is true."""
    return result_of(replace(plan, confirmations={}), drawn, labels)


def holds(item: Mapping[str, Any], truth: float) -> bool:
    low = 0.0 if item["low"] is None else item["low"]
    high = 1.0 if item["high"] is None else item["high"]
    return bool(low <= truth <= high)


@pytest.mark.simulation
def test_intervals_hold_where_annotators_err_and_uncorrected_ones_do_not():
    comments = make_comments(20_000, prevalence=0.02, seed=3)
    plan = plan_of(comments, 1000)
    rng = np.random.default_rng(4)
    corrected = uncorrected = 0
    prices = []
    for number in range(6):
        parts = replace(plan, audit=f"a{number}")
        drawn = drawn_by(parts, comments)
        labels = all_labels(parts, drawn, erring(comments.truth, 0.02, 0.2, rng))
        result = result_of(parts, drawn, labels)
        corrected += holds(figure(result, "recall"), comments.recall)
        first = [label for label in labels if label.labeller == PEOPLE[0]]
        single = result_of(replace(parts, confirmations={}), drawn, first)
        uncorrected += holds(figure(single, "recall"), comments.recall)
        prices.append(len(labels) / len(drawn) - 1)
    assert corrected >= 5
    assert uncorrected <= 2
    assert np.mean(prices) < 0.25


def test_error_rates_are_found():
    comments = make_comments(60_000, prevalence=0.04, seed=3)
    plan = plan_of(comments, 4000)
    drawn = drawn_by(plan, comments)
    say = erring(comments.truth, 0.02, 0.2, np.random.default_rng(5))
    errors = result_of(plan, drawn, all_labels(plan, drawn, say))["label_errors"]
    assert errors["enough"]
    assert 0 < errors["overturned"] <= errors["third_labels"] <= errors["confirmed"]
    assert errors["missing"] == 0
    rates = errors["rates"]["unflagged"]
    for name, true in (("false_positive", 0.02), ("false_negative", 0.2)):
        assert rates[name]["low"] - 0.01 <= true <= rates[name]["high"] + 0.01


def test_infallible_annotators_give_nearly_the_uncorrected_estimate():
    plan = plan_of(COMMENTS, 1500)
    drawn = drawn_by(plan, COMMENTS)
    labels = all_labels(plan, drawn, lambda item, _: COMMENTS.truth[item.comment_id])
    made = [how(plan, drawn, labels) for how in (result_of, taken_for_true)]
    for metric in ("recall", "precision", "prevalence_unflagged"):
        one, other = (figure(result, metric) for result in made)
        assert one["value"] == pytest.approx(other["value"], rel=0.15)
        assert one["high"] - one["low"] <= 1.4 * (other["high"] - other["low"])


def test_a_side_that_was_labelled_whole_has_the_width_of_labelling_errors():
    comments = make_comments(4000, prevalence=0.05)
    plan = plan_of(comments, 1200)
    every = tuple(
        replace(item, labels=item.population) if item.side == "flagged" else item
        for item in plan.strata
    )
    plan = replace(plan, strata=every)
    drawn = drawn_by(plan, comments)
    say = erring(comments.truth, 0.02, 0.2, np.random.default_rng(6))
    labels = all_labels(plan, drawn, say)
    whole = figure(result_of(plan, drawn, labels), "precision")
    assert whole["all_labelled"]
    assert whole["low"] < whole["high"]
    plain = figure(taken_for_true(plan, drawn, labels), "precision")
    assert plain["low"] == plain["high"]


@pytest.mark.simulation
def test_one_person_cannot_confirm_and_the_interval_widens_to_the_bounds():
    plan, wider, covered = plan_of(COMMENTS, 800), [], 0
    for seed in range(3):
        drawn = drawn_by(plan, COMMENTS, f"seed {seed}")
        say = erring(COMMENTS.truth, 0.02, 0.2, np.random.default_rng(11))
        labels = all_labels(plan, drawn, say, PEOPLE[:1])
        result = result_of(plan, drawn, labels)
        errors, recall = result["label_errors"], figure(result, "recall")
        assert not errors["enough"]
        assert errors["confirmed"] == 0
        assert result["short_of_labels"] == errors["missing"] > 0
        assert errors["rates"]["unflagged"]["false_negative"]["high"] > 0.2
        plain = figure(taken_for_true(plan, drawn, labels), "recall")
        wider.append((recall["high"] - recall["low"]) / (plain["high"] - plain["low"]))
        covered += holds(recall, COMMENTS.recall)
    assert np.mean(wider) > 1.1
    assert covered >= 2


def test_of_two_people_no_third_is_needed_for_an_estimate():
    plan = plan_of(COMMENTS, 800)
    drawn = drawn_by(plan, COMMENTS)
    say = erring(COMMENTS.truth, 0.02, 0.1, np.random.default_rng(7))
    result = result_of(plan, drawn, all_labels(plan, drawn, say, PEOPLE[:2]))
    assert result["missing"]["disputed"] == result["label_errors"]["missing"] > 0
    assert figure(result, "recall")["status"] == "ok"
    assert figure(result, "recall")["low_if_random"] is None  # both labels count


@pytest.mark.parametrize(("side", "wrong"), [*zip(SIDES, [PEOPLE[:1], PEOPLE[1:]], strict=True)])
def test_a_side_whose_confirmations_all_overturn_gives_no_figures_and_the_reason(side, wrong):
    """Whoever labelled it first was wrong about everything, or both others were."""
    plan = plan_of(COMMENTS, 800, share=0.5)
    drawn = drawn_by(plan, COMMENTS)
    numbers = {*plan.of_side(side)}

    def say(item: DrawnComment, name: str) -> int:
        return COMMENTS.truth[item.comment_id] ^ int(item.stratum in numbers and name in wrong)

    result = result_of(plan, drawn, all_labels(plan, drawn, say))
    assert result["label_errors"]["overturned"] > 0
    for row in result["figures"]:
        assert (row["status"], row["value"], row["bound"]) == ("insufficient", None, None)
        assert (row["low"], row["high"]) == (None, None)
        assert "annotators disagree so often" in row["reason"]


def test_the_reported_interval_allows_for_shared_errors():
    plan = plan_of(COMMENTS, 1500)
    drawn = drawn_by(plan, COMMENTS)
    say = erring(COMMENTS.truth, 0.02, 0.2, np.random.default_rng(9))
    labels = all_labels(plan, drawn, say)
    result = result_of(plan, drawn, labels)
    alone = result_of(
        replace(plan, shared_false_positive=0.0, shared_false_negative=0.0), drawn, labels
    )
    for metric in ("recall", "precision", "prevalence"):
        assert figure(result, metric)["value"] != figure(alone, metric)["value"]


def test_an_adjudicated_comment_counts_with_its_blind_labels():
    plan = plan_of(COMMENTS, 800)
    drawn = drawn_by(plan, COMMENTS)
    labels = all_labels(plan, drawn, lambda item, _: COMMENTS.truth[item.comment_id])
    lead = replace(labels[0], labeller="lee", action="adjudicate", label=1 - labels[0].label)
    one, other = result_of(plan, drawn, labels), result_of(plan, drawn, [*labels, lead])
    assert one["figures"] == other["figures"]


def test_agreement_of_confirmations_represents_all_labels():
    comments = make_comments(60_000, prevalence=0.03, seed=3)
    plan = plan_of(comments, 1500)
    drawn = drawn_by(plan, comments, "seed 0")
    say = erring(comments.truth, 0.02, 0.2, np.random.default_rng(0))
    labels = all_labels(plan, drawn, say)
    result = result_of(plan, drawn, labels)
    observed, kappa = result["agreement"]
    # Of the labels that nobody would confirm, too: as often as two people with these rates agree.
    toxic = np.mean([comments.truth[comment.comment_id] for comment in drawn])
    expected = 1 - 2 * (toxic * 0.2 * 0.8 + (1 - toxic) * 0.02 * 0.98)
    assert observed["low"] <= expected <= observed["high"]
    among = [mine for mine in in_order(labels).values() if len(mine) > 1]
    assert np.mean([mine[0].label == mine[1].label for mine in among]) < observed["low"]
    assert (kappa["metric"], kappa["n"]) == ("cohen_kappa", len(among))
