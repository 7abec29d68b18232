"""Names, times and the end of the chain are changed; what signatures and timestamps show of it."""

import base64
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from audit_forger import finders, forge, problems, remarks, turned_round
from audit_path import STEPS, go_to
from authority import Authority, serving, usual

from installation import Installation
from modwatch.audits import files
from modwatch.audits.evidence import Event, moment
from modwatch.audits.publication import Level
from modwatch.audits.witnesses import Witnesses
from modwatch.cli.main import main
from modwatch.common.errors import AuditError
from modwatch.common.ledger.chain import commitment
from modwatch.common.ledger.signatures import make_key, read_key, read_signers
from modwatch.common.ledger.timestamps import read_roots
from modwatch.installation.resources import Resources, open_resources

pytestmark = [
    pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated"),
    pytest.mark.skipif(not shutil.which("openssl"), reason="no openssl"),
]

PEOPLE = ("eva", "eve", "fay", "mallory")


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    """A folder with a key of each person, and the public keys of all but Mallory."""
    folder = tmp_path / "keys"
    folder.mkdir()
    lines = [f'"{name}" = "{make_key(folder / name)}"\n' for name in PEOPLE]
    (folder / "signers.toml").write_text("".join(lines[:-1]))
    return folder


@pytest.fixture
def tsa(tmp_path: Path) -> Authority:
    return usual(tmp_path / "tsa")


@pytest.fixture
def opened(
    small_home: Installation, keys: Path, tsa: Authority, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Resources]:
    """The small lake, with an authority and signers."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with serving(tsa.answer) as url:
        home = small_home.but(
            timestamp_url=url, timestamp_roots=tsa.roots, audit_signers=keys / "signers.toml"
        )
        with open_resources(home.settings) as made:
            yield made


def sign(opened: Resources, keys: Path, name: str) -> str:
    return opened.audit("small").sign(read_key(keys / name), actor=name)


def signed(opened: Resources, keys: Path) -> None:
    """Carry an audit out whose approval and result are signed."""
    go_to(opened, "approve")
    sign(opened, keys, "eve")
    go_to(opened, "sign_off")
    sign(opened, keys, "fay")
    STEPS["publish"](opened)


def test_signed_and_timestamped_evidence_is_verified_anywhere(
    opened: Resources,
    keys: Path,
    tsa: Authority,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    signed(opened, keys)
    assert finders(opened) == set()
    assert remarks(opened, "signatures") == remarks(opened, "timestamps") == []
    copied = tmp_path / "copy"
    shutil.copytree(opened.settings.home / "lake" / "_audits" / "small", copied)
    given = ["--signers", str(keys / "signers.toml"), "--roots", str(tsa.roots)]
    assert main(["audit", "verify", "--files", str(copied), *given]) == 0
    printed = capsys.readouterr().out
    assert "no problems found in files, signatures, timestamps" in printed
    lines = (copied / files.CHAIN).read_bytes().splitlines(keepends=True)
    (tmp_path / "approved").write_bytes(b"".join(lines[:2]))
    key = read_key(keys / "eve").public_key()
    (tmp_path / "eve.der").write_bytes(
        base64.b64decode("MCowBQYDK2VwAyEA") + key.public_bytes_raw()
    )
    for command in (
        ["openssl", "pkeyutl", "-verify", "-rawin", "-in", "approved", "-pubin", "-keyform", "DER",
         "-inkey", "eve.der", "-sigfile", copied / "chain-2.sig"],
        ["openssl", "ts", "-verify", "-data", "approved", "-in", copied / "chain-2.tsr",
         "-CAfile", tsa.roots, "-untrusted", tsa.folder / "chain.pem"],
    ):  # fmt: skip
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)


def earlier(event: Event) -> Event:
    """Every step a week before."""
    return replace(event, at=(moment(event.at) - timedelta(days=7)).isoformat())


def with_other_note(event: Event) -> Event:
    committed = commitment(bytes(16), "approved by all").hex()
    note = {"note": "approved by all", "note_salt": bytes(16).hex()}
    return replace(event, note_commitment=committed, **note)


@pytest.mark.parametrize(
    "change",
    [
        lambda event: replace(event, actor="zoe") if event.action == "planned" else event,
        lambda event: with_other_note(event) if event.note else event,
        lambda event: replace(event, facts={**event.facts, "more": "1"}),
    ],
    ids=["planner", "note", "facts"],
)
def test_steps_are_changed(opened: Resources, keys: Path, change: object) -> None:
    signed(opened, keys)
    forge(opened, event=change)  # type: ignore[arg-type]
    found = finders(opened)
    assert {"signatures", "timestamps", "register"} <= found
    result = problems(opened, "signatures")
    assert ["signature that is not valid" in message for message in result] == [True, True]


def test_labels_are_turned_round_after_the_signature(opened: Resources, keys: Path) -> None:
    """The result is made anew, and everything that follows, and the register."""
    signed(opened, keys)
    forge(opened, {files.labels_file(1): files.write_labels(turned_round(opened))})
    assert finders(opened) == {"signatures", "timestamps", "decision log", "register"}
    [message] = problems(opened, "signatures")  # the approval is older than the labels
    assert message.startswith("the step signed off by 'fay' has a signature that is not valid")


def test_the_signer_is_changed(opened: Resources, keys: Path) -> None:
    """To someone without a key, to someone with one, and signed with a key of one's own."""
    signed(opened, keys)
    kept = opened.audit_store.read("small")
    for name, says in (
        ("mallory", "the file of signers does not have the name"),
        ("gil", "the file of signers does not have the name"),
    ):
        forge(opened, event=lambda event, name=name: _signed_by(event, name))
        assert says in problems(opened, "signatures")[0]
        assert {"timestamps", "register"} <= finders(opened)
        forge(opened, event=lambda event: _signed_by(event, "fay"))
    assert finders(opened) == set()
    forged = {files.signature_file(len(opened.audit_store.chain("small")) - 1): b"0" * 64}
    for name, content in (kept | forged).items():
        opened.audit_store.witness("small", name, content)
    assert "signature that is not valid" in problems(opened, "signatures")[0]


def _signed_by(event: Event, name: str) -> Event:
    return replace(event, actor=name) if event.action == "signed_off" else event


def test_mallory_signs_in_the_name_of_fay(opened: Resources, keys: Path) -> None:
    go_to(opened, "sign_off")
    with pytest.raises(AuditError, match="this is not the key of 'fay'"):
        opened.audit("small").sign(read_key(keys / "mallory"), actor="fay")
    with pytest.raises(AuditError, match="'mallory' took no step that is to be signed"):
        sign(opened, keys, "mallory")
    content = b"".join(
        (opened.audit_store.read("small")[files.CHAIN]).splitlines(keepends=True)[:7]
    )
    forged = read_key(keys / "mallory").sign(content)
    number = len(opened.audit_store.chain("small"))
    opened.audit_store.witness("small", files.signature_file(number), forged)
    assert "signature that is not valid" in problems(opened, "signatures")[0]


def test_times_are_changed(opened: Resources, keys: Path) -> None:
    """And the timestamps are asked for anew, which anybody can."""
    signed(opened, keys)
    labels = files.read_labels(opened.audit_store.read("small")[files.labels_file(1)])
    before = [
        replace(label, decided_at=(moment(label.decided_at) - timedelta(days=7)).isoformat())
        for label in labels
    ]
    forge(opened, {files.labels_file(1): files.write_labels(before)}, event=earlier)
    assert ["is not valid" in message for message in problems(opened, "timestamps")] == [True, True]
    for name in opened.audit_store.read("small"):
        if name.endswith(".tsr"):
            (opened.settings.home / "lake" / "_audits" / "small" / name).unlink()
    opened.audit("small").stamp()
    result = problems(opened, "timestamps")
    assert ["it was written anew, or the clock was wrong" in message for message in result] == [
        True,
        True,
    ]
    assert finders(opened) == {"signatures", "timestamps", "decision log", "register"}


@pytest.mark.parametrize("steps", [1, 3, 5])
def test_the_end_of_the_chain_is_cut(opened: Resources, keys: Path, steps: int) -> None:
    """Without what covers it: then only the register tells, and the database."""
    signed(opened, keys)
    forge(opened, cut=steps)
    assert "its end is cut" in problems(opened, "files")[0]
    for name in opened.audit_store.read("small"):
        if (files.witnessed_steps(name) or 0) > steps:
            (opened.settings.home / "lake" / "_audits" / "small" / name).unlink()
    assert problems(opened, "files") == problems(opened, "signatures") == []
    assert "that are not in its chain" in problems(opened, "register")[0]


def test_signatures_and_timestamps_are_removed(
    opened: Resources, keys: Path, tsa: Authority
) -> None:
    """Who demands them finds that they are missing; who does not is told."""
    signed(opened, keys)
    folder = {
        name: item
        for name, item in opened.audit_store.read("small").items()
        if not files.witnessed_steps(name)
    }
    signers, roots = read_signers(keys / "signers.toml"), read_roots(tsa.roots)
    demanded = Witnesses(signers=signers, roots=roots, required=True).levels(folder)
    assert [len(level.problems) for level in demanded] == [2, 2]
    result: list[Level] = Witnesses(signers=signers, roots=roots).levels(folder)
    assert [(len(level.problems), len(level.remarks)) for level in result] == [(0, 2), (0, 2)]


def test_a_step_does_not_wait_for_an_authority(
    small_home: Installation, tsa: Authority, caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    away = small_home.but(timestamp_url="http://127.0.0.1:9/?hunter2", timestamp_roots=tsa.roots)
    with open_resources(away.settings) as resources:
        go_to(resources, "approve")
        assert resources.audit_store.chain("small")[-1].action == "approved"
        assert "has no timestamp yet" in caplog.text
        assert "hunter2" not in caplog.text
        assert remarks(resources, "timestamps") == [
            "the step approved has no timestamp: its time is only that of the own clock"
        ]
    with serving(tsa.answer) as url:
        back = small_home.but(timestamp_url=url, timestamp_roots=tsa.roots)
        with open_resources(back.settings) as resources:
            assert resources.audit("small").stamp() == ["chain-2.tsr"]
            assert resources.audit("small").stamp() == []
            assert finders(resources) == set()


def test_keys_are_made_and_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "key"
    assert main(["audit", "key", "Eve", "--key", str(path)]) == 0
    line = capsys.readouterr().out.splitlines()[-1]
    (tmp_path / "signers.toml").write_text(line)
    assert path.stat().st_mode & 0o777 == 0o600
    assert read_signers(tmp_path / "signers.toml") == {"eve": read_key(path).public_key()}
    assert main(["audit", "key", "Eve", "--key", str(path)]) == 1  # none is overwritten
    public = make_key(tmp_path / "locked", "a passphrase")
    locked = read_key(tmp_path / "locked", "a passphrase").public_key()
    assert base64.b64decode(public) == locked.public_bytes_raw()
    for passphrase in ("", "another"):
        with pytest.raises(AuditError, match="check the passphrase"):
            read_key(tmp_path / "locked", passphrase)
    (tmp_path / "signers.toml").write_text(f'{line}\n"EVE" = "{public}"\n')
    with pytest.raises(AuditError, match="two names differ in case or width only"):
        read_signers(tmp_path / "signers.toml")
    for wrong in ("eve", '"eve" = 3', '"eve" = "AAAA"', '"eve" = "ü"'):
        (tmp_path / "signers.toml").write_text(wrong)
        with pytest.raises(AuditError, match="is not a file of signers"):
            read_signers(tmp_path / "signers.toml")
