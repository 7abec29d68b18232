import pytest
from sqlalchemy import Engine, text

from modwatch.errors import QueueError
from modwatch.review import people
from modwatch.review.people import SMALLER_GROUPS, Moderator


@pytest.fixture
def crowd(engine: Engine) -> Engine:
    """Twelve people of a, nine of b, four of c."""
    number = 0
    for group, size in (("a", 12), ("b", 9), ("c", 4)):
        for _ in range(size):
            number += 1
            people.create_moderator(engine, f"p{number:03}z", "moderator", group=group)
    return engine


def test_small_groups_are_only_seen_together(crowd: Engine) -> None:
    assert people.group_sizes(crowd) == {"a": 12, SMALLER_GROUPS: 13}
    assert people.group_sizes(crowd, minimum=9) == {"a": 12, "b": 9}  # c alone would be seen
    assert people.group_sizes(crowd, minimum=30) == {}
    with pytest.raises(QueueError, match="below 5"):
        people.group_sizes(crowd, minimum=1)


def test_people_describe_themselves_and_take_it_back(engine: Engine, ann: Moderator) -> None:
    people.describe_group(engine, ann.id, "aged 30 to 45")
    people.describe_group(engine, ann.id, " aged 46 or more ")
    with engine.connect() as connection:
        stored = connection.execute(text("SELECT group_name FROM moderator_group")).all()
    assert stored == [("aged 46 or more",)]
    people.describe_group(engine, ann.id, None)
    with engine.connect() as connection:
        assert connection.execute(text("SELECT FROM moderator_group")).all() == []
    assert [event.action for event in people.events(engine)] == ["create"]  # no trace is left


@pytest.mark.parametrize("group", ["", " ", "a\0", "a\nb", "\ud800", "x" * 101, SMALLER_GROUPS])
def test_unusable_groups_are_refused(engine: Engine, ann: Moderator, group: str) -> None:
    with pytest.raises(QueueError, match="short line"):
        people.describe_group(engine, ann.id, group)
    with pytest.raises(QueueError, match="no moderator 99"):
        people.describe_group(engine, 99, None)
