"""Comments a second through a model server on loopback, as a ratio to the scorer in process.

    python benchmarks/serving.py ENCODER [--comments 600] [--clients 4] [--threads 1] [--repeats 5]
        [--replicas N]

The same model, SNGP on ENCODER, scores the same comments of invented words with the lengths of real
ones, in turns: `LocalScorer` in a process of its own, and `RemoteScorer` with `--clients` requests
at a time against `modwatch serve` in another. With `--replicas`, `modwatch serve --replicas N` is
the third, with a proxy of Ray's in front of its replicas. Ratios are of wall time, medians of the
repeats. Then single comments are sent at half the rate of the slowest server, at random times, and
their latencies are printed: 50 %, 95 % and 99 %.
"""

import argparse
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing.connection import Connection
from pathlib import Path

import httpx
import numpy as np
from scoring import invented_texts

from modwatch.common.account import Account
from modwatch.common.connections import listen
from modwatch.data.sources.labelled import LabelledTexts
from modwatch.installation.resources import open_resources
from modwatch.models.recipe import Recipe
from modwatch.models.scoring.remote import RemoteScorer
from modwatch.pipeline import model
from modwatch.settings import Settings

SINGLE = 300
SERVE = "from modwatch.cli.main import program; program()"


@contextmanager
def serving(env: dict[str, str], *options: str) -> Iterator[str]:
    """Run `modwatch serve`; yield its URL."""
    with listen("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
    program = [sys.executable, "-c", SERVE, "serve", "--port", str(port), *options]
    with subprocess.Popen(program, env={**os.environ, **env}) as process:
        try:
            ready(f"http://127.0.0.1:{port}", process)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


def alone(settings: Settings, connection: Connection) -> None:
    """Score each list of texts that comes, and answer with the seconds."""
    with open_resources(settings) as resources:
        scorer = resources.local_scorer("1")
        scorer.score(invented_texts(50, seed=3))
        while (texts := connection.recv()) is not None:
            start = time.perf_counter()
            scorer.score(texts)
            connection.send(time.perf_counter() - start)


def latencies(url: str, rate: float) -> np.ndarray:
    """Return the seconds of single comments, sent at random times at a rate."""
    texts = invented_texts(SINGLE, seed=4)
    gaps = np.random.default_rng(0).exponential(1 / rate, SINGLE)
    with httpx.Client(base_url=url, timeout=120) as client, ThreadPoolExecutor(64) as pool:

        def ask(text: str) -> float:
            tensor = {"name": "text", "datatype": "BYTES", "shape": [1], "data": [text]}
            start = time.perf_counter()
            client.post("/v2/models/toxicity/infer", json={"inputs": [tensor]}).raise_for_status()
            return time.perf_counter() - start

        asked = []
        for text, gap in zip(texts, gaps, strict=True):
            time.sleep(gap)
            asked.append(pool.submit(ask, text))
        return np.array([item.result() for item in asked])


def ready(url: str, process: subprocess.Popen[bytes]) -> None:
    while process.poll() is None:
        with suppress(httpx.TransportError):
            if httpx.get(f"{url}/v2/health/ready").status_code == httpx.codes.OK:
                return
        time.sleep(0.2)
    raise SystemExit("the server did not start")


def registered(encoder: str, home: Path, threads: int) -> Settings:
    """Return the settings of an installation in `home`, with a champion that is trained here."""
    settings = Settings(
        home=home,
        mlflow_url=f"sqlite:///{home / 'mlflow.db'}",
        torch_threads=threads,
        precision="bf16",
        scorer_token=None,
    )
    sample = invented_texts(400, seed=1)
    labels = np.array([len(text) % 2 for text in sample])
    corpus = LabelledTexts(texts=tuple(sample), labels=labels, account=Account.of(len(sample)))
    recipe = Recipe(encoder=encoder, max_length=512, max_steps=4, batch_size=8)
    with open_resources(settings) as resources:
        model.set_alias(resources, model.train(resources, corpus, recipe=recipe), "champion")
    return settings


def environment(settings: Settings) -> dict[str, str]:
    """Return what a server of these settings finds in its environment."""
    return {
        "MODWATCH_HOME": str(settings.home),
        "MODWATCH_MLFLOW_URL": settings.mlflow_url,
        "MODWATCH_TORCH_THREADS": str(settings.torch_threads),
        "MODWATCH_PRECISION": settings.precision,
    }


def measure(
    urls: Mapping[str, str], here: Connection, asked: argparse.Namespace
) -> dict[str, list[tuple[float, float]]]:
    """Return comments a second and the ratio to the scorer in process, by server and repeat."""
    found = {name: list[tuple[float, float]]() for name in urls}
    with ExitStack() as stack:
        scorers = {
            name: stack.enter_context(
                RemoteScorer(url, model="toxicity", concurrency=asked.clients)
            )
            for name, url in urls.items()
        }
        for scorer in scorers.values():
            scorer.score(invented_texts(100, seed=3))
        for repeat in range(asked.repeats):
            texts = invented_texts(asked.comments, seed=10 + repeat)
            here.send(texts)
            inside = here.recv()
            for name, scorer in scorers.items():
                start = time.perf_counter()
                scorer.score(texts)
                outside = time.perf_counter() - start
                found[name].append((asked.comments / outside, inside / outside))
    return found


def show(found: Mapping[str, list[tuple[float, float]]], urls: Mapping[str, str]) -> None:
    rates = {name: float(np.median([rate for rate, _ in pairs])) for name, pairs in found.items()}
    for name, pairs in found.items():
        ratios = [ratio for _, ratio in pairs]
        print(f"{name}: {rates[name]:.1f} comments/s, {np.median(ratios):.1%} of the scorer's rate "
              f"in process ({min(ratios):.1%} to {max(ratios):.1%})")  # fmt: skip
    rate = min(rates.values()) / 2
    for name, url in urls.items():
        p50, p95, p99 = np.quantile(latencies(url, rate) * 1_000, [0.5, 0.95, 0.99])
        print(f"{name}, single comments at {rate:.1f} a second: p50 {p50:.0f} ms, p95 {p95:.0f} "
              f"ms, p99 {p99:.0f} ms")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("encoder")
    parser.add_argument("--comments", type=int, default=600)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--replicas", type=int, help="measure that many replicas on Ray, too")
    asked = parser.parse_args()
    with ExitStack() as stack:
        scratch = stack.enter_context(tempfile.TemporaryDirectory())
        settings = registered(asked.encoder, Path(scratch), asked.threads)
        spawn = multiprocessing.get_context("spawn")
        here, there = spawn.Pipe()
        engine = spawn.Process(target=alone, args=(settings, there), daemon=True)
        engine.start()
        env = environment(settings)
        urls = {"one process": stack.enter_context(serving(env))}
        if asked.replicas:
            share = min(1.0, (os.cpu_count() or 1) / asked.replicas)
            options = ["--replicas", str(asked.replicas), "--cpus-per-replica", str(share)]
            name = f"Ray, {asked.replicas} replicas"
            urls[name] = stack.enter_context(serving(env, *options))
        show(measure(urls, here, asked), urls)
        here.send(None)


if __name__ == "__main__":
    main()
