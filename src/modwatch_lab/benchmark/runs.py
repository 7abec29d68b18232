"""The runs of the benchmark: each a method, a loss and a seed; trained, scored, and kept in files.

A run is kept as `NAME.npz` (labels, weights and probabilities of the tested comments, and bootstrap
samples) and `NAME.json` (figures), whose last part of the name is a digest of recipe, data and
seed. So runs of other configurations lie in the same folder and are never mixed. There is no text
of a comment in any of them.

Methods that differ in prediction only share their networks: Monte Carlo dropout predicts with the
deterministic network, and that is the first member of the deep ensemble; SNGP is the first member
of the SNGP ensemble. A network depends on corpus, recipe, seed and its number among the members,
so that the shared one is the same, bit by bit, as one trained alone.
"""

import hashlib
import io
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from modwatch.common import files
from modwatch.common.errors import ModelError
from modwatch.installation.stack.progress import Wait
from modwatch.models.encoder import encode
from modwatch.models.progress import Progress
from modwatch.models.recipe import LOSSES, METHODS, Loss, Method, Recipe
from modwatch.models.training import TrainedModel, library_versions, train
from modwatch_lab.benchmark.corpora import BenchmarkData
from modwatch_lab.benchmark.evaluation import DRAWS, advantage_draws, evaluated
from modwatch_lab.benchmark.paper import DOMAINS

#: Of the files of a run: another format is another digest.
_FORMAT = 1

#: Methods that share networks; the ensemble last.
FAMILIES: tuple[tuple[Method, ...], ...] = (
    ("deterministic", "mc_dropout", "ensemble"),
    ("sngp", "sngp_ensemble"),
)

Say = Callable[[str], None]


#: Looked up once: each run asks for its identity several times.
_library_versions = cache(library_versions)


@dataclass(frozen=True, kw_only=True)
class Run:
    """One model of the benchmark."""

    method: Method
    loss: Loss
    seed: int


@dataclass(frozen=True, kw_only=True)
class Result:
    """The stored result of a run."""

    run: Run
    #: Facts about the networks: steps, average precision of held-out comments.
    networks: list[dict[str, Any]]
    #: By domain: `table` and `curve` of `evaluation.evaluated`.
    figures: dict[str, dict[str, Any]]
    #: By domain: (draws, A), `evaluation.advantage_draws`.
    draws: dict[str, NDArray[np.float64]]


@dataclass(frozen=True, kw_only=True)
class Bench:
    """Where runs are trained and kept."""

    data: BenchmarkData
    #: Hyperparameters of every run; `method` and `loss` are those of the run.
    recipe: Recipe
    folder: Path
    devices: Sequence[torch.device] = (torch.device("cpu"),)
    #: Bootstrap samples of the tested comments.
    draws: int = DRAWS

    def recipe_of(self, run: Run) -> Recipe:
        """Return the recipe of a run, without calibration and with the decision threshold 0.5.

        The paper does not calibrate. Fields without effect have their defaults, so that runs do not
        depend on them.
        """
        recipe = replace(
            self.recipe,
            method=run.method,
            loss=run.loss,
            calibration="none",
            expected_prevalence=None,
            threshold=0.5,
            max_examples=None,
        )
        unused = {
            "members": not run.method.endswith("ensemble"),
            "passes": run.method != "mc_dropout",
            "focal_gamma": run.loss != "focal",
        }
        defaults: dict[str, Any] = {field.name: field.default for field in fields(Recipe)}
        return replace(recipe, **{name: defaults[name] for name, skip in unused.items() if skip})

    def trained_recipe(self, run: Run) -> Recipe:
        """Return the recipe by which the networks of a run are trained."""
        single = run.method == "mc_dropout"  # the deterministic network, predicted otherwise
        return self.recipe_of(replace(run, method="deterministic") if single else run)

    def identity(self, recipe: Recipe, seed: int) -> dict[str, Any]:
        """Return what determines a result."""
        return {
            "format": _FORMAT,
            "recipe": recipe.to_json(),
            "seed": seed,
            "data": self.data.digest,
            "draws": self.draws,
            "libraries": _library_versions(),
        }

    def path(self, run: Run) -> Path:
        """Return the path of the run's figures; its scores lie next to them."""
        digest = _digest(self.identity(self.recipe_of(run), run.seed))
        return self.folder / "runs" / f"{run.method}-{run.loss}-seed{run.seed}-{digest}.json"

    def checkpoints(self, run: Run) -> Path:
        """Return the folder of the checkpoints of the run's networks."""
        digest = _digest(self.identity(self.trained_recipe(run), run.seed))
        return self.folder / "checkpoints" / digest


def complete(bench: Bench, runs: Sequence[Run], *, say: Say) -> list[Result]:
    """Return the results of `runs` in order; train and keep those that are missing.

    Raises:
        ModelError: a network cannot be trained, or the folder cannot be written to.
    """
    with _writing(bench.folder):
        bench.folder.mkdir(parents=True, exist_ok=True)
    missing = [run for run in runs if _load(bench, run) is None]
    jobs = list(_jobs(missing))
    say(f"{len(runs)} runs, {len(runs) - len(missing)} of them kept in {bench.folder}")
    # To train a network, or to score a run, is a unit of work.
    units = [bench.recipe_of(job[-1]).networks + len(job) for job in jobs]
    wait = Wait(say, usual=0)
    for number, job in enumerate(jobs):
        _carry_out(bench, job, wait, before=sum(units[:number]), whole=sum(units))
    for job in _jobs(runs):  # of a process that was killed before it removed them
        shutil.rmtree(bench.checkpoints(job[-1]), ignore_errors=True)
    found = [_load(bench, run) for run in runs]
    return [result for result in found if result is not None]


def _jobs(missing: Sequence[Run]) -> Iterator[list[Run]]:
    """Yield the runs that share networks, those with all of the networks last."""
    for seed, loss in dict.fromkeys((run.seed, run.loss) for run in missing):
        for family in FAMILIES:
            runs = [Run(method=method, loss=loss, seed=seed) for method in family]
            if job := [run for run in runs if run in missing]:
                yield job


def _carry_out(bench: Bench, job: Sequence[Run], wait: Wait, *, before: int, whole: int) -> None:
    """Train the networks of a job, then score and keep each of its runs.

    `before` units of the `whole` work are done.
    """
    most = job[-1]
    recipe, folder = bench.trained_recipe(most), bench.checkpoints(most)
    name = f"seed {most.seed}, {most.loss}, {most.method}"

    def report(state: Progress) -> None:
        if state.phase != "training" or not state.step:
            wait.show(lambda: f"{name}: {state.phase}")
            return
        done = before + state.network - 1 + state.step / state.steps
        wait.expect(wait.elapsed() * whole / done)
        wait.show(
            lambda: (
                f"{name}: network {state.network} of {state.networks}, step {state.step:,} of "
                f"{state.steps:,}"
            )
        )

    train_data = bench.data.train
    model = train(
        train_data.texts,
        train_data.labels.tolist(),
        recipe=recipe,
        seed=most.seed,
        devices=bench.devices,
        checkpoints=folder,
        progress=report,
    )
    ids = {
        domain: encode(
            model.tokenizer, bench.data.tested(domain).texts, max_length=model.recipe.max_length
        )
        for domain in DOMAINS
    }
    for number, run in enumerate(job, start=1):
        scored = replace(bench.recipe_of(run), max_length=model.recipe.max_length)
        members = model.members[: scored.networks]
        _keep(bench, run, replace(model, recipe=scored, members=members), ids)
        wait.expect(wait.elapsed() * whole / (before + recipe.networks + number))
        wait.say(f"{name}: {run.method} is scored; {wait.left()}")
    shutil.rmtree(folder)


def _keep(bench: Bench, run: Run, model: TrainedModel, ids: dict[str, list[list[int]]]) -> None:
    """Score the tested comments, and write scores and figures."""
    recipe, facts = model.recipe, model.facts
    arrays: dict[str, NDArray[Any]] = {}
    figures = {}
    for domain in DOMAINS:
        tested = bench.data.tested(domain)
        prob = model.predict(ids[domain]).prob()
        label = tested.labels.astype(np.float64)
        figures[domain] = evaluated(tested.labels, prob, tested.weights)
        arrays |= {
            f"{domain}_label": tested.labels,
            f"{domain}_weight": tested.weights,
            f"{domain}_prob": prob,
            f"{domain}_advantage": advantage_draws(label, prob, tested.weights, bench.draws),
        }
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    path = bench.path(run)
    write_file(path.with_suffix(".npz"), buffer.getvalue())
    document = {
        "run": {"method": run.method, "loss": run.loss, "seed": run.seed},
        "identity": bench.identity(bench.recipe_of(run), run.seed),
        "networks": [
            {"steps": made["steps"], "average_precision": made["average_precision"]}
            for made in facts.networks[: recipe.networks]
        ],
        "recipe": recipe.to_json(),
        "training": {
            "comments": facts.examples,
            "toxic": facts.toxic,
            "held_out": round(facts.validation["n"]),
        },
        "figures": figures,
    }
    write_file(path, to_json(document))


def _load(bench: Bench, run: Run) -> Result | None:
    """Return the kept result of a run; None if there is none. The figures are written last."""
    path = bench.path(run)
    if not path.exists():
        return None
    document = json.loads(path.read_bytes())
    with np.load(path.with_suffix(".npz"), allow_pickle=False) as arrays:
        return Result(
            run=run,
            networks=document["networks"],
            figures={domain: document["figures"][domain] for domain in DOMAINS},
            draws={domain: arrays[f"{domain}_advantage"] for domain in DOMAINS},
        )


def write_file(path: Path, content: bytes) -> None:
    """Write a file whole or not at all, and create its folder.

    Raises:
        ModelError: the folder cannot be written to.
    """
    with _writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        files.replace(path, content, mode=files.USUAL)


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Turn an error of the block, which writes to `path`, into a ModelError."""
    try:
        yield
    except OSError as exc:
        raise ModelError(
            f"{path} cannot be written to ({exc.strerror}); use another folder with --output"
        ) from exc


def to_json(document: Any) -> bytes:
    """Return a document as JSON; equal documents give equal bytes.

    >>> to_json({"b": 1, "a": None}).decode().split()
    ['{', '"a":', 'null,', '"b":', '1', '}']
    """
    return (json.dumps(document, indent=1, sort_keys=True, allow_nan=False) + "\n").encode()


def _digest(document: dict[str, Any]) -> str:
    return hashlib.sha256(to_json(document)).hexdigest()[:12]


def planned(methods: Sequence[Method], losses: Sequence[Loss], seeds: Sequence[int]) -> list[Run]:
    """Return the runs of all combinations, by seed, loss and method.

    Raises:
        ModelError: a list is empty, has a value twice, or one that does not exist.

    >>> [run.method for run in planned(["sngp", "deterministic"], ["focal"], [0])]
    ['deterministic', 'sngp']
    """
    for name, values in (("methods", methods), ("losses", losses), ("seeds", seeds)):
        if not values or len(set(values)) < len(values):
            raise ModelError(f"--{name} must name at least one value, and none twice")
    for name, given, known in (("methods", methods, METHODS), ("losses", losses, LOSSES)):
        if not set(given) <= set(known):
            raise ModelError(f"--{name} must be of {', '.join(known)}, got {', '.join(given)}")
    if min(seeds) < 0:
        raise ModelError(f"--seeds must be at least 0, got {min(seeds)}")
    return [
        Run(method=method, loss=loss, seed=seed)
        for seed in seeds
        for loss in losses
        for method in METHODS
        if method in methods
    ]
