import pytest
from hypothesis import given
from hypothesis import strategies as st

from modwatch.review.ratings import Ratings
from modwatch.review.simulated import SimulatedModerator


@given(ratings=st.lists(st.integers(0, 1), min_size=1, max_size=12), seed=st.integers(0, 50))
def test_the_first_people_give_every_rating_once_in_any_order_of_work(ratings, seed):
    source = Ratings(by_comment={"c": ratings}, seed=seed)
    people = list(range(len(ratings)))
    forwards = {person: source.of("c", person) for person in people}
    backwards = {person: source.of("c", person) for person in reversed(people)}
    assert forwards == backwards
    assert sorted(forwards.values()) == sorted(ratings)
    assert source.of("c", len(ratings) + 3) in ratings


@pytest.mark.parametrize("person", [0, 2, 7])
def test_everybody_gives_anybodys_rating_with_the_same_chance(person):
    names = [f"c{n}" for n in range(4_000)]
    source = Ratings(by_comment=dict.fromkeys(names, (1, 0, 0, 0)))
    share = sum(source.of(name, person) for name in names) / len(names)
    assert share == pytest.approx(0.25, abs=4 * 0.0069)  # four standard errors


def test_another_seed_gives_another_order():
    names = [f"c{n}" for n in range(200)]
    one, other = (Ratings(by_comment=dict.fromkeys(names, (1, 0)), seed=seed) for seed in (0, 1))
    same = sum(one.of(name, 0) == other.of(name, 0) for name in names)
    assert 60 < same < 140


def test_a_moderator_gives_ratings_whatever_the_truth_and_errs_elsewhere():
    person = SimulatedModerator(
        token="",
        false_positive_rate=1.0,
        false_negative_rate=1.0,
        seed=0,
        ratings=Ratings(by_comment={"rated": [1]}),
    )
    assert [person.label("rated", truth) for truth in (0, 1)] == [1, 1]
    assert [person.label("other", truth) for truth in (0, 1)] == [1, 0]


def test_the_ratings_are_not_shown():
    assert "rated" not in repr(Ratings(by_comment={"rated": [1]}))
