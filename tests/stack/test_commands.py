"""What the commands of a stack import: people and scripts ask for the state again and again."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

CODE = """
import sys
from modwatch.cli.main import main
assert main(sys.argv[1:]) == {status}
print(sorted({{"httpx", "pandas", "pyarrow", "scipy", "sqlalchemy"}} & set(sys.modules)))
"""


@pytest.mark.parametrize(("command", "status"), [("status", 1), ("down", 0)])
def test_state_and_end_are_told_without_the_packages_of_the_parts(
    command: str, status: int, tmp_path: Path
) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", CODE.format(status=status), command],
        env={**os.environ, "MODWATCH_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert ended.stdout.splitlines()[0].startswith("nothing runs in")
    assert ended.stdout.splitlines()[-1] == "[]"
