import pytest
from sqlalchemy import Engine, text

from modwatch.errors import QueueError
from modwatch.review import people
from modwatch.review.events import recent_events
from modwatch.review.people import Moderator


def test_people_describe_themselves_and_take_it_back(engine: Engine, ann: Moderator) -> None:
    people.describe_group(engine, ann.id, "aged 30 to 45")
    people.describe_group(engine, ann.id, " aged 46 or more ")
    with engine.connect() as connection:
        stored = connection.execute(text("SELECT group_name FROM moderator_group")).all()
    assert stored == [("aged 46 or more",)]
    people.describe_group(engine, ann.id, None)
    with engine.connect() as connection:
        assert connection.execute(text("SELECT FROM moderator_group")).all() == []
    assert [event.action for event in recent_events(engine)] == ["create"]  # no trace is left


@pytest.mark.parametrize("group", ["", " ", "a\0", "a\nb", "\ud800", "x" * 101])
def test_unusable_groups_are_refused(engine: Engine, ann: Moderator, group: str) -> None:
    with pytest.raises(QueueError, match="shorten it"):
        people.describe_group(engine, ann.id, group)
    with pytest.raises(QueueError, match="moderator 99 does not exist"):
        people.describe_group(engine, 99, None)
