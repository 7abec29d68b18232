"""The settings file: what it means here, and to a shell."""

import os
import stat
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modwatch.common.errors import SettingsError
from modwatch.settings.file import apply_settings_file, parse, render, write

VALUES = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Zl", "Zp", "Cs"]))


@given(VALUES)
def test_every_value_comes_back(value):
    text = render("A title.", {"A_NAME": value}, {"A_NAME": "What it is."})
    assert parse(text, Path("a")) == {"A_NAME": value}


@pytest.mark.parametrize("value", ['$HOME `id` \\ "', "it's", '{"text": "body"}', "/in/{dt}.csv"])
def test_a_shell_reads_the_same(tmp_path, value):
    path = tmp_path / "modwatch.env"
    write(path, render("A title.", {"A_NAME": value}, {"A_NAME": "What it is."}))
    script = f'. {path}; printf %s "$A_NAME"'
    assert subprocess.check_output(["sh", "-c", script], text=True) == value
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_environment_goes_before_the_file(tmp_path):
    path = tmp_path / "mine.env"
    path.write_text("MODWATCH_HOME=/a\nMODWATCH_LAKE=/b\n")
    environ = {"MODWATCH_SETTINGS_FILE": str(path), "MODWATCH_HOME": "/mine"}
    assert apply_settings_file(environ) == {"MODWATCH_LAKE": path}
    assert (environ["MODWATCH_HOME"], environ["MODWATCH_LAKE"]) == ("/mine", "/b")


def test_the_file_of_the_working_folder_is_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    environ: dict[str, str] = {}
    assert apply_settings_file(environ) == {}
    (tmp_path / "modwatch.env").write_text("MODWATCH_HOME=/a\n")
    assert apply_settings_file(environ) == {"MODWATCH_HOME": Path("modwatch.env")}
    assert environ == {"MODWATCH_HOME": "/a"}


@pytest.mark.parametrize("line", ["hunter2", "A=hunter2 two", "A='hunter2", "a b=hunter2"])
def test_a_line_that_is_no_setting_is_named_and_not_quoted(line):
    with pytest.raises(SettingsError, match=r"a\.env, line 2 is no setting") as caught:
        parse(f"# a comment\n{line}\n", Path("a.env"))
    assert "hunter2" not in str(caught.value)


def test_a_file_that_is_named_must_exist():
    environ = {**os.environ, "MODWATCH_SETTINGS_FILE": "/nowhere/modwatch.env"}
    with pytest.raises(SettingsError, match=r"/nowhere/modwatch\.env cannot be read"):
        apply_settings_file(environ)


def test_a_file_that_cannot_be_written_is_stated_in_a_line(tmp_path):
    with pytest.raises(SettingsError, match=r"cannot be written .*; name a file in a folder that"):
        write(tmp_path / "gone" / "a.env", "A=b\n")


@pytest.mark.parametrize(
    ("mode", "owner", "says"),
    [
        (0o664, None, "other users may write the settings file .*chmod go-w"),
        (0o646, None, "other users may write the settings file .*chmod go-w"),
        (0o600, 65_534, "belongs to another user, .* run: chown 0 "),
        (0o644, None, None),
    ],
)
def test_a_file_that_others_may_write_is_refused(tmp_path, mode, owner, says):
    """In the working folder or named: root obeyed the file of anybody."""
    path = tmp_path / "mine.env"
    path.write_text("MODWATCH_HOME=/a\n")
    path.chmod(mode)
    if owner is not None:
        if os.geteuid():
            pytest.skip("only root gives files away")
        os.chown(path, owner, -1)
    environ = {"MODWATCH_SETTINGS_FILE": str(path)}
    if says is None:
        assert apply_settings_file(environ) == {"MODWATCH_HOME": path}
    else:
        with pytest.raises(SettingsError, match=says):
            apply_settings_file(environ)
        assert "MODWATCH_HOME" not in environ
