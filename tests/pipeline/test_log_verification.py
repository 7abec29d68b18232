"""The daily verification of the decision log, up to the alert."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from databases import unguarded
from sqlalchemy import text

from installation import MONDAY, Installation
from modwatch.installation.resources import open_resources
from modwatch.review import people
from modwatch.review.policy.tree import load_policy, register_policy

pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")

TUESDAY = MONDAY + timedelta(days=1)


def test_a_log_that_was_altered_is_alerted_of(install: Callable[..., Installation]) -> None:
    home = install()
    home = home.but(witness_folder=str(home.home / "witnesses"))
    with open_resources(home.settings) as resources:
        people.create_moderator(resources.database, "ann", "moderator")
        register_policy(resources.database, load_policy())
    assert home.run("verify_log") == [0]
    assert incidents(home) == []
    with open_resources(home.settings) as resources, unguarded(resources.database) as connection:
        connection.execute(text("UPDATE moderator SET role = 'admin'"))
    assert home.run("verify_log", day=TUESDAY) == [1]
    assert ("decision_log_altered", "critical") in incidents(home)
    # Nothing was written for this day: the alert of the missing witness follows when it is due.
    with open_resources(home.settings) as resources:
        (row,) = resources.lake.table("log_verifications", TUESDAY).to_pylist()
    assert (row["problems"], row["witness_expected"]) == (1, True)
    assert 0 < row["witness_age_hours"] < 1


def test_a_witness_that_cannot_be_written_is_alerted_of(
    install: Callable[..., Installation],
) -> None:
    home = install()
    home.home.mkdir(parents=True, exist_ok=True)
    (home.home / "file").touch()
    home = home.but(witness_folder=str(home.home / "file" / "x"))
    assert home.run("verify_log") == [0]
    assert incidents(home, MONDAY) == [("decision_log_unwitnessed", "warning")]


def test_without_a_place_no_witness_is_missed(install: Callable[..., Installation]) -> None:
    home = install()
    assert home.run("verify_log") == [0]
    assert incidents(home, MONDAY) == []


def incidents(home: Installation, day: object = TUESDAY) -> list[tuple[str, str]]:
    home.run("raise_alerts", day=day)  # type: ignore[arg-type]
    with open_resources(home.settings) as resources:
        rows = resources.lake.table("alerts", day).to_pylist()  # type: ignore[arg-type]
    return [(row["rule"], row["severity"]) for row in rows]
