"""Timestamps by a real authority on loopback, by false ones, and by servers that misbehave."""

import shutil
import socket
import subprocess
from datetime import UTC, datetime, timedelta

import pytest
from authority import certificate, make, serving, usual

from modwatch.common.errors import SettingsError, TimestampError
from modwatch.common.ledger.timestamps import Authority, read_roots
from modwatch.settings import Settings, load_settings

pytestmark = pytest.mark.skipif(not shutil.which("openssl"), reason="no openssl")

CONTENT = b"the end of a chain\n"


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture(scope="module")
def tsa(tmp_path_factory):
    return usual(tmp_path_factory.mktemp("tsa"))


@pytest.fixture(scope="module")
def stamped(tsa):
    with serving(tsa.answer) as url:
        return asked(tsa, url).stamp(CONTENT)


def asked(tsa, url):
    return Authority(url=url, roots=read_roots(tsa.roots))


def verify(tsa, answer, content=CONTENT, away=timedelta()):
    """Verify that the content was seen just now, or at some time from it."""
    now, minutes = datetime.now(UTC), timedelta(minutes=2)
    authority = Authority(roots=read_roots(tsa.roots))
    authority.verify(answer, content, now + away, before=minutes, after=2 * minutes)


def test_an_authority_tells_when_it_saw_a_content(tsa, stamped):
    verify(tsa, stamped)
    verify(tsa, stamped, away=timedelta(minutes=-3))
    for minutes in (-5, 3):
        with pytest.raises(TimestampError, match="written anew, or the clock was wrong"):
            verify(tsa, stamped, away=timedelta(minutes=minutes))


def test_openssl_verifies_a_stored_answer(tsa, stamped, tmp_path):
    (tmp_path / "file").write_bytes(CONTENT)
    (tmp_path / "file.tsr").write_bytes(stamped)
    answer = subprocess.run(
        ["openssl", "ts", "-verify", "-data", tmp_path / "file", "-in", tmp_path / "file.tsr",
         "-CAfile", tsa.roots, "-untrusted", tsa.folder / "chain.pem"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "Verification: OK" in answer.stdout + answer.stderr


def test_a_timestamp_is_of_one_content(tsa, stamped):
    with pytest.raises(TimestampError, match="not valid"):
        verify(tsa, stamped, CONTENT + b" ")


def test_an_authority_that_is_not_trusted_proves_nothing(stamped, tmp_path):
    other = usual(tmp_path)  # of the same names
    with pytest.raises(TimestampError, match="not valid"):
        verify(other, stamped)


def test_a_timestamp_that_was_changed_is_refused(tsa, stamped):
    for flip in (-1, 60):
        changed = bytearray(stamped)
        changed[flip] ^= 1
        with pytest.raises(TimestampError):
            verify(tsa, bytes(changed))


def test_a_certificate_that_is_no_authority_issues_none(tmp_path):
    root = certificate("Root of a long name, which is longer than the others are", ca=True)
    stamps = certificate("Stamps, being no authority", root, stamps=True)
    false = make(tmp_path, root=root, chain=[stamps, certificate("TSA", stamps, stamps=True)])
    with serving(false.answer) as url, pytest.raises(TimestampError, match="certificate verif"):
        asked(false, url).stamp(CONTENT)


def test_an_answer_to_another_question_is_refused(tsa, stamped):
    """A replayed answer has the content, and not the number of the question."""
    with serving(lambda _: stamped) as url, pytest.raises(TimestampError, match="Nonce"):
        asked(tsa, url).stamp(CONTENT)


@pytest.mark.parametrize(
    ("body", "status", "media", "says"),
    [
        (b"", 503, "application/timestamp-reply", "answered 503"),
        (b"<html>", 200, "text/html", "answered 200 and no timestamp"),
        (b"garbage", 200, "application/timestamp-reply", "not an answer"),
        (b"0" * 70_000, 200, "application/timestamp-reply", "too long"),
    ],
)
def test_no_answer_is_reported_without_the_address(tsa, body, status, media, says):
    with (
        serving(lambda _: body, status=status, media=media) as url,
        pytest.raises(TimestampError, match=says) as caught,
    ):
        asked(tsa, url).stamp(CONTENT)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("url", ["http://127.0.0.1:{port}/?hunter2", "http://\x00hunter2"])
def test_no_connection_is_reported_without_the_address(tsa, url):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        with pytest.raises(TimestampError, match="cannot be reached") as caught:
            asked(tsa, url.format(port=taken.getsockname()[1])).stamp(CONTENT)
    assert "hunter2" not in str(caught.value)


def test_a_server_that_says_nothing_is_given_up(tsa):
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        with pytest.raises(TimestampError, match="ReadTimeout"):
            asked(tsa, url).stamp(CONTENT, timeout=0.2)


def test_a_file_without_certificates_is_refused(tmp_path):
    path = tmp_path / "roots.pem"
    for content in (None, b"", b"-----BEGIN CERTIFICATE-----\nAAAA"):
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(TimestampError, match=r"roots\.pem cannot be read as certificates"):
            read_roots(path)


def test_an_authority_needs_roots(monkeypatch, tmp_path):
    monkeypatch.setenv("MODWATCH_TIMESTAMP_URL", "https://tsa.example.org/?hunter2")
    with pytest.raises(SettingsError, match=r"requires timestamps\.pem") as caught:
        load_settings()
    assert "hunter2" not in str(caught.value)
    roots = tmp_path / "timestamps.pem"
    roots.touch()
    monkeypatch.setenv("MODWATCH_CONFIG", str(tmp_path))
    assert load_settings().file("timestamps.pem") == roots
    with pytest.raises(ValueError, match="is not a URL"):
        Settings(timestamp_url="tsa.example.org", config=tmp_path)
