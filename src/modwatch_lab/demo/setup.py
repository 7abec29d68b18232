"""The installation of a demo: a home that begins empty, its settings and its data."""

import json
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import psutil

from modwatch.common.files import replace
from modwatch.data.sources.labelled import LabelledTexts
from modwatch.installation.stack.installation import RunningInstallation, running
from modwatch.installation.stack.processes import postgres_pid
from modwatch.installation.stack.supervisor import Service, Stack
from modwatch.settings import EMBEDDED, Settings, load_settings
from modwatch_lab.demo.datasets import DemoData

#: Settings of all demos besides their source; the environment takes precedence.
DEMO_SETTINGS = {
    "MODWATCH_REVIEW_FRACTION": "0.1",
    "MODWATCH_SLICE_SHARE": "0.25",
    "MODWATCH_CONFIG": str(Path(__file__).with_name("config")),
    "MODWATCH_TORCH_THREADS": "1",  # two scoring tasks share the two cores
    # A step takes a second: look for ended ones more often than once a second.
    "AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.2",
}

#: Default address of the model server.
MODEL_SERVER = "http://127.0.0.1:8095"


@dataclass(frozen=True, kw_only=True)
class Demo(RunningInstallation):
    """A running demo."""

    data: DemoData
    say: Callable[[str], None]


@contextmanager
def started(data: DemoData, say: Callable[[str], None], *, served: bool = False) -> Iterator[Demo]:
    """Start PostgreSQL, MLflow, the console and Airflow; stop them at the end.

    MLflow is ready when the block begins: training needs nothing else.

    With `served`, tasks score with the server in `MODWATCH_SCORER`, which `start_model_server`
    starts once there is a model.
    """
    with _configured(data, served=served):
        settings = load_settings()
        say(f"{data.title}; all data is in {settings.home}")
        also_free = {"MODWATCH_SCORER": settings.scorer} if served else {}
        with running(settings, say=say, fresh=True, also_free=also_free) as installation:
            yield Demo(data=data, say=say, **vars(installation))


def start_model_server(demo: Demo) -> None:
    """Start `modwatch serve` where `MODWATCH_SCORER` says, and wait until it has a model."""
    url = demo.settings.scorer
    host, port = urlsplit(url).hostname or "127.0.0.1", str(urlsplit(url).port or 80)
    command = [sys.executable, "-m", "modwatch", "serve", "--host", host, "--port", port]
    demo.say(f"starting the model server at {url}")
    demo.stack.start(
        Service(
            name="model-server",
            command=command,
            ready_url=f"{url}/v2/health/ready",
            address=url,
        )
    )
    demo.stack.wait_ready()


@contextmanager
def _configured(data: DemoData, *, served: bool) -> Iterator[None]:
    """Set the settings of the demo in the environment of this process and its children."""
    before = dict(os.environ)
    home = Path(before.get("MODWATCH_HOME", "var")) / "demo" / data.name
    os.environ["MODWATCH_HOME"] = str(home.resolve())
    os.environ["MODWATCH_DATABASE_URL"] = EMBEDDED
    os.environ["MODWATCH_WITNESS_FOLDER"] = str(home.resolve() / "witnesses")
    os.environ["MODWATCH_TRAINING_DATA"] = json.dumps([str(home.resolve() / "training.jsonl")])
    if data.evaluation is not None:
        os.environ["MODWATCH_EVALUATION_DATA"] = str(home.resolve() / "evaluation.jsonl")
    os.environ["MODWATCH_FIRST_DAY"] = data.first_day.isoformat()
    os.environ["MODWATCH_LAST_DAY"] = data.last_day.isoformat()
    if served and os.environ.get("MODWATCH_SCORER", "local") == "local":
        os.environ["MODWATCH_SCORER"] = MODEL_SERVER
    for name, value in {**DEMO_SETTINGS, **data.settings}.items():
        os.environ.setdefault(name, value)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def write_model_data(data: DemoData, settings: Settings) -> None:
    """Write the files that MODWATCH_TRAINING_DATA and MODWATCH_EVALUATION_DATA of a demo name."""
    for path in settings.training_data:
        _write_labelled(Path(path), data.training())
    if settings.evaluation_data is not None and data.evaluation is not None:
        _write_labelled(settings.evaluation_data, data.evaluation())


def _write_labelled(path: Path, corpus: LabelledTexts) -> None:
    """Write labelled comments as JSON lines, for `train_model`, readable by this user only."""
    groups = corpus.groups or ((),) * len(corpus.texts)
    rows = zip(corpus.texts, map(float, corpus.labels), groups, strict=True)
    lines = (json.dumps(dict(zip(("text", "label", "groups"), row, strict=True))) for row in rows)
    replace(path, "".join(f"{line}\n" for line in lines).encode())


class MemoryGauge:
    """Samples the memory of this process, its descendants, a stack and a server.

    `home` is that of a PostgreSQL, which is not a descendant.
    """

    def __init__(self, stack: Stack, *, home: Path | None = None, every: float = 2.0) -> None:
        self.peak_bytes = 0
        self._stack, self._home, self._every = stack, home, every
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> "MemoryGauge":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._done.wait(self._every):
            server = postgres_pid(self._home) if self._home else None
            processes = {*self._stack.processes(), *_family(os.getpid()), *_family(server)}
            self.peak_bytes = max(self.peak_bytes, sum(map(_proportional_bytes, processes)))


def _family(pid: int | None) -> list[psutil.Process]:
    if pid is None:
        return []
    try:
        head = psutil.Process(pid)
        return [head, *head.children(recursive=True)]
    except psutil.Error:
        return []


def _proportional_bytes(process: psutil.Process) -> int:
    """Return the proportional set size: shared pages are split among their processes."""
    try:
        return int(process.memory_full_info().pss)
    except (psutil.Error, OSError, AttributeError):
        return 0
