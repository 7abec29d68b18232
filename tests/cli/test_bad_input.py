"""Invalid arguments and settings: one sentence that names them, before anything else happens."""

from pathlib import Path

import pytest

from installation import MONDAY
from modwatch.cli.main import main
from modwatch.installation.resources import open_resources
from modwatch.review.people.accounts import create_moderator, find_moderator
from modwatch.review.people.changes import disable

# MLflow 3.17 uses a loader strategy that SQLAlchemy 2.1 deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")

DAY = MONDAY.isoformat()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "ingest", "2026-13-01"], "'DAY': '2026-13-01' is not a date; use YYYY-MM"),
        (["run", "ingest", "today"], "'DAY': 'today' is not a date; use YYYY-MM-DD"),
        (["audit", "plan", "a", DAY, "5.1.2026", "--by", "e"], "'LAST': '5.1.2026' is not"),
        (["plan", DAY, "--width", "5"], "'--width': must be a number between 0 and 1"),
        (["plan", DAY, "--budget", "many"], "'--budget': 'many' is not a valid float"),
        (["plan", DAY, "--width", "nan"], "'--width': must be a number between 0 and 1"),
        (["run", "prepare", DAY], "'prepare' is not one of 'ingest'"),
    ],
)
def test_an_invalid_argument_is_named(arguments, message, capsys):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_settings_are_the_current_values_and_invalid_ones_are_refused(monkeypatch, capsys):
    monkeypatch.setenv("MODWATCH_REVIEW_FRACTION", "0.07")
    monkeypatch.setenv("MODWATCH_SAMPLING_SALT", "hunter2")
    assert main(["settings"]) == 0
    out = capsys.readouterr().out
    assert "0.07" in out
    assert "hunter2" not in out
    assert main(["settings"], from_file={"MODWATCH_REVIEW_FRACTION": Path("mine.env")}) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1:3] for line in lines if "MODWATCH_REVIEW_FRACTION" in line] == [
        ["0.07", "mine.env"]
    ]
    monkeypatch.setenv("MODWATCH_REVIEW_FRACTION", "1.5")
    assert main(["settings"]) == 1
    assert "MODWATCH_REVIEW_FRACTION must be a number in (0, 1], got 1.5" in capsys.readouterr().err


@pytest.fixture
def home(install, monkeypatch):
    """An installation that the process finds in its environment; no day has been ingested."""
    made = install()
    for name, value in made.env.items():
        monkeypatch.setenv(name, value)
    return made


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        (["--error-rates", "0.5", "0.6"], "sum to 1.1: such labels tell nothing of the truth"),
        (["--budget", "-5"], "the budget must be more than 0 labels, got -5"),
    ],
)
def test_a_plan_of_labels_that_cannot_be_is_refused(home, wanted, reason, capsys):
    assert main(["plan", DAY, *wanted]) == 1
    assert reason in capsys.readouterr().err


def test_a_witness_in_a_missing_folder_is_named(home, tmp_path, capsys):
    witness = tmp_path / "missing" / "witness"
    assert main(["queue", "verify-log", "--witness", str(witness)]) == 1
    error = capsys.readouterr().err
    assert f"the folder of --witness, {witness.parent}, does not exist" in error


def test_the_name_of_an_audit_is_checked_before_the_survey(home, capsys):
    # The period has no comments: a survey would say so first.
    assert main(["audit", "plan", "Januar", DAY, DAY, "--by", "eva"]) == 1
    assert "the name of the audit may only contain" in capsys.readouterr().err


def test_an_audit_that_does_not_exist_is_not_shown(home, capsys):
    assert main(["audit", "status", "none"]) == 1
    assert "modwatch: " in capsys.readouterr().err


def test_a_lake_that_cannot_be_reached_is_one_sentence(home, monkeypatch, capsys):
    monkeypatch.setenv("MODWATCH_LAKE", "s3://bucket/lake")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "nobody")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2")
    for command in (["run", "check_comments", DAY], ["audit", "status"]):
        assert main(command) == 1
        error = capsys.readouterr().err
        assert error.startswith("modwatch: ")
        assert "s3://bucket/lake" in error
        assert "hunter2" not in error
        assert error.count("\n") == 1


def test_accounts_are_listed_with_role_and_queues(home, capsys):
    with open_resources() as resources:
        create_moderator(resources.database, "lea", "lead")
        create_moderator(resources.database, "ann", "moderator")
        disable(resources.database, find_moderator(resources.database, "ann").id)
    assert main(["person", "list"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [line[:3] for line in lines if line[0] in ("ann", "lea")] == [
        ["ann", "moderator", "disabled"],
        ["lea", "lead", "active"],
    ]
