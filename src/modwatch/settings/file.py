"""The settings file: lines `NAME=value` that stand in for environment variables.

The same file serves a shell (`set -a; . modwatch.env`) and systemd (`EnvironmentFile=`).
"""

import os
import re
import shlex
import tomllib
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from modwatch.common.errors import SettingsError
from modwatch.common.files import replace

#: Variable that names the file; without it, a file of this name in the working folder is read.
VARIABLE, DEFAULT = "MODWATCH_SETTINGS_FILE", "modwatch.env"

M = TypeVar("M", bound=BaseModel)

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLAIN = re.compile(r"[\w./:@%+,{}-]*", re.ASCII)


def apply_settings_file(environ: MutableMapping[str, str]) -> dict[str, Path]:
    """Add the settings of the file to `environ`, which goes before; return the file of each added.

    Raises:
        SettingsError: the file that MODWATCH_SETTINGS_FILE names cannot be read, another user may
            write it, or a line of a file is no setting. Values are not quoted: they may be secret.
    """
    named = environ.get(VARIABLE)
    path = Path(named or DEFAULT)
    if named is None and not path.is_file():
        return {}
    try:
        with path.open(encoding="utf-8") as file:
            _refuse_foreign(path, os.fstat(file.fileno()))
            text = file.read()
    except (OSError, UnicodeDecodeError) as exc:
        raise SettingsError(
            f"the settings file {path} cannot be read ({type(exc).__name__}); correct {VARIABLE}"
        ) from None
    added = {name: value for name, value in parse(text, path).items() if name not in environ}
    environ.update(added)
    return dict.fromkeys(added, path)


def _refuse_foreign(path: Path, state: os.stat_result) -> None:
    """Raise SettingsError for a file that another user than root and our own may write.

    As ssh and sudo do: who writes the settings decides what this process runs and connects to.
    """
    if state.st_uid not in (0, os.geteuid()):
        raise SettingsError(
            f"the settings file {path} belongs to another user, who could change what Modwatch "
            f"does; check its content, then run: chown {os.geteuid()} {shlex.quote(str(path))}"
        )
    if state.st_mode & 0o022:
        raise SettingsError(
            f"other users may write the settings file {path}; check its content, then run: "
            f"chmod go-w {shlex.quote(str(path))}"
        )


def parse(text: str, path: Path) -> Mapping[str, str]:
    """Return the variables of a settings file; `path` is for messages.

    >>> parse("# a comment\\nMODWATCH_HOME=/srv/modwatch\\nNAME='two words'\\n", Path("a.env"))
    {'MODWATCH_HOME': '/srv/modwatch', 'NAME': 'two words'}
    """
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, sign, written = line.strip().partition("=")
        try:
            values = shlex.split(written)
        except ValueError:  # an open quotation mark
            values = ["", ""]
        if not sign or not _NAME.fullmatch(name) or len(values) > 1:
            raise SettingsError(
                f"{path}, line {number} is no setting; write NAME=value, and 'value' if it has "
                "spaces or quotation marks"
            )
        found[name] = values[0] if values else ""
    return found


def render(title: str, values: Mapping[str, str], comments: Mapping[str, str]) -> str:
    """Return the text of a settings file: values by name, each below its comment.

    >>> print(render("Mine.", {"A": '{"b": "c"}'}, {"A": "A map."}), end="")
    # Mine.
    <BLANKLINE>
    # A map.
    A='{"b": "c"}'
    """
    lines = [f"# {line}" for line in title.splitlines()]
    for name, value in values.items():
        written = value if _PLAIN.fullmatch(value) else shlex.quote(value)
        lines += [
            "",
            *(f"# {line}" for line in comments[name].splitlines()),
            f"{name}={written}",
        ]
    return "\n".join(lines) + "\n"


def write(path: Path, text: str) -> None:
    """Write a settings file that only its owner can read; an existing one is replaced.

    Raises:
        SettingsError: the folder does not exist, or this user may not write into it.
    """
    try:
        replace(path, text.encode())
    except OSError as exc:
        raise SettingsError(
            f"the settings file {path} cannot be written ({exc.strerror}); name a file in a folder "
            "that exists and that this user may write into"
        ) from None


def read_toml(path: Path) -> dict[str, Any]:
    """Return the content of the TOML file that a setting names.

    Raises:
        SettingsError: the file cannot be read, or is not TOML.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as exc:
        why = exc if isinstance(exc, tomllib.TOMLDecodeError) else type(exc).__name__
        raise SettingsError(
            f"{path} cannot be read as TOML ({why}); correct the file or leave it out"
        ) from None


def validated(model: type[M], plain: Mapping[str, Any], origin: str) -> M:
    """Return the content of a TOML file as its model.

    Raises:
        SettingsError: a value is invalid; the message has `origin`, the table and the field.
    """
    try:
        return model(**plain)
    except ValidationError as exc:
        error = exc.errors()[0]
        problem = error["msg"].removeprefix("Value error, ")
        parts = (origin, _where(error["loc"], plain), problem)
        raise SettingsError(": ".join(filter(None, parts))) from None


def _where(location: tuple[int | str, ...], plain: Mapping[str, Any]) -> str:
    """Return the name of a table of an array, or its number when it has none, and the field.

    >>> _where(("rules", 0, "open", "bound"), {"rules": [{"name": "a"}]})
    "rule 'a': open.bound"
    """
    match location:
        case (str(array), int(number), *field):
            table = plain[array][number]
            known = table if isinstance(table, dict) else {}
            name = known.get("name", known.get("code"))
            shown = repr(name) if isinstance(name, str) else f"number {number + 1}"
            where = f"{array.removesuffix('s')} {shown}"
            return ": ".join(filter(None, (where, ".".join(map(str, field)))))
    return ".".join(map(str, location))
