import random
from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from modwatch.common.errors import SettingsError
from modwatch.review.queue.lanes import Lane, Lanes, LowConfidence, load_lanes, place


def test_the_rules_that_come_with_modwatch_promise_something_for_each_strategy():
    lanes = load_lanes()
    for reason in ("uncertainty", "toxicity", "hybrid", "random_slice", "audit", "imported"):
        assert reason in lanes.reason


def test_a_file_of_ones_own_says_only_what_differs(tmp_path):
    own = tmp_path / "queue.toml"
    own.write_text('queue_by = "language"\n[reason.toxicity]\nhours = 1\n')
    lanes, shipped = load_lanes(own), load_lanes()
    assert lanes.queue_by == "language"
    assert lanes.for_reason("toxicity") == Lane(hours=1, turns=shipped.for_reason("toxicity").turns)
    assert lanes.for_reason("uncertainty") == shipped.for_reason("uncertainty")


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ("[reason.toxicity]\nhours = 0\n", "reason.toxicity.hours"),
        ("[reason.toxicity]\nhour = 3\n", "reason.toxicity.hour"),
        ('queue_by = "mood"\n', "queue_by"),
        ("[low_confidence]\nlabels = 12\n", "low_confidence.labels"),
        ("rank_pull = 2\n", "rank_pull"),
        ("no toml", "cannot be read as TOML"),
    ],
)
def test_impossible_rules_are_named(tmp_path, content, named):
    own = tmp_path / "queue.toml"
    own.write_text(content)
    with pytest.raises(SettingsError, match=named):
        load_lanes(own)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(SettingsError, match=r"none\.toml cannot be read"):
        load_lanes(tmp_path / "none.toml")


@example(turns=[0.0, 5e-324], seed=0)
@given(turns=st.lists(st.floats(0, 1_000), min_size=1, max_size=6), seed=st.integers(0, 9))
def test_every_reason_has_its_place_and_those_without_turns_come_last(turns, seed):
    lanes = Lanes(reason={f"r{i}": Lane(turns=weight) for i, weight in enumerate(turns)})
    order = lanes.order(random.Random(seed))
    assert sorted(order) == sorted(lanes.reason)
    idle = [lanes.reason[name].turns == 0 for name in order]
    assert idle == sorted(idle)


def test_the_first_in_turn_is_drawn_by_weight():
    lanes = Lanes(reason={"a": Lane(turns=6), "b": Lane(turns=3), "c": Lane(turns=1)})
    chance = random.Random(1)
    first = Counter(lanes.order(chance)[0] for _ in range(10_000))
    for name, share in (("a", 0.6), ("b", 0.3), ("c", 0.1)):
        assert abs(first[name] / 10_000 - share) < 4 * (share * (1 - share) / 10_000) ** 0.5


def test_comments_that_the_model_is_least_sure_of_go_to_several_people(new_item):
    lanes = Lanes(low_confidence=LowConfidence(uncertainty_from=0.24, labels=3))
    assert place(new_item("c", uncertainty=0.245), lanes).labels_wanted == 3
    assert place(new_item("c", uncertainty=0.23), lanes).labels_wanted == 1
    assert place(new_item("c", uncertainty=0.245, kind="confirmation"), lanes).labels_wanted == 1
    assert place(new_item("c", labels_wanted=2), lanes).labels_wanted == 2


def test_a_comment_without_a_language_is_in_the_general_queue(new_item):
    lanes = Lanes(queue_by="language")
    assert place(new_item("c", language="de"), lanes).queue == "de"
    assert place(new_item("c"), lanes).queue == "general"


def test_a_reason_may_have_a_queue_of_its_own(tmp_path, new_item):
    own = tmp_path / "queue.toml"
    own.write_text('queue_by = "language"\n[reason.audit]\nqueue = "audits"\n')
    lanes = load_lanes(own)
    assert place(new_item("c", reason="audit", language="de"), lanes).queue == "audits"
    assert place(new_item("c", reason="audit"), lanes).queue == "audits"
    assert place(new_item("c", language="de"), lanes).queue == "de"
    assert load_lanes().for_reason("audit").queue is None


@pytest.mark.parametrize("name", ["", "Audits", "-a", "two words", "a" * 51])
def test_a_queue_has_a_name_that_fits_an_address(tmp_path, name):
    own = tmp_path / "queue.toml"
    own.write_text(f'[reason.audit]\nqueue = "{name}"\n')
    with pytest.raises(SettingsError, match=r"reason\.audit\.queue"):
        load_lanes(own)
    assert Lane(queue="a" * 50).queue == "a" * 50
