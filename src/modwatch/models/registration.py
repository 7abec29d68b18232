"""Trains a model and registers it."""

import math
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import IO, Any, Self

import torch
from tqdm import tqdm

from modwatch.data.lake.day_scores import ORIGIN
from modwatch.models.artifact import save
from modwatch.models.data_report import DataReport
from modwatch.models.optimisation import Progress
from modwatch.models.recipe import Recipe
from modwatch.models.registry import SCRATCH, Registry
from modwatch.models.training import checked, train
from modwatch.models.training_run import TrainingRun

#: Seconds until the first line, from the start and from that of each network.
_FIRST = 20.0
#: Of calibration: seconds on a machine with two cores, and a share of the seconds of all steps, for
#: the predictions of the held-out comments.
_FIXED, _SHARE = 5.0, 0.08


def train_and_register(
    texts: Sequence[str],
    labels: Sequence[float],
    *,
    registry: Registry,
    recipe: Recipe,
    devices: Sequence[torch.device] = (torch.device("cpu"),),
    checkpoints: Path | None = None,
    seed: int = 0,
    report: DataReport | None = None,
    origin: str = "",
    request: str = "",
    progress: Callable[[str], None] = lambda _: None,
) -> str:
    """Train a model and register it as a new version; return the version.

    Args:
        texts, labels, recipe, devices, checkpoints, seed: as in `training.train`.
        registry: of the model.
        report: on the data, stored with the run.
        origin: what pages say of the model wherever they show its figures; may be empty.
        request: kept with the version, for `Registry.version_of_request`.
        progress: called with a line now and then, if standard error is no terminal: a terminal
            has a progress bar.

    Raises:
        ModelError: the corpus cannot be used, or training failed.
        TrackingError: MLflow cannot be reached.
    """
    checked(texts, labels)  # before there is a run, which would only say that it failed
    run = TrainingRun(registry.tracking_uri, name=registry.name, checkpoints=checkpoints)
    progress(f"training on {len(texts):,} comments; its curves: {run.url}")
    try:
        with TrainingProgress(progress) as show:
            model = train(
                texts,
                labels,
                recipe=recipe,
                seed=seed,
                devices=devices,
                checkpoints=checkpoints,
                progress=show,
                log=run.log,
            )
    except BaseException as exc:
        run.fail(exc)
        raise
    progress("trained and calibrated; registering the model, about 10 s left")
    facts, recipe = model.facts, model.recipe
    facts.reference.update({ORIGIN: origin} if origin else {})
    run.finish([made["curve"] for made in facts.networks])
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "artifact"
        digest = save(model, folder)
        return registry.register(
            folder,
            metrics=facts.validation,
            run_id=run.run_id,
            tags={
                "seed": str(facts.seed),
                "examples": str(facts.examples),
                "truncated": str(facts.truncated),
                "method": recipe.method,
                "loss": recipe.loss,
                "encoder": recipe.encoder or SCRATCH,
                "calibration": model.calibration.method,
            },
            digest=digest,
            report=None if report is None else report.to_json(),
            request=request,
        )


class TrainingProgress:
    """Shows the state of a training: a bar for each network on a terminal, or else lines.

    A network has a line after 20 seconds, and after each tenth of its steps.

    >>> seconds = iter([0.0, 5.0, 10.0, 25.0])
    >>> with TrainingProgress(print, clock=lambda: next(seconds)) as show:
    ...     for step in (1, 2, 3):
    ...         show(Progress(network=1, networks=1, step=step, steps=100, loss=0.5))
    training: step 3 of 100, 0:16:10 left
    """

    def __init__(
        self,
        say: Callable[[str], None],
        *,
        terminal: IO[str] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare; `say` gets each line, bars go to `terminal` (None: standard error)."""
        self._say, self._terminal, self._clock = say, terminal, clock
        self._bars: dict[int, Any] = {}
        #: Step and time of the first call for each network, between which time is not measured.
        self._first: dict[int, tuple[int, float]] = {}
        #: When a line is due, whatever the step.
        self._due = clock() + _FIRST

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the bars as they are, and the cursor below them."""
        for bar in self._bars.values():
            bar.close()

    def __call__(self, state: Progress) -> None:
        """Show the state after a step."""
        bar = self._bars.get(state.network)
        if bar is None:
            bar = self._bars[state.network] = self._bar(state)
        if bar.disable:
            self._line(state, self._clock())
        else:
            _move(bar, state)

    def _bar(self, state: Progress) -> Any:
        """Return a bar that begins before this step; it is disabled if there is no terminal."""
        return tqdm(
            desc=(_network(state) or "training").capitalize(),
            initial=state.step - 1,
            total=state.steps,
            unit="step",
            disable=None,
            file=self._terminal,
        )

    def _line(self, state: Progress, now: float) -> None:
        """Say a line if one is due."""
        first, started = self._first.get(state.network, (math.inf, now))
        if state.step <= first:  # the network is new, or starts again with half the batch
            first, started = self._first[state.network] = state.step, now
            self._due = min(self._due, now + _FIRST)
        if now < self._due and state.step % max(1, state.steps // 10):
            return
        left = ""
        if done := state.step - first:
            seconds = (now - started) / done * (state.steps - state.step)
            left = f", {timedelta(seconds=round(seconds))} left"
            self._due = math.inf
        if (state.network, state.step) == (state.networks, state.steps):
            seconds = _FIXED + _SHARE * (now - started) * state.networks
            left = f"; calibration follows, about {timedelta(seconds=round(seconds))} left"
        network = f"{_network(state)}, " if state.networks > 1 else ""
        self._say(f"training: {network}step {state.step} of {state.steps}{left}")


def _network(state: Progress) -> str:
    return f"network {state.network} of {state.networks}" * (state.networks > 1)


def _move(bar: Any, state: Progress) -> None:
    """Move a bar to a step."""
    if state.step <= bar.n:  # training starts again with half the batch
        bar.reset(total=state.steps)
    if math.isfinite(state.loss):
        bar.set_postfix(loss=f"{state.loss:.3f}", refresh=False)
    bar.update(state.step - bar.n)
