"""Groups that people choose, and those that they count in."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from databases import execute
from sqlalchemy import Engine, text

import modwatch
from modwatch.common.errors import QueueError
from modwatch.review.events import recent_events
from modwatch.review.people import accounts, changes
from modwatch.review.people.accounts import Moderator
from modwatch.review.people.groups import KEPT, SMALLEST_DRAW, counted_groups, draw_group
from modwatch.review.people.oidc import withdraw


def test_people_describe_themselves_and_take_it_back(engine, ann):
    changes.describe_group(engine, ann.id, "aged 30 to 45")
    changes.describe_group(engine, ann.id, " aged 46 or more ")
    with engine.connect() as connection:
        stored = connection.execute(text("SELECT group_name FROM moderator_group")).all()
    assert stored == [("aged 46 or more",)]
    changes.describe_group(engine, ann.id, None)
    with engine.connect() as connection:
        assert connection.execute(text("SELECT FROM moderator_group")).all() == []
    assert [event.action for event in recent_events(engine)] == ["create"]  # no trace is left
    for group in ("", " ", "a\0", "a\nb", "\ud800", "x" * 101):
        with pytest.raises(QueueError, match="shorten it"):
            changes.describe_group(engine, ann.id, group)
    with pytest.raises(QueueError, match="moderator 99 does not exist"):
        changes.describe_group(engine, 99, None)


@pytest.fixture
def crowd(engine):
    """Returns how to make people, of whom every other one chose the north, the rest the south."""

    def make(number: int) -> list[Moderator]:
        made = [
            accounts.create_moderator(engine, f"person {n}", "moderator") for n in range(number)
        ]
        for n, person in enumerate(made):
            changes.describe_group(engine, person.id, ("north", "south")[n % 2])
        return made

    return make


def stored(engine: Engine) -> dict[int, tuple[str, str]]:
    """Return the chosen and the counted group by account."""
    with engine.connect() as connection:
        rows = connection.execute(text("SELECT * FROM moderator_group")).all()
    return {row.moderator_id: (row.group_name, row.counted_as) for row in rows}


def test_a_person_counts_in_one_group_until_they_choose_another(engine, crowd):
    made = crowd(40)
    first = counted_groups(engine, rng=np.random.default_rng(0))
    assert first.keys() == {person.pseudonym for person in made}
    moved = sum(
        first[person.pseudonym] != ("north", "south")[n % 2] for n, person in enumerate(made)
    )
    assert 0 < moved < 20
    # Another draw, the same group chosen again, and others who join or leave change nothing.
    changes.describe_group(engine, made[0].id, "north")
    changes.describe_group(engine, made[1].id, None)
    late = accounts.create_moderator(engine, "late", "moderator")
    changes.describe_group(engine, late.id, "north")
    for seed in range(1, 4):
        again = counted_groups(engine, rng=np.random.default_rng(seed))
        assert again.keys() == first.keys() - {"person 1"} | {"late"}
        assert all(first[name] == again[name] for name in again.keys() - {"late"})
    changes.describe_group(engine, made[0].id, "south")
    assert stored(engine)[made[0].id] == ("south", None)
    found = []
    for _ in range(2):  # draws that nobody seeds differ
        found.append(counted_groups(engine))
        execute(engine, "UPDATE moderator_group SET counted_as = NULL")
    assert found[0] != found[1]


def test_the_share_of_people_who_count_in_the_group_they_chose():
    rng = np.random.default_rng(0)
    chosen = ["a"] * 30 + ["b"] * 10
    counted = Counter(draw_group("b", chosen, rng) for _ in range(20_000))
    assert counted["b"] / 20_000 == pytest.approx(KEPT + (1 - KEPT) / 4, abs=0.01)


def test_no_one_is_drawn_while_few_people_chose_a_group(engine, crowd):
    crowd(SMALLEST_DRAW - 1)
    assert counted_groups(engine) == {}
    assert {counted for _, counted in stored(engine).values()} == {None}


def test_the_group_of_an_account_that_ends_is_deleted(engine, ann):
    changes.describe_group(engine, ann.id, "north")
    changes.disable(engine, ann.id)
    changes.enable(engine, ann.id)
    assert stored(engine) == {}
    assert [event.action for event in recent_events(engine)] == ["enable", "disable", "create"]
    # So is that of someone to whom the provider gives no role.
    execute(engine, "UPDATE moderator SET oidc_subject = 'i|s'")
    changes.describe_group(engine, ann.id, "north")
    withdraw(engine, "i|s")
    assert stored(engine) == {}


def test_no_other_module_reads_the_groups():
    """What reads them must give them away to nobody: add it here, and say how it does not."""
    root = Path(modwatch.__file__).parent
    sources = {
        path.relative_to(root).as_posix(): path.read_text("utf-8") for path in root.rglob("*.py")
    }
    named = {path for path, source in sources.items() if "moderator_group" in source}
    assert named == {
        "review/tables.py",
        "review/migrate.py",  # grants privileges
        "review/people/changes.py",  # writes what the person says, and returns nothing
        "review/people/groups.py",
    }
    asked = {path for path, source in sources.items() if "counted_groups(" in source}
    assert asked == {
        "review/people/groups.py",
        "review/quality_control/agreement.py",  # by group, of ten people and more
        "pipeline/opinions.py",  # likewise
    }
