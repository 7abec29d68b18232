"""The run of a training in MLflow, which shows the curves while the model is fitted."""

import json
import logging
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from modwatch.common.errors import ModelError, TrackingError
from modwatch.common.files import replace
from modwatch.common.mlflow_client import connect, experiment_id, log_steps, run_url

logger = logging.getLogger(__name__)

EXPERIMENT = "training"
_FILE = "mlflow.json"
#: Seconds between two calls of MLflow, and after a call that failed.
_EVERY, _PAUSE = 5.0, 300.0

#: Step, key and value of each point.
_Points = list[tuple[int, str, float]]


class TrainingRun:
    """A run of the experiment `training`.

    Points are sent every few seconds. If MLflow fails in the meantime, training goes on, and
    `finish` sends what is missing.

    Args:
        tracking_uri: of MLflow.
        name: of the model.
        checkpoints: folder of the training, which remembers the run: an interrupted training goes
            on in it. None: a new run.

    Raises:
        TrackingError: MLflow cannot be reached.
    """

    def __init__(self, tracking_uri: str, *, name: str, checkpoints: Path | None = None) -> None:
        self._tracking_uri = tracking_uri
        self._file = checkpoints and checkpoints / _FILE
        self._pending: _Points = []
        known: dict[str, Any] = {}
        if self._file is not None and self._file.exists():
            known = json.loads(self._file.read_text("utf-8"))
        with connect(tracking_uri) as client:
            experiment = experiment_id(client, EXPERIMENT)
            active = client.search_runs([experiment], f"attributes.run_id = '{known.get('run')}'")
            if not active:
                active, known = [client.create_run(experiment, run_name=f"train {name}")], {}
            self.run_id = str(active[0].info.run_id)
            client.update_run(self.run_id, status="RUNNING")
        #: The page of the curves.
        self.url = run_url(tracking_uri, experiment, self.run_id)
        #: Steps that MLflow has, by key.
        self._sent = {key: set(steps) for key, steps in known.get("sent", {}).items()}
        self._next = time.monotonic() + _EVERY
        self._remember()

    def log(self, network: int, networks: int, point: Mapping[str, float]) -> None:
        """Show a point of the curve of a network (1…networks): `step` and values by name."""
        self._pending += self._new(_points(network, networks, point))
        if time.monotonic() < self._next:
            return
        try:
            self._send()
        except TrackingError:
            logger.warning(
                "MLflow does not take the curves; training goes on, they are sent later.",
                extra={"event": "training_curves_delayed"},
            )
        self._next = time.monotonic() + (_PAUSE if self._pending else _EVERY)

    def finish(self, curves: Sequence[Sequence[Mapping[str, float]]]) -> None:
        """Send every point of the curves of all networks that is missing in MLflow.

        TrackingError when MLflow cannot be reached.
        """
        self._pending = [
            value
            for number, curve in enumerate(curves, start=1)
            for point in curve
            for value in self._new(_points(number, len(curves), point))
        ]
        self._send()

    def fail(self, cause: BaseException) -> None:
        """Mark the run as failed, or as interrupted; it keeps the message of a ModelError."""
        stopped = not isinstance(cause, Exception)
        try:
            with connect(self._tracking_uri) as client:
                if isinstance(cause, ModelError):
                    client.set_tag(self.run_id, "modwatch.error", str(cause))
                client.set_terminated(self.run_id, "KILLED" if stopped else "FAILED")
        except TrackingError as exc:
            logger.warning("The run of a failed training was not ended: %s", exc)

    def _new(self, points: _Points) -> _Points:
        return [point for point in points if point[0] not in self._sent.get(point[1], ())]

    def _send(self) -> None:
        now = int(time.time() * 1000)
        with connect(self._tracking_uri) as client:
            log_steps(client, self.run_id, [(*point, now) for point in self._pending])
        for step, key, _ in self._pending:
            self._sent.setdefault(key, set()).add(step)
        self._pending = []
        self._remember()

    def _remember(self) -> None:
        if self._file is None:
            return
        sent = {key: sorted(steps) for key, steps in self._sent.items()}
        self._file.parent.mkdir(parents=True, exist_ok=True)
        replace(self._file, json.dumps({"run": self.run_id, "sent": sent}).encode())


#: Keys of curves that have the name of a metric of the whole model.
_KEYS = {"average_precision": "held_out_average_precision"}


def _points(network: int, networks: int, point: Mapping[str, float]) -> _Points:
    suffix = f"_{network}" if networks > 1 else ""
    return [
        (int(point["step"]), f"{_KEYS.get(name, name)}{suffix}", value)
        for name, value in point.items()
        if name != "step"
    ]
