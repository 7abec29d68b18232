"""Names, times and the end of the chain are changed; what signatures and timestamps show of it."""

import base64
import shutil
import subprocess
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
from audit_forger import finders, forge, problems, remarks, turned_round
from audit_path import STEPS, go_to
from authority import serving, usual
from databases import empty
from kept_audits import keep
from small_audits import (
    label_everything,
    make_small_home,
    same_audit_draws,
    small_installation,
)

from installation import config_with
from modwatch.audits import files
from modwatch.audits.evidence import Event, moment
from modwatch.audits.witnesses import read_witnesses
from modwatch.cli.main import main
from modwatch.common.errors import AuditError
from modwatch.common.ledger.chain import commitment
from modwatch.common.ledger.signatures import make_key, read_key, read_signers
from modwatch.installation.resources import Resources, open_resources

pytestmark = [
    pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated"),
    pytest.mark.skipif(not shutil.which("openssl"), reason="no openssl"),
]

PEOPLE = ("eva", "eve", "fay", "mallory")


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    """A folder with a key of each person, and the public keys of all but Mallory."""
    folder = tmp_path_factory.mktemp("keys")
    lines = [f'"{name}" = "{make_key(folder / name)}"\n' for name in PEOPLE]
    (folder / "signers.toml").write_text("".join(lines[:-1]))
    return folder


@pytest.fixture(scope="module")
def tsa(tmp_path_factory):
    return usual(tmp_path_factory.mktemp("tsa"))


@pytest.fixture(scope="module")
def witnessed(keys, tsa, tmp_path_factory):
    """Return a function that gives an installation signers and an authority that answers."""
    with pytest.MonkeyPatch.context() as patched, serving(tsa.answer) as url:
        patched.setenv("no_proxy", "127.0.0.1")
        files = {"timestamps.pem": tsa.roots, "signers.toml": keys / "signers.toml"}
        config = config_with(tmp_path_factory.mktemp("witnesses"), files)
        yield lambda home: home.but(timestamp_url=url, config=config)


@pytest.fixture(scope="module")
def carried_out(witnessed, keys, migrated_queue_url, queue_owner, tmp_path_factory):
    """An audit whose approval and result are signed, before its publication and after it."""
    empty(queue_owner)
    folder = tmp_path_factory.mktemp("signed")
    home = witnessed(make_small_home(folder / "home", migrated_queue_url))
    with same_audit_draws(), open_resources(home.settings) as resources:
        for name, step in STEPS.items():
            step(resources)
            if name == "approve":
                sign(resources, keys, "eve")
            if name == "draw":
                label_everything(resources)
            if name == "sign_off":
                before = keep(resources, queue_owner, folder / name)
                sign(resources, keys, "fay")
        return {"sign_off": before, "publish": keep(resources, queue_owner, folder / "publish")}


@pytest.fixture
def after(carried_out, witnessed, queue_url, queue_owner, tmp_path, same_draws):
    """Return a function that opens a copy of the signed audit as it was after a step."""
    home = witnessed(small_installation(tmp_path / "copy", queue_url))
    with ExitStack() as opened:
        yield lambda step: opened.enter_context(carried_out[step].opened(queue_owner, home))


def sign(at: Resources, keys: Path, name: str) -> str:
    return at.audit("small").sign(read_key(keys / name), actor=name)


def remove(at: Resources, names: Iterable[str]) -> None:
    for name in names:
        (at.settings.home / "lake" / "_audits" / "small" / name).unlink()


def test_signed_and_timestamped_evidence_is_verified_anywhere(
    published, keys, tsa, tmp_path, capsys
):
    assert finders(published) == set()
    assert remarks(published, "signatures") == remarks(published, "timestamps") == []
    copied = tmp_path / "elsewhere"
    shutil.copytree(published.settings.home / "lake" / "_audits" / "small", copied)
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


def earlier(event: Event, days: int = 7) -> Event:
    """Every step a week before."""
    return replace(event, at=(moment(event.at) - timedelta(days=days)).isoformat())


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
def test_steps_are_changed(published, change):
    forge(published, event=change)
    assert {"signatures", "timestamps", "register"} <= finders(published)
    result = problems(published, "signatures")
    assert ["signature that is not valid" in message for message in result] == [True, True]


def test_labels_are_turned_round_after_the_signature(published):
    """The result is made anew, and everything that follows, and the register."""
    forge(published, {files.labels_file(1): files.write_labels(turned_round(published))})
    assert finders(published) == {"signatures", "timestamps", "decision log", "register"}
    [message] = problems(published, "signatures")  # the approval is older than the labels
    assert message.startswith("the step signed off by 'fay' has a signature that is not valid")


def test_the_signer_is_changed(published):
    """To someone without a key, to someone with one, and signed with a key of one's own."""
    kept = published.audit_store.read("small")
    forge(published, event=lambda event: _signed_by(event, "mallory"))
    assert "the file of signers does not have the name" in problems(published, "signatures")[0]
    assert {"timestamps", "register"} <= finders(published)
    forge(published, event=lambda event: _signed_by(event, "fay"))
    assert finders(published) == set()
    forged = {files.signature_file(len(published.audit_store.chain("small")) - 1): b"0" * 64}
    for name, content in (kept | forged).items():
        published.audit_store.witness("small", name, content)
    assert "signature that is not valid" in problems(published, "signatures")[0]


def _signed_by(event: Event, name: str) -> Event:
    return replace(event, actor=name) if event.action == "signed_off" else event


def test_mallory_signs_in_the_name_of_fay(after, keys):
    at = after("sign_off")
    with pytest.raises(AuditError, match="this is not the key of 'fay'"):
        at.audit("small").sign(read_key(keys / "mallory"), actor="fay")
    with pytest.raises(AuditError, match="'mallory' took no step that is to be signed"):
        sign(at, keys, "mallory")
    content = at.audit_store.read("small")[files.CHAIN]
    forged = read_key(keys / "mallory").sign(content)
    number = len(at.audit_store.chain("small"))
    at.audit_store.witness("small", files.signature_file(number), forged)
    assert "signature that is not valid" in problems(at, "signatures")[0]


@pytest.mark.parametrize("days", [7, -1], ids=["earlier", "later"])
def test_times_are_changed(published, days):
    """And the timestamps are asked for anew, which anybody can."""
    labels = files.read_labels(published.audit_store.read("small")[files.labels_file(1)])
    before = [
        replace(label, decided_at=(moment(label.decided_at) - timedelta(days=days)).isoformat())
        for label in labels
    ]
    changes = {files.labels_file(1): files.write_labels(before)}
    forge(published, changes, event=partial(earlier, days=days))
    assert ["is not valid" in message for message in problems(published, "timestamps")] == [
        True,
        True,
    ]
    names = published.audit_store.read("small")
    remove(published, [name for name in names if name.endswith(".tsr")])
    published.audit("small").stamp()
    result = problems(published, "timestamps")
    assert ["it was written anew, or the clock was wrong" in message for message in result] == [
        True,
        True,
    ]
    assert finders(published) == {"signatures", "timestamps", "decision log", "register"}


@pytest.mark.parametrize("steps", [1, 5])
def test_the_end_of_the_chain_is_cut(published, steps):
    """Without what covers it: then only the register tells, and the database."""
    forge(published, cut=steps)
    assert "its end is cut" in problems(published, "files")[0]
    names = published.audit_store.read("small")
    remove(published, [name for name in names if (files.witnessed_steps(name) or 0) > steps])
    assert problems(published, "files") == problems(published, "signatures") == []
    assert "that are not in its chain" in problems(published, "register")[0]


def test_signatures_and_timestamps_are_removed(published, keys, tsa):
    """Who demands them finds that they are missing; who does not is told."""
    folder = {
        name: item
        for name, item in published.audit_store.read("small").items()
        if not files.witnessed_steps(name)
    }
    demanded = read_witnesses(keys / "signers.toml", tsa.roots)
    assert [len(level.problems) for level in demanded.levels(folder)] == [2, 2]
    result = replace(demanded, required=False).levels(folder)
    assert [(len(level.problems), len(level.remarks)) for level in result] == [(0, 2), (0, 2)]


def test_a_step_does_not_wait_for_an_authority(small_home, tsa, caplog, monkeypatch, tmp_path):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    config = config_with(tmp_path, {"timestamps.pem": tsa.roots})
    away = small_home.but(timestamp_url="http://127.0.0.1:9/?hunter2", config=config)
    with open_resources(away.settings) as resources:
        go_to(resources, "approve")
        assert resources.audit_store.chain("small")[-1].action == "approved"
        assert "has no timestamp yet" in caplog.text
        assert "hunter2" not in caplog.text
        assert remarks(resources, "timestamps") == [
            "the step approved by 'eve' has no timestamp: its time is only that of the own clock"
        ]
    with serving(tsa.answer) as url:
        back = small_home.but(timestamp_url=url, config=config)
        with open_resources(back.settings) as resources:
            assert resources.audit("small").stamp() == ["chain-2.tsr"]
            assert resources.audit("small").stamp() == []
            assert finders(resources) == set()


def test_keys_are_made_and_read(tmp_path, capsys):
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
