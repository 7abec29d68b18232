"""A model server on the loopback interface, with models whose answers are known."""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import uvicorn

from modwatch.common.connections import listen
from modwatch.common.errors import ModelError, NoChampionError
from modwatch.models.scoring.scorer import PLAIN, SPREADS, Predictions
from modwatch.models.serving.app import create_app
from modwatch.models.serving.models import ServedModel
from modwatch.models.serving.telemetry import ProcessTelemetry, Telemetry

TOKEN = "open-sesame"
THRESHOLD = 0.4


class LengthScorer:
    """The probability of a text is its length / 1,000; a version adds nothing to it."""

    threshold = THRESHOLD
    columns = (*PLAIN, *SPREADS)

    def __init__(self, model_version: str) -> None:
        self.model_version = model_version
        self.batches: list[list[str]] = []
        #: Cleared to hold the scorer up.
        self.go = threading.Event()
        self.go.set()
        self.begun = threading.Event()
        self.subwords = 0

    def score(self, texts: Sequence[str]) -> Predictions:
        self.batches.append(list(texts))
        self.begun.set()
        assert self.go.wait(timeout=60)
        if "broken" in texts:
            raise ModelError("the model is broken")
        self.subwords += sum(map(len, texts))
        prob = np.array([len(text) / 1_000 for text in texts], np.float32)
        more = {"model_variance": prob / 10, "mutual_information": prob / 5}
        return Predictions.of(prob, more, cut=prob > 0.9)


class Registry:
    """Versions of a model, of which one is champion."""

    def __init__(self, *versions: str) -> None:
        self.scorers = {version: LengthScorer(version) for version in versions}
        self.champion = versions[0] if versions else None
        self.opened: list[str] = []

    def current(self) -> str:
        if self.champion is None:
            raise NoChampionError("there is no champion")
        return self.champion

    def open(self, version: str) -> LengthScorer:
        self.opened.append(version)
        if version not in self.scorers:
            raise NoChampionError(f"there is no version {version}")
        return self.scorers[version]


def served(registry: Registry, **changes: int) -> tuple[ServedModel, Telemetry]:
    telemetry = ProcessTelemetry()
    model = ServedModel(
        "toxicity",
        current=registry.current,
        open_version=registry.open,
        report=telemetry.batch_scored,
        **changes,  # type: ignore[arg-type]
    )
    telemetry.watch(lambda: model.waiting)
    return model, telemetry


@contextmanager
def running(registry: Registry, *, token: str | None = None, **changes: int) -> Iterator[str]:
    """Serve on a free port of the loopback interface; yield the URL."""
    model, telemetry = served(registry, **changes)
    with listen("127.0.0.1", 0) as listener:
        app = create_app(model, telemetry, token=token)
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="on"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        deadline = time.monotonic() + 30
        while not server.started or (registry.champion and model.version is None):
            assert time.monotonic() < deadline, "the server did not start"
            time.sleep(0.01)
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            for scorer in registry.scorers.values():
                scorer.go.set()
            server.should_exit = True
            thread.join(timeout=30)
