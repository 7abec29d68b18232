"""Witnesses outside the database: written daily, compared, and not to be forged where stamped."""

import shutil
from datetime import UTC, datetime, timedelta

import pytest
from authority import serving, usual
from databases import unguarded
from sqlalchemy import Engine, text

from modwatch.common.ledger.chain import Head, witness_of
from modwatch.common.ledger.timestamps import Authority, read_roots
from modwatch.data.lake.files import Folder
from modwatch.review.log.verification import verify_log
from modwatch.review.log.witnesses import newest, verify_and_witness
from review.labelling import decide_all, label_next

FORGED = (
    "DELETE FROM decision WHERE id = 4; "
    "UPDATE review_item SET status = 'waiting', excluded = '{}' WHERE id = 4; "
    "UPDATE decision_chain SET (length, hash) = (SELECT position, hash FROM decision WHERE id = 3)"
)

ODD = [
    b'{"heads": [], "at": "9999-12-31T23:59:59-23:00"}',
    b'{"heads": [], "at": "9999-12-31T23:59:59.999999+00:00"}',
    b'{"heads": [], "at": "0001-01-01T00:00:00+23:00"}',
    b'{"heads": [], "at": "2026-01-01T00:00:00"}',
    b'{"heads": [[0, -5, "00"]], "at": "2026-01-01T00:00:00+00:00"}',
]


@pytest.fixture
def place(tmp_path):
    return Folder(root=str(tmp_path / "witnesses"), holds="witnesses")


@pytest.fixture
def authority(tmp_path_factory, monkeypatch):
    if not shutil.which("openssl"):
        pytest.skip("no openssl")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    office = usual(tmp_path_factory.mktemp("tsa"))
    with serving(office.answer) as url:
        yield Authority(url=url, roots=read_roots(office.roots))


@pytest.fixture
def shift(engine, ann, fill):
    fill(6)
    for _ in range(4):
        label_next(engine, ann)


def forge(engine: Engine) -> None:
    with unguarded(engine) as connection:
        for statement in FORGED.split("; "):
            connection.execute(text(statement))
    assert verify_log(engine).intact


def test_each_verification_leaves_a_witness_for_the_next(engine, shift, ann, place):
    report, last, failure = verify_and_witness(engine, place)
    assert (report.problems, failure) == ((), "")
    assert last is not None
    assert last.timestamp() == report.at
    decide_all(engine, [ann])
    report, last, failure = verify_and_witness(engine, place)
    assert (report.problems, failure) == ((), "")
    assert len(place.names()) == 2
    found = newest(place, None)
    assert (found.moment, found.text) == (last, report.witness)


def test_what_was_witnessed_cannot_be_taken_back(engine, shift, place):
    _, before, _ = verify_and_witness(engine, place)
    forge(engine)
    for _ in range(2):  # until someone looks into it: no new witness covers it up
        report, last, _ = verify_and_witness(engine, place)
        (problem,) = report.problems
        assert "ends at position 3, but the witness covers it up to 4" in problem
        assert last == before
    assert len(place.names()) == 1


def test_a_place_that_cannot_be_used_is_reported_and_the_log_is_verified(engine, shift, tmp_path):
    (tmp_path / "file").touch()
    place = Folder(root=str(tmp_path / "file" / "x"), holds="witnesses")
    report, last, failure = verify_and_witness(engine, place)
    assert "the witnesses at" in failure
    assert (report.decisions, report.problems, last) == (4, (), None)


def test_a_stamped_witness_cannot_be_written_later(engine, shift, place, authority):
    """Someone who can write to database and place, and not set the authority's clock."""
    _, last, failure = verify_and_witness(engine, place, authority)
    assert (failure, len(place.names())) == ("", 2)
    forge(engine)
    (name,) = (item for item in place.names() if item.endswith(".json"))
    assert last is not None
    forged = witness_of(verify_log(engine).heads, last.timestamp())
    place.write(name, forged.encode())  # the old timestamp is of another text
    (problem,) = verify_and_witness(engine, place, authority)[0].problems
    assert problem.startswith("the newest witness is not valid: the timestamp is not valid")
    place.remove(f"{name}.tsr")
    (problem,) = verify_and_witness(engine, place, authority)[0].problems
    assert problem.endswith("has no timestamp; it may be forged")


def test_a_stamped_witness_is_of_the_time_that_it_says(engine, shift, place, authority):
    content = witness_of(verify_log(engine).heads, 0.0).encode()
    name = "19700101T000000.000000Z.witness.json"
    place.write(name, content)
    place.write(f"{name}.tsr", authority.stamp(content))
    assert "the time is 1970-01-01 00:00 UTC, and the authority" in newest(place, authority).invalid


def test_timestamps_are_demanded_of_an_authority_that_is_asked(engine, shift, place):
    _, last, _ = verify_and_witness(engine, place)
    assert newest(place, Authority(roots=())).moment == last
    assert newest(place, Authority(url="http://127.0.0.1:9/", roots=())).text is None


def test_a_witness_under_another_name_is_a_problem(engine, shift, place):
    verify_and_witness(engine, place)
    content = place.read(place.names()[0])
    assert content is not None
    for name in ("20300101T000000.000000Z", "zz"):
        place.write(f"{name}.witness.json", content)
        (problem,) = verify_and_witness(engine, place)[0].problems
        assert problem.endswith(f"{name}.witness.json is not of the time in its name")


def test_a_witness_of_another_installation_is_a_problem(engine, shift, place):
    heads = {0: Head(3, bytes(32)), 1: Head(2, bytes(32)), 99: Head(1, bytes(32))}
    at = verify_log(engine).at
    assert at is not None
    place.write(f"{datetime.fromtimestamp(at, UTC):%Y%m%dT%H%M%S.%fZ}.witness.json",
                witness_of(heads, at).encode())  # fmt: skip
    problems = verify_and_witness(engine, place)[0].problems
    assert any("decision 2" in p and "is not the one that was witnessed" in p for p in problems)
    assert any("moderator 99 ends at position 0, but the witness" in p for p in problems)


def test_a_witness_from_the_future_is_a_problem(engine, shift, place):
    report = verify_log(engine)
    assert report.at is not None
    (problem,) = verify_log(engine, witness_of(report.heads, report.at + 3600)).problems
    assert problem.startswith("the witness is dated in the future")


def test_an_authority_that_is_away_delays_the_witness(engine, shift, place, authority):
    away = Authority(url="http://127.0.0.1:9/tsa?token=hunter2", roots=authority.roots)
    report, last, failure = verify_and_witness(engine, place, away)
    assert "cannot be reached" in failure
    assert "hunter2" not in failure
    assert (report.intact, last, place.names()) == (True, None, [])


def test_a_file_that_is_no_witness_is_a_problem(engine, shift, place):
    place.write("README.txt", b"keep")  # other files of the place are left alone
    for content in (b"", b"x", b'{"heads": []}', b'{"at": "', b"\xff", *ODD):
        place.write("20260101T000000.000000Z.witness.json", content)
        (problem,) = verify_and_witness(engine, place)[0].problems
        assert problem.startswith("the newest witness is not valid"), content
    assert len(place.names()) == 2


def test_a_newest_witness_that_was_cut_is_a_problem(engine, shift, place):
    """A witness of nothing would agree with any log."""
    at = verify_and_witness(engine, place)[1]
    assert at is not None
    forge(engine)
    for cut in ('"heads": []', '"heads": [[0, 1, "00"]]'):
        at += timedelta(seconds=1)
        content = f'{{{cut}, "at": "{at.isoformat()}"}}'
        place.write(f"{at:%Y%m%dT%H%M%S.%fZ}.witness.json", content.encode())
        found = newest(place, None)
        assert (found.text, found.unused) == (None, "")
        assert "covers less than one before it" in found.invalid
        assert found.report(engine).problems[0] == found.sentence == found.invalid
