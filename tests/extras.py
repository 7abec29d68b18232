"""Runs Python as if nothing but some extras of Modwatch were installed."""

import json
import os
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

#: Where Ray has its own copies of packages.
_VENDORED = "/ray/thirdparty_files/"
ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
_EXTRAS = PROJECT["project"]["optional-dependencies"]

#: In which code must end.
_SECONDS = 120


def run_with(extras: Sequence[str], code: str) -> subprocess.CompletedProcess[str]:
    """Run `code` in a new process that has the dependencies of `extras` and no others."""
    with TemporaryDirectory() as folder:
        server = _server()
        assert server.stdin
        assert server.stdout
        order = {"extras": list(extras), "code": code, "folder": folder}
        server.stdin.write(json.dumps(order) + "\n")
        server.stdin.flush()
        status = int(server.stdout.readline())
        out, err = ((Path(folder) / name).read_text() for name in ("out", "err"))
    return subprocess.CompletedProcess(code, status, out, err)


@cache
def _server() -> subprocess.Popen[str]:
    """Start an interpreter that knows what is installed; it ends with this one."""
    return subprocess.Popen(
        [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def _serve() -> None:
    """Fork for each order; answer with the status."""
    sys.path[0] = str(ROOT / "src")
    _providers()
    for line in sys.stdin:
        order = json.loads(line)
        child = os.fork()
        if not child:
            signal.alarm(_SECONDS)
            for number, name in ((1, "out"), (2, "err")):
                os.dup2(os.open(Path(order["folder"]) / name, os.O_WRONLY | os.O_CREAT), number)
            hide_all_but(order["extras"])
            exec(order["code"], {"__name__": "__main__", "sys": sys})
            return
        sys.stdout.write(f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n")
        sys.stdout.flush()


@cache
def _providers() -> dict[str, list[str]]:
    """Return the distributions that bring each top module."""
    return {module: list(names) for module, names in metadata.packages_distributions().items()}


def hide_all_but(extras: Sequence[str]) -> None:
    """Hide every installed package that `extras` do not bring from this interpreter."""
    visible = {*_closure(own_requirements(extras)), "modwatch"}
    hidden = {
        module
        for module, names in _providers().items()
        if not {canonicalize_name(name) for name in names} & visible
    }
    sys.meta_path[:] = [_Finder(item, hidden) for item in sys.meta_path]


class _Finder:
    """A finder that does not see some packages."""

    def __init__(self, inner: Any, hidden: set[str]) -> None:
        self._inner = inner
        self._hidden = hidden

    def find_spec(self, fullname: str, *more: Any) -> Any:
        spec = self._inner.find_spec(fullname, *more)
        hidden = fullname.partition(".")[0] in self._hidden
        return None if hidden and _VENDORED not in str(getattr(spec, "origin", "")) else spec

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def own_requirements(extras: Iterable[str]) -> list[Requirement]:
    """Return the dependencies of Modwatch with `extras`, those of the extras in them included."""
    texts = list(PROJECT["project"]["dependencies"])
    for extra in extras:
        texts += _EXTRAS[extra]
    every = [Requirement(text) for text in texts]
    inner = [name for item in every if item.name == "modwatch" for name in item.extras]
    return [item for item in every if item.name != "modwatch"] + (
        own_requirements(inner) if inner else []
    )


def _closure(requirements: Iterable[Requirement]) -> set[str]:
    """Return the names of every distribution that installing `requirements` brings."""
    found: set[str] = set()
    done: set[tuple[str, frozenset[str]]] = set()
    waiting = list(requirements)
    while waiting:
        item = waiting.pop()
        name = canonicalize_name(item.name)
        if (key := (name, frozenset(item.extras))) not in done:
            done.add(key)
            found.add(name)
            waiting += _needs(name, item.extras)
    return found


def _needs(name: str, extras: Iterable[str]) -> Iterator[Requirement]:
    try:
        texts = metadata.requires(name) or []
    except metadata.PackageNotFoundError:  # for another platform
        return
    for text in texts:
        need = Requirement(text)
        if any(
            need.marker is None or need.marker.evaluate({"extra": extra}) for extra in ("", *extras)
        ):
            yield need


if __name__ == "__main__":
    _serve()
