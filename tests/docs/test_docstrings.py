"""The examples in the docstrings run."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
#: Rooms that take seconds to import: PyTorch, MLflow, Airflow, Ray.
SLOW = ("models", "installation", "monitoring", "pipeline")


def run_examples(paths: list[Path]) -> None:
    """Run the examples of some folders in one process, which imports each package once."""
    command = [sys.executable, "-m", "pytest", "--doctest-modules", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run([*command, *paths], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-5_000:]


def test_examples_run():
    rooms = sorted(path for path in (SOURCE / "modwatch").iterdir() if path.is_dir())
    run_examples([room for room in rooms if room.name not in (*SLOW, "__pycache__")])


def test_examples_of_rooms_that_are_slow_to_import_run(services):
    run_examples([*(SOURCE / "modwatch" / room for room in SLOW), SOURCE / "modwatch_lab"])
