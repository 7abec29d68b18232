"""Comments a second through a model server on loopback, as a ratio to the scorer in process.

    python benchmarks/serving.py ENCODER [--comments 600] [--clients 4] [--threads 1] [--repeats 5]

The same model, SNGP on ENCODER, scores the same comments of invented words with the lengths of real
ones, in turns: `LocalScorer` in a process of its own, and `RemoteScorer` with `--clients` requests
at a time against `modwatch.serving` in another. Ratios are of wall time, medians of the repeats.
Then single comments are sent at half the rate of the server, at random times, and their latencies
are printed: 50 %, 95 % and 99 %.
"""

import argparse
import multiprocessing
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

import httpx
import numpy as np

from modwatch.connections import listen
from modwatch.models.artifact import save
from modwatch.models.recipe import Recipe
from modwatch.models.training import train
from modwatch.scoring.local import LocalScorer
from modwatch.scoring.remote import RemoteScorer
from modwatch.serving.app import create_app
from modwatch.serving.models import ServedModel
from modwatch.serving.opening import ModelServer
from modwatch.serving.server import serve
from modwatch.serving.telemetry import ProcessTelemetry
from scoring import invented_texts

SINGLE = 300


def opened(folder: Path, threads: int, version: str) -> LocalScorer:
    return LocalScorer(folder, model_version=version, threads=threads, precision="bf16")


def serving(folder: Path, port: int, threads: int) -> None:
    telemetry = ProcessTelemetry()
    model = ServedModel(
        "toxicity",
        current=lambda: "1",
        open_version=partial(opened, folder, threads),
        report=telemetry.batch_scored,
    )
    serve("127.0.0.1", port, ModelServer(model=model, app=create_app(model, telemetry)))


def alone(folder: Path, threads: int, connection: Connection) -> None:
    """Score each list of texts that comes, and answer with the seconds."""
    scorer = opened(folder, threads, "1")
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
        return np.array([each.result() for each in asked])


def ready(url: str) -> None:
    while True:
        try:
            if httpx.get(f"{url}/v2/health/ready").status_code == httpx.codes.OK:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("encoder")
    parser.add_argument("--comments", type=int, default=600)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=5)
    asked = parser.parse_args()
    sample = invented_texts(400, seed=1)
    recipe = Recipe(encoder=asked.encoder, max_length=512, max_steps=4, batch_size=8)
    model = train(sample, [len(text) % 2 for text in sample], recipe=recipe, seed=0)
    with listen("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
    url, spawn = f"http://127.0.0.1:{port}", multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "artifact"
        save(model, folder)
        here, there = spawn.Pipe()
        server = spawn.Process(target=serving, args=(folder, port, asked.threads), daemon=True)
        engine = spawn.Process(target=alone, args=(folder, asked.threads, there), daemon=True)
        server.start()
        engine.start()
        ready(url)
        ratios, rates = [], []
        with RemoteScorer(url, model="toxicity", concurrency=asked.clients) as remote:
            remote.score(invented_texts(50, seed=3))
            for repeat in range(asked.repeats):
                texts = invented_texts(asked.comments, seed=10 + repeat)
                here.send(texts)
                inside = here.recv()
                start = time.perf_counter()
                remote.score(texts)
                outside = time.perf_counter() - start
                ratios.append(inside / outside)
                rates.append(asked.comments / outside)
        rate = float(np.median(rates))
        print(f"\n{asked.comments} comments, {asked.clients} requests at a time, {asked.threads} "
              f"threads: {rate:.1f} comments/s served, {np.median(ratios):.1%} of the scorer's "
              f"rate in process ({min(ratios):.1%} to {max(ratios):.1%})")  # fmt: skip
        found = latencies(url, rate / 2) * 1_000
        p50, p95, p99 = np.quantile(found, [0.5, 0.95, 0.99])
        print(f"single comments at {rate / 2:.1f} a second: p50 {p50:.0f} ms, p95 {p95:.0f} ms, "
              f"p99 {p99:.0f} ms")  # fmt: skip
        here.send(None)
        server.terminate()


if __name__ == "__main__":
    main()
