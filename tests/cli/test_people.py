"""Accounts by command line."""

import io

import pytest

from modwatch.cli.main import main
from modwatch.installation.resources import open_resources
from modwatch.review.people.accounts import find_moderator
from modwatch.review.people.passwords import log_in
from modwatch.review.people.sessions import authenticate

# MLflow 3.17 uses a loader strategy that SQLAlchemy 2.1 deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")

PASSWORD = "a long invented sentence"


@pytest.fixture(autouse=True)
def home(install, monkeypatch):
    made = install()
    for name, value in made.env.items():
        monkeypatch.setenv(name, value)
    return made


def test_a_person_gets_an_account_and_a_password(monkeypatch, capsys):
    assert main(["person", "add", "lea", "--role", "lead"]) == 0
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{PASSWORD}\n"))
    assert main(["person", "password", "lea"]) == 0
    assert PASSWORD not in capsys.readouterr().out
    with open_resources() as resources:
        assert find_moderator(resources.database, "lea").role == "lead"
        assert log_in(resources.database, "lea", PASSWORD, address="here")
    assert main(["person", "reset-factor", "lea"]) == 0


def test_a_token_may_be_for_less_than_the_role(capsys):
    assert main(["token", "ops", "--role", "ops", "--scope", "metrics:read", "--days", "1"]) == 0
    token = capsys.readouterr().out.strip()
    with open_resources() as resources:
        assert authenticate(resources.database, token).scopes == {"metrics:read"}


def test_an_unknown_person_is_one_sentence(capsys):
    assert main(["person", "reset-factor", "nobody"]) == 1
    assert "no account has this pseudonym" in capsys.readouterr().err


@pytest.mark.parametrize("days", ["0", "-1", "nan", "1e99"])
def test_a_token_needs_a_positive_lifetime(days, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["token", "lea", f"--days={days}"])
    assert ended.value.code == 2
    assert f"'--days': must be a number between 0 and 3653 (exclusive), got '{days}'" in (
        capsys.readouterr().err
    )
