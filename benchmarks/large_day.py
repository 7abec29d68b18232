"""Memory and time of each step for one large day of the synthetic community, on one thread.

    python benchmarks/large_day.py [--comments 500000 1000000] [--model tiny]

Every step runs in a process of its own, as in Airflow, and reports the most memory that the process
had resident. The baseline of a step's time is the plain read of the day's comments. With several
days, the exponent of each step is printed: 1 is linear in the number of comments, 2 quadratic.
Exit status 1 if a step has more resident memory than `--most-memory`.

`--model none` is a stand-in that costs nothing, for the path around the model; `tiny` an encoder of
one layer, 32 wide, that scores in the process of the step.
"""

import argparse
import datetime
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from modwatch.data.lake.schemas import LABELS
from modwatch.installation.resources import Resources, open_resources
from modwatch.models.scoring.scorer import PLAIN, Predictions, Scorer
from modwatch.pipeline import daily
from modwatch.review.embedded import embedded
from modwatch.settings import Settings
from modwatch_lab.sources import CommunitySourceSettings

DAY = datetime.date(2026, 1, 5)
READ = "read_baseline"
STEPS = ("ingest", "check_comments", READ, "score", "check_scores", "route", "collect_labels",
         "label_all", "measure", "detect_drift")  # fmt: skip
MODEL = "model"


class Coin:
    """A scorer that draws probabilities from the texts' lengths, so that two runs agree."""

    model_version = "1"
    threshold = 0.5
    columns = PLAIN

    def score(self, texts: Sequence[str]) -> Predictions:
        length = np.fromiter(map(len, texts), np.float64, len(texts))
        prob = ((np.sin(length * 12.9898) + 1) / 2 * 0.6).astype(np.float32)
        return Predictions.of(prob)


class BenchmarkResources(Resources):
    """The resources with a model in a folder, or the coin, in place of the registry."""

    def planned_version(self) -> str:
        return "1"

    def scorer(self, version: str) -> Scorer:
        from modwatch.models.scoring.opening import open_scorer

        folder, threads = self.settings.home / MODEL, self.settings.torch_threads
        if not folder.exists():
            return Coin()
        return open_scorer(folder, model_version=version, threads=threads)


def save_tiny_model(folder: Path) -> None:
    """Save a model of one layer, trained on a few comments of the day before."""
    from modwatch.models.artifact import save
    from modwatch.models.recipe import offline_recipe
    from modwatch.models.training import train
    from modwatch_lab.community import Community

    comments = Community(comments_per_day=2_000, seed=7).read(DAY - datetime.timedelta(days=1))
    texts = next(iter(comments)).column("text").to_pylist()[:500]
    recipe = offline_recipe(layers=1, hidden_size=32, random_features=64, max_length=64, epochs=1)
    save(train(texts, [k % 2 for k in range(len(texts))], recipe=recipe, seed=0), folder)


def read_baseline(resources: Resources, day: datetime.date) -> int:
    """Read the day's comments once: the least that any step could do."""
    return sum(batch.num_rows for batch in resources.lake.read("comments", day))


def label_all(resources: Resources, day: datetime.date) -> int:
    """Label every routed comment by a coin, as people would have by the next day."""
    ids = resources.lake.table("routed", day, columns=["comment_id"]).column(0).combine_chunks()
    now = pa.scalar(datetime.datetime.now(datetime.UTC), LABELS.field("decided_at").type)
    label = pa.array(np.random.default_rng(0).integers(0, 2, len(ids)), pa.int8())
    values = {
        "dt": pa.repeat(pa.scalar(day), len(ids)),
        "comment_id": ids,
        "label": label,
        "moderator": pa.repeat("coin", len(ids)),
        "decided_at": pa.repeat(now, len(ids)),
        "seconds": pa.repeat(5.0, len(ids)),
        "first_label": label,
        "first_moderator": pa.repeat("coin", len(ids)),
    }
    return resources.lake.replace(
        "labels", day, [pa.RecordBatch.from_pydict(values, schema=LABELS)]
    )


def measured(name: str, settings: Settings) -> tuple[int, float, float]:
    """Run a step; return its rows, seconds, and the most resident memory in GiB."""
    ours = {READ: read_baseline, "label_all": label_all}
    call = ours.get(name) or getattr(daily, name)
    begun = time.perf_counter()
    with open_resources(settings) as resources:
        rows = call(BenchmarkResources(settings, resources._exit), DAY)
    return rows, time.perf_counter() - begun, most_resident()


def most_resident() -> float:
    """Return the most resident memory of this process, in GiB.

    `ru_maxrss` would have that of the parent in it.
    """
    lines = Path("/proc/self/status").read_text().splitlines()
    (size,) = [line.split()[1] for line in lines if line.startswith("VmHWM:")]
    return int(size) / 2**20


def apart(call: Callable[..., Any], *given: object) -> Any:
    """Return the result of a call in a new process; raise what it raises."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(call, *given).result()


def day_of(comments: int, *, model: str) -> dict[str, tuple[float, float]]:
    """Print and return seconds and GiB of each step for a day of `comments`."""
    with tempfile.TemporaryDirectory() as folder, embedded(Path(folder) / "postgres") as server:
        settings = Settings(
            home=Path(folder),
            database_url=server.url("modwatch"),
            source=CommunitySourceSettings(comments_per_day=comments),
            torch_threads=1,
        )
        with open_resources(settings) as resources:
            resources.migrate()
        if model == "tiny":
            apart(save_tiny_model, settings.home / MODEL)
        print(f"\n{'step':16}{'rows':>12}{'seconds':>10}{'peak GiB':>10}{'x read':>8}")
        found: dict[str, tuple[float, float]] = {}
        for name in STEPS:
            rows, seconds, peak = apart(measured, name, settings)
            found[name] = seconds, peak
            ratio = f"{seconds / found[READ][0]:8.1f}" if READ in found else ""
            print(f"{name:16}{rows:>12,}{seconds:>10.1f}{peak:>10.2f}{ratio}", flush=True)
    return found


def print_exponents(sizes: Sequence[int], days: Sequence[dict[str, tuple[float, float]]]) -> None:
    """Print how the time of each step grows from each day to the next, larger one."""
    growth = np.diff(np.log(sizes))
    print(f"\n{'exponents':16}" + "".join(f"{size:>12,}" for size in sizes[1:]))
    for name in STEPS:
        found = np.diff(np.log([day[name][0] for day in days])) / growth
        print(f"{name:16}" + "".join(f"{match:>12.2f}" for match in found))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--comments", type=int, nargs="+", default=[1_000_000])
    parser.add_argument("--model", choices=["none", "tiny"], default="none")
    parser.add_argument("--most-memory", type=float, default=2.0, help="GiB")
    given = parser.parse_args()
    days = [day_of(comments, model=given.model) for comments in given.comments]
    if len(days) > 1:
        print_exponents(given.comments, days)
    sys.exit(any(peak > given.most_memory for day in days for _, peak in day.values()))


if __name__ == "__main__":
    main()
