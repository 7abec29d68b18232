"""What runs of the whole path share: a PostgreSQL, an MLflow with a champion, installations."""

import gc
import heapq
import itertools
import logging
import os
import resource
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest

# The path itself takes seconds to import: most tests need nothing of it.
if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter
    from xdist.remote import Producer
    from xdist.scheduler import Scheduling

    from installation import Installation

# Machines are busy: how long an example takes says nothing about the code.
hypothesis.settings.register_profile("modwatch", deadline=None)
# Fewer examples, for `make check`.
hypothesis.settings.register_profile("quick", deadline=None, max_examples=15)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "modwatch"))


def pytest_unconfigure() -> None:
    """Airflow, once imported, logs to a stream of pytest's, which ends before all have logged."""
    logging.root.handlers.clear()


#: Folders all of whose tests one worker runs.
_TOGETHER = ("tests/acceptance", "tests/lab/benchmark")


@pytest.fixture(scope="session")
def services():
    """Requested by every fixture that starts a server, a browser or another slow program.

    Tests that need one of them, at whatever distance, are marked `services`; `make check` runs the
    others.
    """


#: Folders whose tests take minutes: their files go first, so that no worker ends with one.
_LONGEST_FIRST = ("acceptance", "pipeline", "distribution", "audits", "monitoring")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    rank = {folder: number for number, folder in enumerate(_LONGEST_FIRST)}
    items.sort(key=lambda item: rank.get(item.path.parent.name, len(rank)))
    for item in items:
        if "services" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.services)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: "Producer") -> "Scheduling | None":
    """Run a file in one worker; files that start Airflow, and those of the benchmark, in the same.

    Three installations at once would wait for each other's processor time; the benchmark runs once.
    """
    if config.getoption("dist") != "loadfile":
        return None  # xdist's own
    from xdist.scheduler import LoadFileScheduling

    class Files(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = super()._split_scope(nodeid)
            folder = file.rpartition("/")[0]
            return folder if folder in _TOGETHER else file

    return Files(config, log)


#: Processor seconds of this process and its ended children before a test.
_BEFORE = pytest.StashKey[float]()
_PROCESSOR_SECONDS = "processor_seconds"


def _processor_seconds() -> float:
    both = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in both)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    item.stash[_BEFORE] = _processor_seconds()
    return (yield)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item, call: "pytest.CallInfo[None]") -> None:
    if call.when == "teardown":
        took = _processor_seconds() - item.stash[_BEFORE]
        item.user_properties.append((_PROCESSOR_SECONDS, took))


def pytest_terminal_summary(terminalreporter: "TerminalReporter") -> None:
    """Name the tests with the most processor time, so that the next dear one is seen."""
    reports = itertools.chain.from_iterable(terminalreporter.stats.values())
    ended = [each for each in reports if getattr(each, "when", "") == "teardown"]
    times = [(dict(each.user_properties)[_PROCESSOR_SECONDS], each.nodeid) for each in ended]
    if not times:
        return
    terminalreporter.section("most processor time, with fixtures and child processes")
    for seconds, name in heapq.nlargest(10, times):
        terminalreporter.write_line(f"{seconds:6.1f} s  {name}")
    terminalreporter.write_line(f"{sum(seconds for seconds, _ in times):6.0f} s  all tests")


def pytest_collection_finish() -> None:
    """Keep the garbage collector from what was imported and collected, which stays to the end.

    A full collection of it takes half a second; Accelerate asks for one after each training.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def path_server(services):
    from sqlalchemy import text

    from modwatch.review.database import connect
    from modwatch.review.embedded import EmbeddedServer, embedded

    if url := os.environ.get("TEST_SERVER"):  # another version; see CONTRIBUTING.md
        yield EmbeddedServer(server_url=url, data_dir=Path("/nonexistent"))
        return
    # Not in pytest's folder, which is closed to other users: the server of a root has its own.
    with tempfile.TemporaryDirectory() as folder, embedded(Path(folder)) as server:
        maintenance = connect(server.server_url, pool_size=1)
        with maintenance.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text("ALTER SYSTEM SET fsync = off"))
            connection.execute(text("SELECT pg_reload_conf()"))
        maintenance.dispose()
        yield server


@pytest.fixture(scope="session")
def migrated_queue_url(path_server):
    from databases import NUMBERED, as_owner, owner_url
    from sqlalchemy import text

    from modwatch.review.embedded import APPLICATION
    from modwatch.review.migrate import upgrade

    url = path_server.application_url("path")
    upgrade(owner_url(url), application=APPLICATION)
    with as_owner(url) as connection:
        connection.execute(text(NUMBERED))
    return url


@pytest.fixture(scope="session")
def queue_owner(migrated_queue_url):
    from databases import owner_url

    from modwatch.review.database import connect

    engine = connect(owner_url(migrated_queue_url), pool_size=1)
    yield engine
    engine.dispose()


@pytest.fixture
def queue_url(migrated_queue_url, queue_owner):
    """A review database in which nothing waits."""
    from databases import empty

    empty(queue_owner)
    return migrated_queue_url


@dataclass(frozen=True, kw_only=True)
class Registry:
    """An MLflow store in a folder, made once a session; tests get copies of its database."""

    folder: Path

    def copy(self, target: Path) -> str:
        """Return the URL of a copy: the same models, and an experiment of its own for days."""
        import mlflow

        from modwatch.monitoring.publishing.runs import GROUP_EXPERIMENT

        target.mkdir(parents=True)
        url = _copy_store(self.folder, target)
        client = mlflow.MlflowClient(url)
        for name in ("modwatch", GROUP_EXPERIMENT):
            client.create_experiment(name, artifact_location=(target / "artifacts").as_uri())
        return url


def _copy_store(source: Path, target: Path) -> str:
    """Return the URL of a copy of an MLflow store in another folder."""
    # The store's own connections stay open, so the file is copied by SQLite itself.
    with (
        sqlite3.connect(source / "mlflow.db") as store,
        sqlite3.connect(target / "mlflow.db") as copied,
    ):
        store.backup(copied)
    return f"sqlite:///{target / 'mlflow.db'}"


@pytest.fixture(scope="session")
def new_store(tmp_path_factory, services):
    """Return a function that makes an MLflow store in a folder and returns its URL.

    It has an experiment for trainings and nothing else. MLflow's migrations run once.
    """
    import mlflow

    empty_store = tmp_path_factory.mktemp("store")
    mlflow.MlflowClient(f"sqlite:///{empty_store / 'mlflow.db'}").search_experiments()

    def make(folder: Path) -> str:
        url = _copy_store(empty_store, folder)
        artifacts = (folder / "artifacts").as_uri()
        mlflow.MlflowClient(url).create_experiment("training", artifact_location=artifacts)
        return url

    return make


@pytest.fixture(scope="session")
def unmanned(new_store, tmp_path_factory):
    """An MLflow without any model."""
    folder = tmp_path_factory.mktemp("unmanned")
    new_store(folder)
    return Registry(folder=folder)


@pytest.fixture(scope="session")
def champion(new_store, tmp_path_factory):
    """An MLflow whose champion is a small model, trained once, by the first worker that asks."""
    from filelock import FileLock

    from installation import TRAINING_SEED, Installation
    from modwatch.installation.resources import open_resources
    from modwatch.models.recipe import offline_recipe
    from modwatch.pipeline import model
    from modwatch_lab.community import Community

    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder, done = shared / "champion", shared / "champion.done"
    with FileLock(shared / "champion.lock"):
        if not done.exists():
            folder.mkdir()
            url = new_store(folder)
            installation = Installation(values={"home": folder / "home", "mlflow_url": url})
            corpus = Community(seed=7).training_comments(1_500)
            with open_resources(installation.settings) as resources:
                recipe = offline_recipe(expected_prevalence=Community(seed=7).prevalence)
                trained = model.train(resources, corpus, recipe=recipe, seed=TRAINING_SEED)
                model.set_alias(resources, trained, "champion")
            done.touch()
    return Registry(folder=folder)


@pytest.fixture(scope="session")
def make_installation(champion, path_server):
    """Return a function that makes an installation in a folder, its review database included."""
    from databases import owner_url

    from installation import Installation
    from modwatch.review.embedded import APPLICATION
    from modwatch.review.migrate import upgrade

    def make(folder: Path, **changes: Any) -> "Installation":
        values = {
            "home": folder / "home",
            "source": {"kind": "community", "seed": 7, "comments_per_day": 300, "dirt_rate": 0.02},
            "shard_tokens": 3_500,
            "torch_threads": 1,
            "review_fraction": 0.1,
            "slice_share": 0.25,
            "sampling_salt": "a salt for tests",
            **changes,
        }
        if "mlflow_url" not in values:
            values["mlflow_url"] = champion.copy(folder / "mlflow")
        if "database_url" not in values:
            url = path_server.application_url(f"installation{next(numbers)}")
            upgrade(owner_url(url), application=APPLICATION)
            values["database_url"] = url
        return Installation(values=values)

    numbers = itertools.count()
    return make


@pytest.fixture
def install(make_installation, queue_url, tmp_path):
    """Return a function that makes an installation whose queue is empty."""

    def make(name: str = "first", **changes: Any) -> "Installation":
        return make_installation(tmp_path / name, **{"database_url": queue_url, **changes})

    return make


@contextmanager
def same_salts() -> Iterator[None]:
    """Let the plans of audits, and so their samples, not depend on chance; see `same_draws`."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("modwatch.data.lake.erasure.new_salt", lambda: bytes(16))
        yield


@pytest.fixture(scope="session")
def scored_monday(make_installation, tmp_path_factory):
    """An installation with the scores of Monday; no test changes it."""
    from installation import TO_THE_QUEUE

    home = make_installation(tmp_path_factory.mktemp("scored"))
    with same_salts():
        home.run(*TO_THE_QUEUE[: TO_THE_QUEUE.index("route")])
    return home


@pytest.fixture(scope="session")
def two_scored_days(make_installation, scored_monday, tmp_path_factory):
    """The same, with Tuesday."""
    from installation import TO_THE_QUEUE, TUESDAY, copy_home

    home = make_installation(tmp_path_factory.mktemp("scored"))
    copy_home(scored_monday.home, home.home)
    with same_salts():
        home.run(*TO_THE_QUEUE[: TO_THE_QUEUE.index("route")], day=TUESDAY)
    return home


@pytest.fixture
def install_scored(scored_monday, queue_url, tmp_path):
    """Return a function that copies `scored_monday`, for tests that only read its MLflow.

    The queue is empty: `route` and `score_challenger` come next.
    """
    from installation import copy_home

    def make(name: str = "first", **changes: Any) -> "Installation":
        home = copy_home(scored_monday.home, tmp_path / name)
        return scored_monday.but(**{"home": home, "database_url": queue_url, **changes})

    return make


@pytest.fixture
def incoming(tmp_path):
    return tmp_path / "incoming"


@pytest.fixture
def files(install, incoming):
    """An installation that reads `incoming/{dt}.jsonl`, with 40 sound comments on Monday.

    Its window is short: each of its days is looked at with every step from the queue on.
    """
    from feed import good, write_json

    from installation import MONDAY

    write_json(incoming / f"{MONDAY}.jsonl", map(good, range(40)))
    source = {"kind": "files", "path": str(incoming / "{dt}.jsonl")}
    return install(source=source, window_days=3)


@pytest.fixture
def same_draws():
    from small_audits import same_audit_draws

    with same_audit_draws():
        yield


@pytest.fixture
def small_home(queue_url, tmp_path, same_draws):
    """A small lake, and an empty queue."""
    from small_audits import make_small_home

    return make_small_home(tmp_path, queue_url)


@pytest.fixture
def small(small_home):
    """The same, opened, for what comes after the scores."""
    from modwatch.installation.resources import open_resources

    with open_resources(small_home.settings) as opened:
        yield opened


# Not for the whole session: as long as it is open, no other test can have an event loop.
@pytest.fixture(scope="module")
def chromium(services):
    from playwright.sync_api import sync_playwright

    path = shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("no Chromium was found; install it with `apt-get install chromium`")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]
        )
        yield browser
        browser.close()


#: Seconds in which a server of MLflow starts.
_START_SECONDS = 120


@pytest.fixture(scope="session")
def mlflow_url(tmp_path_factory, services):
    """Address of a real MLflow server; it and its children end with the tests."""
    folder = tmp_path_factory.mktemp("mlflow")
    port = _free_port()
    command = [
        *(sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port)),
        *("--workers", "1", "--backend-store-uri", f"sqlite:///{folder / 'mlflow.db'}"),
        *("--artifacts-destination", str(folder / "artifacts")),
    ]
    lean = {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "MLFLOW_DISABLE_TELEMETRY": "true"}
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            command,
            cwd=folder,
            env=os.environ | lean,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        _wait_until_healthy(f"http://127.0.0.1:{port}", server, folder / "log")
        yield f"http://127.0.0.1:{port}"
    finally:
        _end(server)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_until_healthy(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=5):
                return
        except (urllib.error.URLError, TimeoutError):
            time.sleep(0.2)
    pytest.fail(f"MLflow did not start in {_START_SECONDS} s:\n{log.read_text()[-2000:]}")


def _end(server: subprocess.Popen[bytes]) -> None:
    """End the server's whole process group, gently, then for good."""
    os.killpg(server.pid, signal.SIGTERM)
    try:
        server.wait(20)
    except subprocess.TimeoutExpired:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait(20)


@pytest.fixture
def free_port():
    """A port of this machine on which nobody listens."""
    return _free_port()


@pytest.fixture
def experiment(request):
    """A name of an experiment that no other test uses."""
    return str(request.node.name)
