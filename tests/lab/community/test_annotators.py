import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from modwatch.common.errors import MetricInputError
from modwatch_lab.community.annotators import (
    GROUP_THRESHOLD,
    Person,
    annotators,
    simulate_labels,
)
from modwatch_lab.community.lexicon import GROUPS

SURE = Person(
    person_id="p", role="annotator", group=GROUPS[0], threshold=0.5, flip_rate=0.0, sensitivity=0.2
)
IDS = [f"c{i}" for i in range(20_000)]


def test_no_comments_and_one_toxicity_each():
    assert simulate_labels(SURE, [], []).shape == (0,)
    with pytest.raises(MetricInputError, match="shape \\(1,\\) for 2 comments"):
        simulate_labels(SURE, ["a", "b"], [0.4])


def test_people_are_more_sensitive_to_comments_about_their_group():
    own = simulate_labels(SURE, ["a", "b"], [0.4, 0.4], own_group=[True, False])
    assert own.tolist() == [1, 0]


@given(flip_rate=st.floats(0, 0.49), seed=st.integers(0, 9), round_number=st.integers(0, 3))
def test_the_same_question_gets_the_same_answer_whatever_else_is_asked(
    flip_rate, seed, round_number
):
    person = dataclasses.replace(SURE, flip_rate=flip_rate)
    together = simulate_labels(person, IDS[:30], [0.9] * 30, round_number=round_number, seed=seed)
    alone = [
        simulate_labels(person, [c], [0.9], round_number=round_number, seed=seed)[0]
        for c in IDS[:30]
    ]
    assert together.tolist() == alone


@pytest.mark.parametrize("flip_rate", [0.02, 0.1, 0.3])
def test_retest_disagreement_is_its_closed_form(flip_rate):
    person = dataclasses.replace(SURE, flip_rate=flip_rate)
    toxicity = np.random.default_rng(0).random(len(IDS))
    first, second = (simulate_labels(person, IDS, toxicity, round_number=n) for n in (0, 1))
    expected = 2 * flip_rate * (1 - flip_rate)
    assert (first != second).mean() == pytest.approx(
        expected, abs=4 * np.sqrt(expected * (1 - expected) / len(IDS))
    )
    truth = toxicity > 0.5
    assert (first != truth).mean() == pytest.approx(
        flip_rate, abs=4 * np.sqrt(flip_rate * (1 - flip_rate) / len(IDS))
    )


def test_slips_of_two_people_are_independent():
    one, two = (
        simulate_labels(
            dataclasses.replace(SURE, person_id=p, flip_rate=0.3), IDS, np.zeros(len(IDS))
        )
        for p in "ab"
    )
    assert abs(np.corrcoef(one, two)[0, 1]) < 4 / np.sqrt(len(IDS))


def test_groups_take_turns_and_differ_in_their_thresholds():
    people = annotators(400, seed=0)
    assert people == annotators(400, seed=0) != annotators(400, seed=1)
    assert len({person.person_id for person in people}) == 400
    for group, expected in zip(GROUPS, GROUP_THRESHOLD, strict=True):
        own = [person.threshold for person in people if person.group == group]
        assert len(own) == 100
        assert np.mean(own) == pytest.approx(expected, abs=0.04)
    assert all(0.04 <= person.flip_rate <= 0.16 for person in people)
