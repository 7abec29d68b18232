"""requirements.txt: each package once, within the ranges of pyproject.toml."""

import importlib.util
import re
import tomllib

import pytest
from packaging.utils import canonicalize_name

from extras import PROJECT, ROOT

_SPEC = importlib.util.spec_from_file_location("lock", ROOT / ".ci" / "lock.py")
lock = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(lock)

TEXT = (ROOT / "requirements.txt").read_text()
PINS = lock.pins(TEXT)


def test_every_line_pins_a_package_of_its_own():
    lines = [line for line in TEXT.splitlines() if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[a-z0-9-]+==\S+", line) for line in lines)
    assert lines == sorted(lines)
    assert len(PINS) == len(lines)


@pytest.mark.parametrize("need", lock.requirements(PROJECT), ids=lambda need: need.name)
def test_every_dependency_is_pinned_within_its_range(need):
    version = PINS[canonicalize_name(need.name)]
    assert need.specifier.contains(version), "run `make lock`"


def test_the_lock_asks_for_all_extras_and_the_development_group():
    project = tomllib.loads(
        """
        [project]
        name = "modwatch"
        dependencies = ["a>=1"]
        [project.optional-dependencies]
        x = ["b", "modwatch[y]"]
        y = ["c"]
        [dependency-groups]
        dev = ["d", { include-group = "more" }]
        more = ["e"]
        unused = ["f"]
        """
    )
    assert [str(requirement) for requirement in lock.requirements(project)] == [
        "a>=1",
        "b",
        "c",
        "d",
        "e",
    ]
