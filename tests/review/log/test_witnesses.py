"""Witnesses outside the database: written daily, compared, and not to be forged where stamped."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from authority import serving, usual
from databases import unguarded
from sqlalchemy import Engine, text

from modwatch.common.errors import TimestampError
from modwatch.common.ledger.timestamps import read_roots
from modwatch.data.lake.files import Folder
from modwatch.review.log.verification import verify_log
from modwatch.review.log.witnesses import Authority, latest, verify_and_witness
from modwatch.review.people import Moderator
from review.labelling import decide_all, label_next

FORGED = (
    "DELETE FROM decision WHERE id = 4; "
    "UPDATE review_item SET status = 'waiting', excluded = '{}' WHERE id = 4; "
    "UPDATE decision_chain SET (length, hash) = (SELECT position, hash FROM decision WHERE id = 3)"
)


@pytest.fixture
def place(tmp_path: Path) -> Folder:
    return Folder(root=str(tmp_path / "witnesses"), holds="witnesses")


@pytest.fixture
def authority(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Authority]:
    if not shutil.which("openssl"):
        pytest.skip("no openssl")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    office = usual(tmp_path_factory.mktemp("tsa"))
    with serving(office.answer) as url:
        yield Authority(url=url, roots=read_roots(office.roots))


@pytest.fixture
def shift(engine: Engine, ann: Moderator, fill: Callable[[int], None]) -> None:
    fill(6)
    for _ in range(4):
        label_next(engine, ann)


def forge(engine: Engine) -> None:
    with unguarded(engine) as connection:
        for statement in FORGED.split("; "):
            connection.execute(text(statement))
    assert verify_log(engine).intact


def test_each_verification_leaves_a_witness_for_the_next(
    engine: Engine, shift: None, ann: Moderator, place: Folder
) -> None:
    first = verify_and_witness(engine, place)
    assert (first.report.problems, first.failure, first.last) == ((), "", first.verified_at)
    decide_all(engine, [ann])
    second = verify_and_witness(engine, place)
    assert (second.report.problems, second.failure) == ((), "")
    assert len(place.names()) == 2
    assert latest(place, None) == (second.last, second.report.witness)


def test_what_was_witnessed_cannot_be_taken_back(
    engine: Engine, shift: None, place: Folder
) -> None:
    before = verify_and_witness(engine, place)
    forge(engine)
    for _ in range(2):  # until someone looks into it: no new witness covers it up
        after = verify_and_witness(engine, place)
        (problem,) = after.report.problems
        assert "ends at position 3, but the witness covers it up to 4" in problem
        assert after.last == before.last
    assert len(place.names()) == 1


def test_a_place_that_cannot_be_used_is_reported_and_the_log_is_verified(
    engine: Engine, shift: None, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    done = verify_and_witness(engine, Folder(root=str(tmp_path / "file" / "x"), holds="witnesses"))
    assert "the witnesses at" in done.failure
    assert (done.report.decisions, done.report.problems, done.last) == (4, (), None)


def test_a_stamped_witness_cannot_be_written_later(
    engine: Engine, shift: None, place: Folder, authority: Authority
) -> None:
    """Someone who can write to database and place, and not set the authority's clock."""
    done = verify_and_witness(engine, place, authority)
    assert (done.failure, len(place.names())) == ("", 2)
    forge(engine)
    (name,) = (item for item in place.names() if item.endswith(".json"))
    place.write(name, verify_log(engine).witness.encode())  # the old timestamp is of another text
    (problem,) = verify_and_witness(engine, place, authority).report.problems
    assert problem.startswith("the last witness is not valid: the timestamp is not valid")
    place.remove(f"{name}.tsr")
    (problem,) = verify_and_witness(engine, place, authority).report.problems
    assert problem.endswith("has no timestamp; it may be forged")


def test_a_stamped_witness_is_of_the_time_of_its_name(
    engine: Engine, shift: None, place: Folder, authority: Authority
) -> None:
    verify_and_witness(engine, place, authority)
    for name in place.names():
        content = place.read(name)
        assert content is not None
        place.remove(name)
        place.write(f"2030{name[4:]}", content)
    with pytest.raises(TimestampError, match="not of the time in its name"):
        latest(place, authority)


def test_an_authority_that_is_away_delays_the_witness(
    engine: Engine, shift: None, place: Folder, authority: Authority
) -> None:
    away = Authority(url="http://127.0.0.1:9/tsa?token=hunter2", roots=authority.roots)
    done = verify_and_witness(engine, place, away)
    assert "cannot be reached" in done.failure
    assert "hunter2" not in done.failure
    assert (done.report.intact, done.last, place.names()) == (True, None, [])


@pytest.mark.parametrize("content", [b"", b"x", b"[[1]]", b"\xff"])
def test_a_file_that_is_no_witness_is_a_problem(
    engine: Engine, shift: None, place: Folder, content: bytes
) -> None:
    place.write("20260101T000000.000000Z.witness.json", content)
    (problem,) = verify_and_witness(engine, place).report.problems
    assert problem.startswith("the last witness is not valid")


def test_other_files_of_the_place_are_left_alone(
    engine: Engine, shift: None, place: Folder
) -> None:
    place.write("README.txt", b"keep")
    assert verify_and_witness(engine, place).failure == ""
    assert len(place.names()) == 2
