"""The examples in the docstrings run."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = sorted(path.name for path in (ROOT / "src" / "modwatch").iterdir() if path.is_dir())
#: Rooms that take seconds to import: PyTorch, MLflow, Airflow, Ray.
SLOW = {"models", "installation", "demo", "monitoring", "pipeline"}


def run_examples(rooms: list[str]) -> None:
    """Run the examples of some rooms in one process, which imports each package once."""
    command = [sys.executable, "-m", "pytest", "--doctest-modules", "-q", "-p", "no:cacheprovider"]
    paths = [str(ROOT / "src" / "modwatch" / room) for room in rooms]
    done = subprocess.run([*command, *paths], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-5_000:]


def test_examples_run() -> None:
    run_examples([room for room in ROOMS if room not in SLOW and room != "__pycache__"])


def test_examples_of_rooms_that_are_slow_to_import_run(services: None) -> None:
    run_examples(sorted(SLOW))
