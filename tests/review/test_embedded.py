import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from databases import scalar

from modwatch.common.errors import DatabaseError
from modwatch.review.database import connect
from modwatch.review.embedded import embedded

pytestmark = pytest.mark.usefixtures("services")

USE_AND_DIE = """
import os, sys
from pathlib import Path
from modwatch.review.database import connect
from modwatch.review.embedded import embedded
with embedded(Path(sys.argv[1])) as server:
    connect(server.url("kept")).dispose()
    print("ready", flush=True)
    if sys.argv[2] == "killed":
        os.kill(os.getpid(), 9)
    sys.stdin.readline()
"""


#: Durable, reached by a socket alone, and silent about texts.
WANTED = {
    "fsync": "on",
    "synchronous_commit": "on",
    "max_connections": "200",
    "log_error_verbosity": "terse",
    "log_min_error_statement": "panic",
    "listen_addresses": "",
}


def shown(url: str) -> dict[str, object]:
    engine = connect(url)
    found = {name: scalar(engine, f"SHOW {name}") for name in WANTED}
    engine.dispose()
    return found


@pytest.fixture
def data_dir():
    """Not in pytest's folder, as `conftest.path_server` says."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def start_user(folder: Path, end: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", USE_AND_DIE, str(folder), end],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def runs(folder: Path) -> bool:
    return (folder / "cluster" / "postmaster.pid").exists()


def test_the_last_user_stops_it_and_a_killed_one_does_not_count(data_dir):
    with start_user(data_dir, "killed") as killed:
        assert killed.wait(timeout=120) == -9
    assert runs(data_dir)  # nobody was left to stop it

    with start_user(data_dir, "waiting") as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "ready\n"
        with embedded(data_dir) as server:
            url = server.url("kept")
        connect(url).dispose()  # the other process is still at work
        other.communicate("\n", timeout=60)
    assert other.returncode == 0
    assert not runs(data_dir)
    with pytest.raises(DatabaseError):
        connect(url)

    (data_dir / "cluster" / "postmaster.pid").write_text("1\n")  # as after a power cut
    with embedded(data_dir) as server, embedded(data_dir) as again:
        assert server.server_url == again.server_url
        assert shown(server.server_url) == WANTED
        connect(server.url("kept")).dispose()
    assert not runs(data_dir)


def test_unusable_folders_are_named(tmp_path):
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(DatabaseError, match="file"), embedded(file):
        pass
    with pytest.raises(DatabaseError, match="without spaces"), embedded(tmp_path / "a b"):
        pass
