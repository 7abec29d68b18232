"""Fits the networks of a recipe: one after another, or side by side on several devices."""

import json
import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from transformers import PreTrainedTokenizerFast

from modwatch.common.errors import ModelError
from modwatch.models.batches import ShuffledBuckets
from modwatch.models.classifier import Classifier, Predictor, build_classifier, padding_id
from modwatch.models.devices import has_bf16, within_memory
from modwatch.models.encoder import (
    check_fit,
    longest_input,
    pretrained_encoder,
    pretrained_tokenizer,
    small_encoder,
    train_tokenizer,
)
from modwatch.models.heads import SNGPHead
from modwatch.models.optimisation import (
    Fit,
    Point,
    Split,
    fit,
    isolated_random,
    limits_of,
    steps_of,
)
from modwatch.models.progress import Plan, Progress
from modwatch.models.recipe import Recipe

#: Held-out comments on which bfloat16 is compared with fp32, at most.
COMPARED = 2_000
#: Work of the prediction of a subword as a multiple of its work in training: in bfloat16 and fp32,
#: where training is in bfloat16, and where there is only fp32.
_BF16, _FP32, _ALIKE = 0.2, 0.5, 0.35
#: Called at the start of each phase, and after each step or batch.
OnStep = Callable[[Progress], None]
#: Called with each point of a curve: network (1…networks), networks, point.
OnPoint = Callable[[int, int, Point], None]


@dataclass(frozen=True, kw_only=True)
class Start:
    """Where training begins."""

    tokenizer: PreTrainedTokenizerFast
    #: With no more subwords than the encoder has positions for.
    recipe: Recipe
    pad_id: int
    #: Returns an untrained network; draws from torch's random numbers.
    make: Callable[[], Classifier]


def starting_point(texts: list[str], recipe: Recipe) -> Start:
    """Return tokenizer and encoder of the recipe: pre-trained, or new.

    Raises:
        ModelError: the encoder cannot be loaded, or its tokenizer does not fit.
    """
    if recipe.encoder is None:
        tokenizer = train_tokenizer(texts, recipe)
        pad_id = int(tokenizer.pad_token_id)
    else:
        tokenizer = pretrained_tokenizer(recipe.encoder)
        encoder = pretrained_encoder(recipe.encoder)
        check_fit(encoder, tokenizer, recipe.encoder)
        longest = longest_input(encoder) or recipe.max_length
        recipe = replace(recipe, max_length=min(recipe.max_length, longest))
        pad_id = padding_id(encoder, tokenizer)
    make = partial(_untrained, recipe, len(tokenizer), pad_id)
    return Start(tokenizer=tokenizer, recipe=recipe, pad_id=pad_id, make=make)


def _untrained(recipe: Recipe, vocab_size: int, pad_id: int) -> Classifier:
    if recipe.encoder is not None:
        encoder = pretrained_encoder(recipe.encoder, dropout=recipe.encoder_dropout)
        return build_classifier(encoder, recipe)
    return build_classifier(small_encoder(recipe, vocab_size=vocab_size, pad_id=pad_id), recipe)


@dataclass(frozen=True, kw_only=True)
class _Job:
    """What all networks share."""

    start: Start
    train: Split
    held: Split
    seed: int
    folder: Path

    def weights(self, number: int) -> Path:
        """Return the file of a network that was fitted; that of the same name in JSON is last."""
        return self.folder / f"network-{number}.safetensors"


def fit_networks(
    start: Start,
    train: Split,
    held: Split,
    *,
    seed: int,
    devices: Sequence[torch.device],
    folder: Path,
    progress: OnStep = lambda _: None,
    log: OnPoint = lambda *_: None,
) -> tuple[list[Classifier], list[Fit]]:
    """Return the networks with their posteriors on the first of `devices`, and how they fitted.

    Networks that an earlier run left in `folder` are not fitted again. The number of devices does
    not change the weights.

    Raises:
        ModelError: loss or weights are not finite, or one comment does not fit into the memory.
    """
    job = _Job(start=start, train=train, held=held, seed=seed, folder=folder)
    networks = start.recipe.networks
    missing = [n for n in range(networks) if not job.weights(n).with_suffix(".json").exists()]
    progress(Progress(plan=_plan(job, missing, devices)))
    if min(len(devices), len(missing)) > 1:
        _side_by_side(job, missing, devices, progress, log)
    else:
        for number in missing:
            _fit_one(job, number, devices[0], progress, log)
    made = [_load(job, number) for number in range(networks)]
    return [network.to(devices[0]) for network, _ in made], [facts for _, facts in made]


def _plan(job: _Job, missing: Sequence[int], devices: Sequence[torch.device]) -> Plan:
    """Return the work of the networks, and of what `training.train` does afterwards."""
    recipe = job.start.recipe
    coarse = has_bf16(devices[0])
    predicting, exact = (_BF16, _FP32) if coarse else (_ALIKE, _ALIKE)
    lengths = [len(ids) for ids in job.train.ids]
    limits = {"token_budget": recipe.batch_tokens, "most": recipe.batch_size}
    batches = len(ShuffledBuckets(lengths, **limits, seed=0))
    epochs = steps_of(recipe, batches) * recipe.accumulation / batches
    held = [len(ids) for ids in job.held.ids]
    units: dict[tuple[str, int], float] = {}
    for number in (n + 1 for n in missing):
        units["training", number] = epochs * sum(lengths)
        units["evaluation", number] = recipe.epochs * recipe.evaluations * predicting * sum(held)
        if recipe.is_sngp:
            units["posterior", number] = predicting * sum(lengths)
    times = recipe.networks * (recipe.passes if recipe.method == "mc_dropout" else 1)
    units["prediction", 0] = times * exact * sum(held)
    if coarse and (recipe.encoder is not None or recipe.layers):
        units["comparison", 0] = times * predicting * sum(held[:COMPARED])
    return Plan(units=units, workers=min(len(devices), max(1, len(missing))))


def _own_seed(job: _Job, number: int) -> int:
    return int(np.random.SeedSequence([job.seed, number]).generate_state(1)[0])


def _load(job: _Job, number: int) -> tuple[Classifier, Fit]:
    with isolated_random(_own_seed(job, number)):
        network = job.start.make()
    path = job.weights(number)
    network.load_state_dict(load_file(path), strict=True)
    return network, Fit(**json.loads(path.with_suffix(".json").read_text("utf-8")))


def _fit_one(job: _Job, number: int, device: torch.device, progress: OnStep, log: OnPoint) -> None:
    """Fit a network and write it to the folder."""
    start, recipe = job.start, job.start.recipe

    def report(phase: str, step: int, steps: int) -> None:
        at = Progress(phase=phase, network=number + 1, networks=recipe.networks)
        progress(replace(at, step=step, steps=steps))

    network, made = fit(
        start.make,
        job.train,
        job.held,
        recipe=recipe,
        seed=_own_seed(job, number),
        pad_id=start.pad_id,
        device=device,
        folder=job.weights(number).with_suffix(""),
        progress=report,
        log=lambda point: log(number + 1, recipe.networks, point),
    )
    if isinstance(network.head, SNGPHead):
        predictor = Predictor(
            [network], recipe, pad_id=start.pad_id, seed=0, device=device, bf16=has_bf16(device)
        )
        within_memory(
            lambda limits: predictor.observe(
                job.train.ids, **limits.sizes(), report=partial(report, "posterior")
            ),
            limits_of(made).without_gradients(device),
            work="the posterior of the SNGP head",
            device=device,
        )
    path = job.weights(number)
    save_file({name: weight.contiguous() for name, weight in network.state_dict().items()}, path)
    scratch = path.with_suffix(".partial")
    scratch.write_text(json.dumps(asdict(made)), "utf-8")
    scratch.rename(path.with_suffix(".json"))


def _side_by_side(
    job: _Job,
    numbers: Sequence[int],
    devices: Sequence[torch.device],
    progress: OnStep,
    log: OnPoint,
) -> None:
    """Fit the networks in a process a device; each takes the next one when it is free."""
    left = list(numbers)
    with _processes(job, devices) as free:
        busy: list[Connection] = []
        while left or busy:
            while left and free:
                busy.append(free.pop(0))
                busy[-1].send(left.pop(0))
            for connection in cast("list[Connection]", wait(busy)):
                try:
                    call, given = connection.recv()
                except (EOFError, OSError) as exc:
                    raise ModelError(
                        "training: a process that trained a network of the ensemble was killed, "
                        "perhaps for lack of memory; start again to go on, with fewer devices or "
                        "a smaller batch"
                    ) from exc
                if call == "failed":
                    raise given
                if call == "done":
                    busy.remove(connection)
                    free.append(connection)
                else:
                    (progress if call == "step" else log)(*given)


@contextmanager
def _processes(job: _Job, devices: Sequence[torch.device]) -> Iterator[list[Connection]]:
    """Start a process a device; yield the connections to them. None is left at the end."""
    spawn = multiprocessing.get_context("spawn")  # a forked process cannot use CUDA
    started: list[tuple[SpawnProcess, Connection]] = []
    try:
        for device in devices:
            ours, theirs = spawn.Pipe()
            process = spawn.Process(target=_serve, args=(job, device, theirs), daemon=True)
            process.start()
            theirs.close()
            started.append((process, ours))
        yield [connection for _, connection in started]
    finally:
        for process, connection in started:
            connection.close()
            process.terminate()
        for process, _ in started:
            process.join()


def _serve(job: _Job, device: torch.device, connection: Connection) -> None:
    """Fit the networks whose numbers arrive, until the other end is closed."""

    def step(state: Progress) -> None:
        connection.send(("step", (state,)))

    def point(*given: Any) -> None:
        connection.send(("point", given))

    with suppress(EOFError, OSError):
        while True:
            number = connection.recv()
            try:
                _fit_one(job, number, device, step, point)
            except BrokenPipeError:
                return
            except Exception as exc:  # noqa: BLE001 - raised again by the caller
                connection.send(("failed", exc))
                return
            connection.send(("done", ()))
