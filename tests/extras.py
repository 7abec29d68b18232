"""Runs Python as if nothing but some extras of Modwatch were installed."""

import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

#: Where Ray has its own copies of packages.
_VENDORED = "/ray/thirdparty_files/"
ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
_EXTRAS = PROJECT["project"]["optional-dependencies"]

_PROGRAM = """
import sys
sys.path[:0] = {path}
import extras
extras.hide_all_but({extras})
{code}
"""


def run_with(extras: Sequence[str], code: str) -> subprocess.CompletedProcess[str]:
    """Run `code` in a new interpreter that has the dependencies of `extras` and no others."""
    path = [str(Path(__file__).parent), str(ROOT / "src")]
    return subprocess.run(
        [sys.executable, "-c", _PROGRAM.format(path=path, extras=list(extras), code=code)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def hide_all_but(extras: Sequence[str]) -> None:
    """Hide every installed package that `extras` do not bring from this interpreter."""
    visible = {*_closure(own_requirements(extras)), "modwatch"}
    hidden = {
        module
        for module, names in metadata.packages_distributions().items()
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
