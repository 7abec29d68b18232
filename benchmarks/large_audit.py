"""Peak memory and time of an audit's steps over a period of many comments.

    python benchmarks/large_audit.py [comments, default 10000000] [days, default 10]

Each step runs in a process of its own, as in Airflow, and reports the most memory that the process
had resident. Scores are made up; texts are one letter, and the plan alone reads them all, for their
digest. The baseline of a step's time is the plain read of all scores. Floor: 50 million comments in
2 GiB. Measured with 50 million in ten days on two shared cores: plan 63 s (before it read the
texts), 0.98 GiB; draw 340 s, 1.56 GiB; estimate 0.2 s, 0.23 GiB; redraw 283 s, 1.55 GiB; one read
of all scores 4 s, 0.40 GiB. With the texts, ten million in two days, on a busy machine: plan 45 s,
1.06 GiB; draw 85 s, 1.54 GiB; redraw 136 s, 1.52 GiB.
"""

import datetime
import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
from small_audits import plan_audit

from modwatch.audits import verification
from modwatch.audits.files import labels_file, read_sample, sample_file, write_labels
from modwatch.audits.request import AuditRequest
from modwatch.data.lake.schemas import COMMENTS, SCORES
from modwatch.installation.resources import Resources, open_resources
from modwatch.review.embedded import embedded
from modwatch.settings import Settings
from modwatch.statistics.audit.labels import AuditLabel, labels_demanded
from modwatch.statistics.audit.plan import AuditPlan

FIRST = datetime.date(2026, 1, 5)
BATCH = 100_000
LABELS = 1000


def days(number: int) -> list[datetime.date]:
    return [FIRST + datetime.timedelta(days=item) for item in range(number)]


def filled(schema: pa.Schema, rows: int, **columns: pa.Array) -> pa.RecordBatch:
    """Return a batch with these columns and nothing in the others."""
    arrays = [columns.get(field.name, pa.nulls(rows, field.type)) for field in schema]
    return pa.RecordBatch.from_arrays(
        [array.cast(field.type) for array, field in zip(arrays, schema, strict=True)],
        schema=schema,
    )


def comments(day: datetime.date, rows: int, *, scores: bool) -> Iterator[pa.RecordBatch]:
    """Yield a day's comments, or their scores: prevalence about 1 %, a sharp score."""
    generator = np.random.default_rng(day.toordinal())
    for start in range(0, rows, BATCH):
        size = min(BATCH, rows - start)
        latent = generator.normal(-6, 2.2, size)
        prob = (1 / (1 + np.exp(-latent))).astype(np.float32)
        shared = {
            "dt": pa.array([day] * size),
            "comment_id": pa.array(
                [f"{day:%Y%m%d}-{start + number:09d}" for number in range(size)]
            ),
        }
        moment = datetime.datetime.combine(day, datetime.time(), tzinfo=datetime.UTC)
        if scores:
            zero = pa.array(np.zeros(size, np.float32))
            yield filled(
                SCORES,
                size,
                **shared,
                model_version=pa.array(["1"] * size),
                role=pa.array(["champion"] * size),
                prob=pa.array(prob),
                uncertainty=zero,
                model_variance=zero,
                mutual_information=zero,
                cut=pa.array(np.zeros(size, bool)),
                flagged=pa.array(prob > 0.5),
                threshold=pa.array(np.full(size, 0.5)),
            )
        else:
            language = np.array(["de", "en", "fr"])[generator.integers(0, 3, size)]
            yield filled(
                COMMENTS,
                size,
                **shared,
                created_at=pa.array([moment] * size),
                text=pa.array(["x"] * size),
                platform=pa.array(["forum"] * size),
                language=pa.array(language),
                groups=pa.array([[]] * size, pa.list_(pa.string())),
            )


def make_day(resources: Resources, _number: int, day: datetime.date, rows: int) -> int:
    resources.lake.replace("comments", day, comments(day, rows, scores=False))
    return resources.lake.replace("scores", day, comments(day, rows, scores=True), role="champion")


def read_baseline(resources: Resources, number: int) -> int:
    """Read all scores once: the least that any step could do."""
    names = ["comment_id", "prob", "flagged"]
    return sum(
        batch.num_rows
        for day in days(number)
        for batch in resources.lake.read("scores", day, columns=names, role="champion")
    )


def plan(resources: Resources, number: int) -> int:
    request = AuditRequest(audit="large", first=FIRST, last=days(number)[-1], labels=LABELS)
    frozen = plan_audit(resources, request, actor="eva")
    resources.audit("large").approve(actor="eve")
    return sum(stratum.population for stratum in frozen.strata)


def draw(resources: Resources, _number: int) -> int:
    return resources.audit("large").draw()


def label(resources: Resources, _number: int) -> int:
    """Seal labels that a coin gave by the score."""
    kept = resources.audit_store
    folder = kept.read("large")
    generator = np.random.default_rng(0)
    frozen = AuditPlan.from_json(folder["plan.json"].decode())
    labels = [
        AuditLabel(
            day=comment.day,
            comment_id=comment.comment_id,
            labeller=f"coin-{person}",
            action="label",
            label=value,
            decided_at="2026-02-01T00:00:00+00:00",
            decision="00",
        )
        for comment in read_sample(folder[sample_file(1)])
        for value in [int(generator.random() < comment.score)]
        for person in range(labels_demanded(frozen, comment, [SimpleNamespace(label=value)]))
    ]
    kept.record("large", "labelled", content={labels_file(1): write_labels(labels)})
    return len(labels)


def estimate(resources: Resources, _number: int) -> int:
    return len(resources.audit("large").estimate()["figures"])


def redraw(resources: Resources, _number: int) -> int:
    return len(verification.redrawn(resources.lake, resources.audit_store.read("large")))


STEPS = (read_baseline, plan, draw, label, estimate, redraw)


def measured(call, settings: Settings, arguments, results: "multiprocessing.Queue") -> None:
    begun = time.perf_counter()
    with open_resources(settings) as resources:
        rows = call(resources, *arguments)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    results.put((rows, time.perf_counter() - begun, peak))


def run(call, settings: Settings, *arguments) -> tuple[int, float, float]:
    """Run in a process of its own; return rows, seconds and peak in GiB."""
    spawn = multiprocessing.get_context("spawn")
    results = spawn.Queue()
    process = spawn.Process(target=measured, args=(call, settings, arguments, results))
    process.start()
    found = results.get(timeout=3600)
    process.join()
    return found


def main(rows: int, number: int) -> None:
    with tempfile.TemporaryDirectory() as folder, embedded(Path(folder) / "postgres") as server:
        settings = Settings(home=Path(folder), database_url=server.url("modwatch"))
        with open_resources(settings) as resources:
            resources.migrate()
        for day in days(number):
            run(make_day, settings, number, day, rows // number)
        print(f"{'step':18}{'rows':>12}{'seconds':>10}{'peak GiB':>10}{'x read':>8}")
        baseline = None
        for step in STEPS:
            count, seconds, peak = run(step, settings, number)
            baseline = baseline or seconds
            result = f"{count:>12,}{seconds:>10.1f}{peak:>10.2f}{seconds / baseline:>8.1f}"
            print(f"{step.__name__:18}{result}", flush=True)


if __name__ == "__main__":
    given = [int(item) for item in sys.argv[1:3]]
    main(*given, *(10_000_000, 10)[len(given) :])
