"""The daily verification of the decision log, up to the alert."""

from datetime import timedelta

import pytest
from databases import as_owner, unguarded
from estimates import put_estimates
from sqlalchemy import text

from installation import MONDAY, Installation
from modwatch.common.errors import DatabaseError
from modwatch.installation.resources import open_resources
from modwatch.monitoring.incidents.metrics import metric_values
from modwatch.review.database import now
from modwatch.review.log.witnesses import verify_decision_log
from modwatch.review.people import accounts
from modwatch.review.policy.tree import load_policy, register_policy

pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")

TUESDAY = MONDAY + timedelta(days=1)


def test_a_log_that_was_altered_is_alerted_of(install):
    home = install()
    home = home.but(witness_folder=str(home.home / "witnesses"))
    with open_resources(home.settings) as resources:
        accounts.create_moderator(resources.database, "ann", "moderator")
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


def test_a_witness_that_cannot_be_written_is_alerted_of(install):
    home = install()
    home.home.mkdir(parents=True, exist_ok=True)
    (home.home / "file").touch()
    home = home.but(witness_folder=str(home.home / "file" / "x"))
    assert home.run("verify_log") == [0]
    assert incidents(home, MONDAY) == [("decision_log_unwitnessed", "warning")]


def test_a_verification_that_fails_is_alerted_of(install):
    """And it does not end the alert that the log was altered."""
    home = install()
    with open_resources(home.settings) as resources:
        accounts.create_moderator(resources.database, "ann", "moderator")
        with unguarded(resources.database) as connection:
            connection.execute(text("UPDATE moderator SET role = 'admin'"))
    assert home.run("verify_log") == [1]
    assert incidents(home, MONDAY) == [("decision_log_altered", "critical")]
    with open_resources(home.settings) as resources, as_owner(resources.database) as connection:
        connection.execute(text("ALTER TABLE gold_comment RENAME TO hidden"))
    try:
        with pytest.raises(DatabaseError, match="lacks the newest review tables"):
            home.run("verify_log", day=TUESDAY)
    finally:
        with open_resources(home.settings) as resources, as_owner(resources.database) as connection:
            connection.execute(text("ALTER TABLE hidden RENAME TO gold_comment"))
    assert set(incidents(home)) == {
        ("decision_log_altered", "critical"), ("decision_log_unverified", "critical"),
    }  # fmt: skip


def test_a_verification_that_was_killed_is_alerted_of(install):
    """A measured day has no record: nobody knows of the one that runs now."""
    home = install()
    assert home.run("verify_log") == [0]
    with open_resources(home.settings) as resources:
        lake, wednesday = resources.lake, TUESDAY + timedelta(days=1)
        for day in (MONDAY, TUESDAY, wednesday):
            put_estimates(lake, day, {"metric": "accuracy"})
        found = {
            value.day: value.value
            for value in metric_values(lake, resources.checks, MONDAY, wednesday)
            if value.metric == "log_unverified"
        }
    assert found == {MONDAY: 0.0, TUESDAY: 1.0}


@pytest.mark.parametrize(("apart", "alerts"), [(30, []), (3600, [("clocks_differ", "warning")])])
def test_clocks_that_differ_are_alerted_of(install, apart, alerts):
    home = install()
    with open_resources(home.settings) as resources:
        moment = now(resources.database) - timedelta(seconds=apart)
        clock = lambda: moment  # noqa: E731
        verify_decision_log(resources.lake, resources.database, MONDAY, None, None, clock)
    assert incidents(home, MONDAY) == alerts


def test_without_a_place_no_witness_is_missed(install):
    home = install()
    assert home.run("verify_log") == [0]
    assert incidents(home, MONDAY) == []


def incidents(home: Installation, day: object = TUESDAY) -> list[tuple[str, str]]:
    home.run("raise_alerts", day=day)  # type: ignore[arg-type]
    with open_resources(home.settings) as resources:
        rows = resources.lake.table("alerts", day).to_pylist()  # type: ignore[arg-type]
    return [(row["rule"], row["severity"]) for row in rows]
