"""What holds for every source, whichever it is."""

import datetime as dt
import itertools
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from modwatch.data.lake.schemas import LANDED
from modwatch.data.sources.community import Community
from modwatch.data.sources.corpora.corpus import ITEMS, Corpus, table
from modwatch.data.sources.files import FileSource
from modwatch.data.sources.replay import ReplaySource
from modwatch.data.sources.sources import Source
from modwatch.data.sources.sql import SqlSource

DAY = dt.date(2024, 3, 1)
ROWS = 10_500


def file_source(folder: Path) -> Source:
    lines = (f"{i},x,2024-03-01T00:00:00Z\n" for i in range(ROWS))
    (folder / "a.csv").write_text("comment_id,text,created_at\n" + "".join(lines))
    return FileSource(path=folder / "a.csv")


def sql_source(folder: Path) -> Source:
    url = f"sqlite:///{folder / 'a.db'}"
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE post (comment_id, text, created_at)"))
        connection.execute(
            text("INSERT INTO post VALUES (:i, 'x', '2024-03-01T00:00:00Z')"),
            [{"i": i} for i in range(ROWS)],
        )
    engine.dispose()
    query = "SELECT * FROM post WHERE :start < :end ORDER BY rowid"
    return SqlSource(url=url, query=query)


def replay_source(folder: Path) -> Source:
    items = [{"comment_id": str(i), "text": "x", "label": 0} for i in range(ROWS)]
    corpus = Corpus(name="tiny", items=table(ITEMS, items))
    return ReplaySource(corpus=corpus, first_day=DAY, days=1)


def community_source(folder: Path) -> Source:
    return Community(comments_per_day=ROWS, dirt_rate=0.002)


@pytest.mark.parametrize("make", [file_source, sql_source, replay_source, community_source])
def test_every_source_yields_numbered_batches_of_the_landed_schema_and_repeats_itself(
    tmp_path, make
):
    source = make(tmp_path)
    batches = list(source.read(DAY))
    assert len(batches) >= 2
    assert all(batch.schema == LANDED and 0 < batch.num_rows <= 10_000 for batch in batches)
    rows = list(itertools.chain.from_iterable(batch["row"].to_pylist() for batch in batches))
    assert rows == list(range(len(rows)))
    assert {day for batch in batches for day in batch["dt"].unique().to_pylist()} == {DAY}
    assert list(source.read(DAY)) == batches
    assert source.name
