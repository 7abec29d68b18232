"""How long the erasure of a person's comments takes, and whether everything verifies afterwards.

A lake and a queue are made here. The baseline of the same run is a plain rewriting of the same days
of the lake, which an erasure cannot do without.

    python benchmarks/erasure.py             # 10,000 comments among 600,000
    python benchmarks/erasure.py --days 5
"""

import argparse
import datetime as dt
import tempfile
import time
from pathlib import Path

import pyarrow as pa

from modwatch.data.lake.erasure import Subject
from modwatch.data.lake.schemas import COMMENTS, LANDED
from modwatch.installation.resources import Resources, open_resources
from modwatch.pipeline import personal_data
from modwatch.review.log.verification import verify_log
from modwatch.review.people.accounts import create_moderator
from modwatch.review.queue.deciding import decide
from modwatch.review.queue.intake import enqueue
from modwatch.review.queue.items import NewItem
from modwatch.review.queue.leases import lease
from modwatch.settings import Settings

_FIRST, _A_DAY, _QUEUED, _THEIRS = dt.date(2026, 1, 5), 20_000, 1_000, 10_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=int, default=30)
    days = parser.parse_args().days
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(home=folder, database_url="embedded", source={"kind": "community"})
        with open_resources(settings) as resources:
            measure(resources, days, Path(folder))


def measure(resources: Resources, days: int, home: Path) -> None:
    for number in range(days):
        make_day(resources, _FIRST + dt.timedelta(days=number), _THEIRS // days)
    decide_some(resources)
    before = verify_log(resources.database)
    started = time.perf_counter()
    for day in resources.lake.days("comments"):
        for table in ("landed", "comments"):
            resources.lake.replace(table, day, resources.lake.read(table, day))
    plain = time.perf_counter() - started
    started = time.perf_counter()
    done = personal_data.erase(resources, Subject(author="theirs"))
    took = time.perf_counter() - started
    print(f"erased {done.places}: {took:.1f} s, {took / plain:.1f} times a rewriting of the days")
    print(f"problems: {personal_data.problems(resources, done)}")
    print(f"log: {verify_log(resources.database, before.witness).problems}")
    left = [path for path in home.rglob("*") if path.is_file() and has(path, b"a planted word")]
    print(f"files with a planted text: {len(left)}")


def has(path: Path, words: bytes) -> bool:
    return words in path.read_bytes()


def make_day(resources: Resources, day: dt.date, theirs: int) -> None:
    """Put comments of a day into lake and queue; each of theirs has an answer."""
    ids = [f"c{day:%m%d}-{number}" for number in range(_A_DAY)]
    texts = [
        f"{'a planted word' if number < theirs else 'some words'} {number} of {day} " + "word " * 30
        for number in range(_A_DAY)
    ]
    columns = {
        "dt": [day] * _A_DAY,
        "row": range(_A_DAY),
        "comment_id": ids,
        "created_at": [dt.datetime.combine(day, dt.time(12), dt.UTC)] * _A_DAY,
        "text": texts,
        "parent_text": [None] * (_A_DAY - theirs) + texts[:theirs],
        "author_id": ["theirs" if number < theirs else "other" for number in range(_A_DAY)],
    }
    for table, schema in (("landed", LANDED), ("comments", COMMENTS)):
        given = {field.name: columns.get(field.name, [None] * _A_DAY) for field in schema}
        batch = pa.RecordBatch.from_pydict(given, schema=schema)
        resources.lake.replace(table, day, [batch])
    step = _A_DAY // _QUEUED
    items = [
        NewItem(
            comment_id=ids[at], text=texts[at], parent_text=columns["parent_text"][at],
            reason="uncertainty", stratum=0, inclusion_probability=1.0, rank=rank,
            review_score=0.2, prob=0.3, uncertainty=0.21, model_version="1",
        )
        for rank, at in enumerate(range(0, _A_DAY, step), 1)
    ]  # fmt: skip
    enqueue(resources.database, items, day)


def decide_some(resources: Resources, number: int = 500) -> None:
    person = create_moderator(resources.database, "ann", "moderator")
    for key in range(number):
        held = lease(resources.database, person.id)
        assert held is not None
        decide(
            resources.database, label=0, moderator_id=person.id, item_id=held.item.id,
            lease_token=held.token, idempotency_key=str(key), note="a planted word again",
        )  # fmt: skip


if __name__ == "__main__":
    main()
