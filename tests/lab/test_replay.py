import datetime as dt

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from published import real_data

from modwatch.common.errors import SourceError
from modwatch.data.lake.schemas import LANDED
from modwatch_lab.corpora import load
from modwatch_lab.corpora.corpus import ITEMS, Corpus, table
from modwatch_lab.replay import ReplaySource

START = dt.date(2024, 2, 27)


def corpus(size: int) -> Corpus:
    items = [
        {"comment_id": f"i{n}", "text": f"text {n}", "label": n % 2, "score": 0.5}
        for n in range(size)
    ]
    return Corpus(name="small", items=table(ITEMS, items))


def replayed(source: ReplaySource) -> list[list[dict]]:
    days = [source.first_day + dt.timedelta(days=n) for n in range(-1, source.days + 1)]
    return [pa.Table.from_batches(source.read(day), LANDED).to_pylist() for day in days]


@given(size=st.integers(0, 40), days=st.integers(1, 12))
def test_every_item_comes_once_in_order_and_evenly_inside_its_day(size, days):
    before, *inside, after = replayed(ReplaySource(corpus=corpus(size), first_day=START, days=days))
    assert before == after == []
    rows = [row for day in inside for row in day]
    assert [row["comment_id"] for row in rows] == [f"i{n}" for n in range(size)]
    assert [row["origin"] for row in rows] == [f"replay:small:{n + 1}" for n in range(size)]
    assert all([row["row"] for row in day] == list(range(len(day))) for day in inside)
    assert {len(day) for day in inside} <= {size // days, -(-size // days)}
    assert all(row["created_at"].date() == row["dt"] for day in inside for row in day)
    times = [row["created_at"] for day in inside for row in day]
    assert times == sorted(set(times))


def test_the_label_stands_in_its_own_column_and_the_score_nowhere():
    (row,) = replayed(ReplaySource(corpus=corpus(1), first_day=START, days=1))[1]
    assert (row["label"], row["text"], row["platform"]) == (0, "text 0", "small")
    assert 0.5 not in row.values()


def test_a_replay_over_no_days_is_refused():
    with pytest.raises(SourceError, match="at least 1 day, got"):
        ReplaySource(corpus=corpus(1), first_day=START, days=0)


def test_the_published_stream_over_ten_days():
    stream = load("wikipedia_talk", real_data("wikipedia_talk/context_gc.csv.gz"))
    days = replayed(ReplaySource(corpus=stream, first_day=START, days=10))[1:-1]
    assert [len(day) for day in days] == [1000] * 10
    assert sum(row["label"] for day in days for row in day) == 151


def timed(*times: dt.datetime | None) -> ReplaySource:
    items = [{"comment_id": f"i{n}", "text": "x", "created_at": t} for n, t in enumerate(times)]
    small = Corpus(name="small", items=table(ITEMS, items))
    return ReplaySource(corpus=small, first_day=START, days=3)


def test_items_with_times_keep_their_time_of_day_and_days_without_items_are_skipped():
    utc = dt.UTC
    before, first, second, after = replayed(
        timed(
            dt.datetime(2018, 7, 13, 0, 0, 0, tzinfo=utc),
            dt.datetime(2018, 7, 13, 23, 59, 59, tzinfo=utc),
            dt.datetime(2018, 7, 16, 12, 30, 0, tzinfo=utc),
            dt.datetime(2018, 7, 16, 12, 30, 0, tzinfo=utc),
        )
    )[:4]
    assert before == after == []
    times = [row["created_at"] for day in (first, second) for row in day]
    assert [time.time() for time in times] == [
        *(dt.time(0, 0, 0), dt.time(23, 59, 59), dt.time(12, 30), dt.time(12, 30))
    ]
    assert [row["dt"] for day in (first, second) for row in day] == [
        *(START, START, START + dt.timedelta(1), START + dt.timedelta(1))
    ]


@pytest.mark.parametrize("second", [None, dt.datetime(2018, 7, 1, tzinfo=dt.UTC)])
def test_a_corpus_out_of_order_or_with_some_times_is_refused(second):
    source = timed(dt.datetime(2018, 7, 13, tzinfo=dt.UTC), second)
    with pytest.raises(SourceError, match="not in order of time, or some have no time"):
        list(source.read(START))
