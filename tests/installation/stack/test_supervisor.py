import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from modwatch.common.errors import StackError
from modwatch.installation.stack.commands import describe, down
from modwatch.installation.stack.processes import MARK, Session, members, session_of
from modwatch.installation.stack.progress import USUAL_STOP
from modwatch.installation.stack.record import StackFolder
from modwatch.installation.stack.supervisor import Service, Stack, interruptible

PYTHON = sys.executable
SLEEP = [PYTHON, "-c", "import time; time.sleep(60)"]
STUBBORN = [
    PYTHON,
    "-c",
    "import os, subprocess, sys, time\n"
    "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'],"
    " start_new_session=True)\n"
    "print('up', flush=True)\n"
    "time.sleep(60)",
]


def wait_until(condition, seconds: float = 10) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.05)
    return False


def test_leaving_the_context_stops_every_process_even_a_daemon(tmp_path):
    with Stack(logs=tmp_path) as stack:
        stack.start(Service(name="plain", command=SLEEP))
        stack.start(Service(name="daemon", command=STUBBORN))
        assert wait_until(lambda: len(stack.processes()) == 3)
    assert stack.processes() == []


def test_the_end_says_how_much_is_left_and_is_measured(tmp_path):
    lines: list[str] = []
    folder = StackFolder(home=tmp_path)
    with folder.held(), Stack(logs=tmp_path, folder=folder, say=lines.append) as stack:
        stack.start(Service(name="first", command=SLEEP))
        stack.start(Service(name="second", command=SLEEP))
        stack.wait_ready()
        assert 0 <= folder.usual("start of first, second", default=99) < 90
    assert lines[-2:] == [
        f"stopping second, 1 of 2; about {USUAL_STOP:.0f} s left",
        f"stopping first, 2 of 2; about {USUAL_STOP:.0f} s left",
    ]
    assert 0 <= folder.usual("stop", default=99) < 90


def test_durations_that_cannot_be_read_are_measured_anew(tmp_path):
    folder = StackFolder(home=tmp_path)
    assert folder.usual("stop", default=12) == 12
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "durations.json").write_text('{"stop": ')  # cut off
    assert folder.usual("stop", default=12) == 12
    folder.remember("stop", 3.21)
    folder.remember("start", 20)
    assert (folder.usual("stop", default=12), folder.usual("start", default=12)) == (3.2, 20)


def test_a_program_that_stays_is_named_while_it_is_waited_for(tmp_path):
    """It ignores SIGTERM: there is a line after ten seconds, and it is killed after fifteen."""
    lines: list[str] = []
    deaf = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(60)"
    with Stack(logs=tmp_path, say=lines.append) as stack:
        stack.start(Service(name="deaf", command=[PYTHON, "-c", deaf]))
        time.sleep(3)
    assert lines[-1].startswith("deaf ends its work, in 15 s at most; about ")
    assert stack.processes() == []


def test_a_service_that_died_is_named_with_its_log(tmp_path):
    with Stack(logs=tmp_path) as stack:
        stack.start(Service(name="fragile", command=[PYTHON, "-c", "raise SystemExit(3)"]))
        assert wait_until(lambda: _dead(stack))
        with pytest.raises(
            StackError, match=r"fragile exited with status 3 at [\d:]+; see .*fragile\.log"
        ):
            stack.check()


def _dead(stack: Stack) -> bool:
    try:
        stack.check()
    except StackError:
        return True
    return False


def test_a_service_that_never_answers_is_given_up(tmp_path):
    with Stack(logs=tmp_path) as stack:
        stack.start(Service(name="mute", command=SLEEP, ready_url="http://127.0.0.1:9"))
        with pytest.raises(StackError, match="mute was not ready within 1 s"):
            stack.wait_ready(timeout=1)


def test_a_killed_supervisor_leaves_no_service_behind(tmp_path):
    supervisor = subprocess.Popen(
        [
            PYTHON,
            "-c",
            "import sys, time\nfrom pathlib import Path\n"
            "from modwatch.installation.stack.supervisor import Service, Stack\n"
            f"stack = Stack(logs=Path({str(tmp_path)!r}))\n"
            f"stack.start(Service(name='nap', command={SLEEP!r}))\n"
            "print(stack.pid('nap'), flush=True)\n"
            "time.sleep(60)",
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert supervisor.stdout is not None
    child = int(supervisor.stdout.readline())
    assert psutil.pid_exists(child)
    os.kill(supervisor.pid, signal.SIGKILL)
    supervisor.communicate()
    assert wait_until(lambda: not psutil.pid_exists(child) or _zombie(child))


def _zombie(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


#: Answers on a port, and leaves a worker whose title, environment and session tell nothing.
RENAMED = (
    "import os, sys, time\n"
    "from setproctitle import setproctitle\n"
    "pid = os.fork()\n"
    "if not pid:\n"
    "    {leave}\n"
    "    setproctitle('a worker of no name' + ' ' * 4000)\n"
    "    print(os.getpid(), flush=True)\n"
    "    time.sleep(60)\n"
    "time.sleep(60)\n"
)


def renamed(leave: str = "pass") -> Service:
    return Service(name="renamed", command=[PYTHON, "-c", RENAMED.format(leave=leave)])


def worker_of(logs: Path) -> psutil.Process:
    """Return the worker of `RENAMED`, once Linux has no environment of it any more."""
    log = logs / "renamed.log"
    assert wait_until(lambda: log.exists() and log.read_text().strip().isdigit())
    worker = psutil.Process(int(log.read_text()))
    assert MARK not in worker.environ(), "the environment still has the mark: not the case tested"
    return worker


def test_a_worker_that_renamed_itself_is_stopped(tmp_path):
    with Stack(logs=tmp_path) as stack:
        stack.start(renamed())
        worker = worker_of(tmp_path)
    assert not worker.is_running() or _zombie(worker.pid)


def test_a_renamed_worker_in_a_session_of_its_own_is_stopped(tmp_path):
    with Stack(logs=tmp_path) as stack:
        stack.start(renamed("time.sleep(0.5); os.setsid()"))
        worker = worker_of(tmp_path)
        stack.processes()
        os.kill(stack.pid("renamed"), signal.SIGKILL)  # nobody is its parent now
    assert not worker.is_running() or _zombie(worker.pid)


def test_a_service_that_is_killed_starts_again_without_its_old_workers(tmp_path):
    lines: list[str] = []
    with Stack(logs=tmp_path, say=lines.append) as stack:
        stack.start(renamed())
        worker = worker_of(tmp_path)
        time.sleep(6)  # from then on it counts as started
        first = stack.pid("renamed")
        os.kill(first, signal.SIGKILL)
        assert wait_until(lambda: stack.pid("renamed") != first)
        assert not worker.is_running() or _zombie(worker.pid)
        [part] = stack.parts()
        assert part.restarts == 1
        assert part.last_end.startswith("SIGKILL at ")
        stack.check()  # one death is no failure
    assert any("renamed exited with SIGKILL" in line and "in 1 s" in line for line in lines)


def test_a_service_that_may_not_restart_stays_dead(tmp_path):
    with Stack(logs=tmp_path) as stack:
        stack.start(Service(name="once", command=SLEEP, restart=False))
        os.kill(stack.pid("once"), signal.SIGKILL)
        assert wait_until(lambda: stack.parts()[0].state == "failed")


def test_the_next_supervisor_finds_what_a_killed_one_left(tmp_path):
    """Its services end with it; a renamed worker of theirs goes on, and is found by its session."""
    code = (
        "import sys, time\nfrom pathlib import Path\n"
        "from modwatch.installation.stack.record import StackFolder\n"
        "from modwatch.installation.stack.supervisor import Service, Stack\n"
        f"folder = StackFolder(home=Path({str(tmp_path)!r}))\n"
        "with folder.held(), Stack(logs=folder.logs, folder=folder) as stack:\n"
        f"    stack.start(Service(name='renamed', command={list(renamed().command)!r}))\n"
        "    time.sleep(60)\n"
    )
    supervisor = subprocess.Popen([PYTHON, "-c", code])
    folder = StackFolder(home=tmp_path)
    worker = worker_of(folder.logs)
    assert folder.supervisor() == supervisor.pid
    with pytest.raises(StackError, match=f"already runs in .* .process {supervisor.pid}"):
        folder.held().__enter__()
    supervisor.kill()
    supervisor.wait()
    assert wait_until(lambda: worker.ppid() == 1)
    assert folder.supervisor() is None
    assert worker.is_running()
    assert "was killed and left 1 process;" in describe(folder)
    assert down(folder, say=print) == (
        f"everything in {tmp_path} is stopped, with 1 process of an earlier run"
    )
    assert not worker.is_running() or _zombie(worker.pid)
    assert down(folder, say=print) == f"nothing runs in {tmp_path}"


def test_a_session_whose_number_is_another_process_now_is_left_alone():
    mine = session_of(psutil.Process())
    assert mine is not None
    stranger = subprocess.Popen(SLEEP, start_new_session=True)
    try:
        session = session_of(psutil.Process(stranger.pid))
        assert session is not None
        assert [process.pid for process in members([session], "")] == [stranger.pid]
        reused = Session(sid=session.sid, started=(session.started or 0) - 100)
        assert members([reused], "") == []
        leaderless = Session(sid=session.sid, started=None)  # its number can only be another's
        assert members([leaderless], "") == []
    finally:
        stranger.kill()
        stranger.wait()


@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_every_signal_to_end_unwinds_like_ctrl_c(which):
    with pytest.raises(KeyboardInterrupt), interruptible():
        signal.raise_signal(which)
