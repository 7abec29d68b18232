"""The wheel of the working tree, built as `pip install .` does."""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
_PARTS = ("LICENSE", "README.md", "dags", "plugins", "pyproject.toml", "setup.py", "src")
_NOT = shutil.ignore_patterns("__pycache__", "*.egg-info")


def build_wheel(folder: Path) -> Path:
    """Return the wheel, built in `folder` from a copy: a build leaves files next to its sources."""
    tree = folder / "tree"
    tree.mkdir(parents=True)
    for name in _PARTS:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tree / name, ignore=_NOT)
        else:
            shutil.copy(ROOT / name, tree)
    pip(sys.executable, "wheel", "--no-deps", "--no-build-isolation", "-w", str(folder), str(tree))
    [wheel] = folder.glob("*.whl")
    return wheel


def pip(python: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run pip of the interpreter `python`; raises AssertionError with the end of its output."""
    done = subprocess.run(
        [python, "-m", "pip", "-q", "--disable-pip-version-check", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-2000:]
    return done
