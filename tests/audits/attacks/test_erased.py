"""An audit that a superuser erased, beside a witness of the log that was kept elsewhere."""

from dataclasses import replace

import pytest
from audit_forger import problems, remarks, remove_folder
from databases import unguarded
from fastapi.testclient import TestClient
from small_audits import REQUEST, plan_audit
from sqlalchemy import text

from modwatch.cli.main import main
from modwatch.data.lake.files import Folder
from modwatch.review.console.app import create_app
from modwatch.review.console.request_context import SESSION_COOKIE, ConsoleOptions, csrf_of
from modwatch.review.log.verification import verify_log
from modwatch.review.log.witnesses import verify_and_witness
from modwatch.review.people import access_tokens, accounts, sessions

pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")

#: Decisions, items and steps go, and the ends of the chains are those of what is left.
ERASED = """
    DELETE FROM decision WHERE item_id IN (SELECT id FROM review_item WHERE audit IS NOT NULL);
    DELETE FROM review_item WHERE audit IS NOT NULL;
    UPDATE decision_chain SET (length, hash) = (0, decode(repeat('00', 32), 'hex'));
    DELETE FROM event WHERE id >= {first};
    UPDATE event_chain SET (length, hash) =
        (SELECT position, hash FROM event ORDER BY id DESC LIMIT 1)
"""


@pytest.fixture
def place(tmp_path):
    return Folder(root=str(tmp_path / "witnesses"), holds="witnesses")


@pytest.fixture
def erased(after, place):
    """An audit carried out, witnessed and erased: folder and database."""
    small = after("estimate")
    with small.database.connect() as connection:  # its people were there before it
        first = connection.scalar(text("SELECT min(id) FROM event WHERE details ? 'audit'"))
    assert verify_and_witness(small.database, place)[2] == ""
    remove_folder(small, "small")
    with unguarded(small.database) as connection:
        for statement in ERASED.format(first=first).split(";"):
            connection.execute(text(statement))
    assert verify_log(small.database).intact
    return small


def verified(name: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["audit", "verify", name]) == 1
    return capsys.readouterr().out


def test_an_erased_audit_contradicts_the_witness(erased, place, monkeypatch, capsys):
    """By its name, and by that of an audit that was planned afterwards."""
    monkeypatch.setenv("MODWATCH_HOME", str(erased.settings.home))
    url = erased.settings.database_url
    assert url is not None
    monkeypatch.setenv("MODWATCH_DATABASE_URL", url.get_secret_value())
    monkeypatch.setenv("MODWATCH_WITNESS_FOLDER", place.root)
    gone = verified("small", capsys)
    assert "PROBLEM: no audit is called 'small'" in gone
    assert "the chain of events ends at position" in gone
    plan_audit(erased, REQUEST, actor="eva")
    anew = verified("small", capsys)
    assert "witness: has problems" in anew
    assert "but the witness covers it up to" in anew


def test_verify_now_uses_the_kept_witness(erased, place):
    auditor = accounts.create_moderator(erased.database, "ada", "auditor")
    session = sessions.open_session(
        erased.database, access_tokens.issue_token(erased.database, auditor.id)
    )
    form = {"csrf": csrf_of(session)}
    for folder, intact, says in (
        (place, False, "Compared with the witness of"),
        (None, True, "No witness was used: MODWATCH_WITNESS_FOLDER is not set"),
    ):
        app = create_app(erased.database, ConsoleOptions(witness_folder=folder))
        with TestClient(app, cookies={SESSION_COOKIE: session}) as client:
            shown = client.post("/records/check", data=form).text
        assert ("The log is intact" in shown) == intact
        assert says in shown


def test_without_a_witness_that_is_said(after, tmp_path):
    small = after("plan")
    assert "no witness was used: MODWATCH_WITNESS_FOLDER is not set" in remarks(
        small, "decision log"
    )
    audit = small.audit("small")
    audit.place = Folder(root=str(tmp_path / "empty"), holds="witnesses")
    [level] = [level for level in audit.levels() if level.name == "decision log"]
    assert level.remarks[-1].endswith("the folder of MODWATCH_WITNESS_FOLDER has none yet")
    verify_and_witness(small.database, audit.place)
    assert audit.levels()[-1].name == "witness"
    assert audit.verify() == []


def test_steps_of_another_audit_are_erased_from_the_database_alone(small):
    plan_audit(small, REQUEST, actor="eva")
    small.audit("small").cancel(actor="eva")
    plan_audit(small, replace(REQUEST, audit="anew"), actor="eva")
    with unguarded(small.database) as connection:
        connection.execute(text("DELETE FROM event WHERE details->>'audit' = 'small'"))
    [problem] = problems(small, "register", "anew")
    assert problem.startswith("there are steps of 'small' that are not in the database")


def test_a_folder_alone_is_removed(after):
    small = after("plan")
    remove_folder(small, "small")
    assert problems(small, "files") == ["no audit is called 'small'; existing audits: none"]
    [removed] = problems(small, "register")
    assert removed.startswith("the folder of audit 'small' was removed: its last step")
