"""Confirmations: what a plan has confirmed, what it costs, and who may not be left out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from modwatch.statistics.audit.confirmation_rules import (
    FALSE_NEGATIVE,
    FALSE_POSITIVE,
    ConfirmationRule,
    expected_confirmations,
    planned_rules,
)

STRATA = st.lists(st.tuples(st.integers(0, 2000), st.floats(0, 1)), min_size=1, max_size=8)


def spent(rules: dict[str, ConfirmationRule], sides: dict[str, list[tuple[int, float]]]) -> float:
    return expected_confirmations(rules, listed(sides))


def listed(sides):
    return [(name, *item) for name, strata in sides.items() for item in strata]


@given(STRATA, STRATA, st.floats(0.02, 1))
def test_confirmations_cost_at_most_their_budget_and_a_little(flagged, unflagged, share):
    sides = {"flagged": flagged, "unflagged": unflagged}
    rules = planned_rules(listed(sides), share)
    whole = sum(labels for _, labels, _ in listed(sides))
    # Every label has a small probability, which is outside the budget, and shares are rounded.
    assert spent(rules, sides) <= (share + 0.03) * whole + 1
    for rule in rules.values():
        assert min(rule.by_label) >= min(0.02, share) - 1e-4


def test_labels_that_contradict_the_decision_are_confirmed_with_probability_one():
    strata = [("flagged", 100, 0.9), ("unflagged", 700, 0.001), ("unflagged", 200, 0.05)]
    rules = planned_rules(strata, 0.2)
    assert (rules["unflagged"].positive, rules["flagged"].negative) == (1.0, 1.0)
    assert rules["flagged"].positive > 0.5 > rules["unflagged"].negative


def test_the_expected_number_is_that_of_simulated_annotators():
    rng = np.random.default_rng(1)
    rule = {"unflagged": ConfirmationRule(negative=0.1, positive=1.0)}
    truth = rng.random(400_000) < 0.2
    labels = truth ^ (rng.random((2, truth.size)) < np.where(truth, FALSE_NEGATIVE, FALSE_POSITIVE))
    confirmed = rng.random(truth.size) < np.where(labels[0], 1.0, 0.1)
    further = confirmed.sum() + (confirmed & (labels[0] != labels[1])).sum()
    expected = expected_confirmations(rule, [("unflagged", truth.size, 0.2)])
    assert further == pytest.approx(expected, rel=0.01)


@given(st.integers(0, 2**64 - 1), st.floats(0, 1), st.floats(0, 1))
def test_what_is_confirmed_depends_on_the_lower_half_of_the_key_alone(key, negative, positive):
    rule = ConfirmationRule(negative=negative, positive=positive)
    assert rule.confirmed(key) == rule.confirmed(key & 0xFFFFFFFF)
    more = ConfirmationRule(negative=max(negative, positive), positive=positive)
    assert {*rule.confirmed(key)} <= {*more.confirmed(key)}


def test_the_share_of_confirmed_comments_is_that_of_the_rule():
    keys = np.random.default_rng(2).integers(0, 2**64, 20_000, dtype=np.uint64)
    rule = ConfirmationRule(negative=0.03, positive=0.6)
    found = [rule.confirmed(int(key)) for key in keys]
    assert np.mean([0 in match for match in found]) == pytest.approx(0.03, abs=0.005)
    assert np.mean([1 in match for match in found]) == pytest.approx(0.6, abs=0.015)


def test_no_one_confirms_anything_at_a_share_of_zero():
    assert planned_rules([("flagged", 9, 0.5)], 0.0) == {}
