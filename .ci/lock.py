"""Writes requirements.txt: pyproject.toml with all extras and the group `dev`, pinned.

A version that is already pinned stays, unless pyproject.toml no longer allows it or its package is
named as an argument: `lock.py pandas numpy`, or `lock.py --all`.
"""

import json
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PROJECT = Path("pyproject.toml")
LOCK = Path("requirements.txt")
HEADER = """\
# Every extra and the group `dev` of pyproject.toml, as they are tested together.
# Written by `make lock`; edit pyproject.toml instead.
"""
#: Come with some builds of torch and not with others; pinning them would break the CPU build.
HARDWARE = re.compile(r"nvidia-|cuda-|triton$")


def main(upgrade: list[str]) -> None:
    """Rewrite the lock; keep the pins of all packages that are not in `upgrade`."""
    wanted = requirements(tomllib.loads(PROJECT.read_text()))
    kept = {} if "--all" in upgrade else pins(LOCK.read_text())
    for name in upgrade:
        kept.pop(canonicalize_name(name), None)
    for each in wanted:
        name = canonicalize_name(each.name)
        if name in kept and not each.specifier.contains(kept[name], prereleases=True):
            del kept[name]
    resolved = resolve([str(each) for each in wanted], kept)
    lines = sorted(f"{n}=={v}" for n, v in resolved.items() if not HARDWARE.match(n))
    LOCK.write_text("\n".join([HEADER, *lines, ""]))


def requirements(project: dict) -> list[Requirement]:
    """Return the dependencies, those of all extras, and those of the group `dev`."""
    parts = [project["project"]["dependencies"]]
    parts += project["project"]["optional-dependencies"].values()
    parts.append(group(project["dependency-groups"], "dev"))
    every = [Requirement(text) for part in parts for text in part]
    return [each for each in every if each.name != project["project"]["name"]]


def group(groups: dict, name: str) -> list[str]:
    """Return the requirements of a dependency group, those of the groups in it included."""
    parts = [
        [entry] if isinstance(entry, str) else group(groups, entry["include-group"])
        for entry in groups[name]
    ]
    return [text for part in parts for text in part]


def pins(lock: str) -> dict[str, str]:
    """Return the pinned version of each package."""
    found = re.findall(r"^([\w.-]+)(?:\[\w+\])?==(\S+)$", lock, re.MULTILINE)
    return {canonicalize_name(name): version for name, version in found}


def resolve(wanted: list[str], kept: dict[str, str]) -> dict[str, str]:
    """Return every package and version that pip would install for `wanted`, `kept` unchanged."""
    with tempfile.TemporaryDirectory() as folder:
        needs, limits = Path(folder, "wanted.txt"), Path(folder, "kept.txt")
        report = Path(folder, "report.json")
        needs.write_text("\n".join(wanted))
        limits.write_text("\n".join(f"{name}=={version}" for name, version in kept.items()))
        subprocess.run(
            [sys.executable, "-m", "pip", "install", "-q", "--dry-run", "--ignore-installed",
             "--report", str(report), "-r", str(needs), "-c", str(limits)],
            check=True,
        )  # fmt: skip
        installs = json.loads(report.read_text())["install"]
    found = {item["metadata"]["name"]: item["metadata"]["version"] for item in installs}
    return {canonicalize_name(name): v.split("+")[0] for name, v in found.items()}


if __name__ == "__main__":
    main(sys.argv[1:])
