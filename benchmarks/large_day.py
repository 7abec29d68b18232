"""Peak memory and time of each stop for one large day of the synthetic community.

Every stop runs in a process of its own, as in Airflow, and reports the most memory that the process
had resident. The scorer is a stand-in that costs nothing: it is the path that is measured, not the
model (see scoring.py). The baseline of a stop's time is the plain read of the day's comments.

    python benchmarks/large_day.py 1000000
"""

import datetime
import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from modwatch.lake.schemas import LABELS
from modwatch.pipeline import daily
from modwatch.resources import Resources, open_resources
from modwatch.review.embedded import embedded
from modwatch.scoring.scorer import Predictions
from modwatch.settings import CommunitySourceSettings, Settings

DAY = datetime.date(2026, 1, 5)


class Coin:
    """A scorer that draws probabilities from the texts' lengths, so that two runs agree."""

    model_version = "1"
    threshold = 0.5

    def score(self, texts: Sequence[str]) -> Predictions:
        length = np.fromiter(map(len, texts), np.float64, len(texts))
        prob = ((np.sin(length * 12.9898) + 1) / 2 * 0.6).astype(np.float32)
        zero = np.zeros(len(texts), np.float32)
        return Predictions(prob=prob, model_variance=zero, mutual_information=zero)


class CoinResources(Resources):
    """The resources with the coin in place of the registry."""

    def champion_version(self) -> str:
        return "1"

    def scorer(self, version: str) -> Coin:  # noqa: ARG002
        return Coin()


def read_baseline(at: Resources, day: datetime.date) -> int:
    """Read the day's comments once: the least that any stop could do."""
    return sum(batch.num_rows for batch in at.lake.read("comments", day))


def label_all(at: Resources, day: datetime.date) -> int:
    """Label every routed comment by a coin, as people would have by the next day."""
    ids = at.lake.table("routed", day, columns=["comment_id"]).column(0).combine_chunks()
    now = pa.scalar(datetime.datetime.now(datetime.UTC), LABELS.field("decided_at").type)
    values = {
        "dt": pa.repeat(pa.scalar(day), len(ids)),
        "comment_id": ids,
        "label": pa.array(np.random.default_rng(0).integers(0, 2, len(ids)), pa.int8()),
        "moderator": pa.repeat("coin", len(ids)),
        "decided_at": pa.repeat(now, len(ids)),
        "seconds": pa.repeat(5.0, len(ids)),
    }
    return at.lake.replace("labels", day, [pa.RecordBatch.from_pydict(values, schema=LABELS)])


def measured(name: str, settings: Settings, results: "multiprocessing.Queue") -> None:
    ours = {"read_baseline": read_baseline, "label_all": label_all}
    call = ours.get(name) or getattr(daily, name)
    begun = time.perf_counter()
    with open_resources(settings) as at:
        rows = call(CoinResources(settings, at._exit), DAY)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    results.put((rows, time.perf_counter() - begun, peak))


def main(rows: int) -> None:
    spawn = multiprocessing.get_context("spawn")
    stops = ["ingest", "check_comments", "read_baseline", "score", "check_scores", "route",
             "collect_labels", "label_all", "measure", "detect_drift"]  # fmt: skip
    with tempfile.TemporaryDirectory() as folder, embedded(Path(folder) / "postgres") as server:
        settings = Settings(
            home=Path(folder),
            database_url=server.url("modwatch"),
            source=CommunitySourceSettings(comments_per_day=rows),
            shard_rows=rows,
        )
        with open_resources(settings) as at:
            at.migrate()
        print(f"{'stop':16}{'rows':>12}{'seconds':>10}{'peak GiB':>10}{'x read':>8}")
        baseline = None
        for name in stops:
            results = spawn.Queue()
            process = spawn.Process(target=measured, args=(name, settings, results))
            process.start()
            count, seconds, peak = results.get(timeout=3600)
            process.join()
            baseline = seconds if name == "read_baseline" else baseline
            ratio = f"{seconds / baseline:8.1f}" if baseline else ""
            print(f"{name:16}{count:>12,}{seconds:>10.1f}{peak:>10.2f}{ratio}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
