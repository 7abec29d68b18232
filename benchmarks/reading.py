"""How fast files are read: rows a second of `read_records`, as a ratio to the plain library.

    python benchmarks/reading.py [--rows 200000] [--repeat 5]

For clean CSV, JSON lines and Parquet, the best of several runs, and the peak of memory. The
baselines are `csv.DictReader`, `json.loads` and `ParquetFile.iter_batches(…).to_pylist()`.
"""

import argparse
import csv
import json
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from modwatch.data.sources.readers import read_records


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for path, baseline in write(Path(folder), options.rows).items():
            ours = best(lambda path=path: read_records(path), options)
            plain = best(lambda path=path, baseline=baseline: baseline(path), options)
            print(
                f"{path.suffix[1:]:8} {ours:>10,.0f} rows/s, plain {plain:>10,.0f} rows/s, "
                f"ratio {ours / plain:.3f}"
            )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak of memory {peak:,.0f} MiB")


def best(read: Callable[[], Iterator[object]], options: argparse.Namespace) -> float:
    times = []
    for _ in range(options.repeat):
        start = time.perf_counter()
        count = sum(1 for _ in read())
        times.append(time.perf_counter() - start)
        assert count == options.rows
    return options.rows / min(times)


def write(folder: Path, rows: int) -> dict[Path, Callable[[Path], Iterator[object]]]:
    rng = np.random.default_rng(0)
    words = np.array(
        ["orchard", "pencil", "kettle,", "window", "lantern", '"ribbon"', "cloud", "harbour"]
    )
    texts = [" ".join(words[rng.integers(0, 8, 12)]) for _ in range(rows)]
    columns = {
        "id": [f"p{number}" for number in range(rows)],
        "text": texts,
        "created_at": ["2026-03-13T08:00:00Z"] * rows,
        "lang": ["en"] * rows,
    }
    records = [
        dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)
    ]
    with (folder / "a.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(records)
    (folder / "a.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    pq.write_table(pa.table(columns), folder / "a.parquet")
    return {
        folder / "a.csv": plain_csv,
        folder / "a.jsonl": plain_json,
        folder / "a.parquet": plain_parquet,
    }


def plain_csv(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(newline="") as file:
        yield from csv.DictReader(file)


def plain_json(path: Path) -> Iterator[Any]:
    with path.open() as file:
        yield from map(json.loads, file)


def plain_parquet(path: Path) -> Iterator[dict[str, Any]]:
    for batch in pq.ParquetFile(path).iter_batches():
        yield from batch.to_pylist()


if __name__ == "__main__":
    main()
