import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from modwatch.lake.schemas import STAGED_SCORES
from modwatch.scoring.local import LocalScorer
from modwatch.scoring.shards import in_shard, score_rows, shard_count, staged

DAY = datetime.date(2026, 1, 5)


def batch(ids: list[str]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"comment_id": ids, "text": [f"text of {i}" for i in ids]})


@given(st.integers(0, 10**7), st.integers(1, 10**6))
def test_as_few_shards_as_hold_the_day(comments: int, shard_rows: int) -> None:
    shards = shard_count(comments, shard_rows)
    assert shards * shard_rows >= comments > (shards - 1) * shard_rows or comments == shards == 0


@given(st.lists(st.text(max_size=8), unique=True), st.integers(1, 7))
def test_each_comment_is_in_exactly_one_shard(ids: list[str], shards: int) -> None:
    parts = [
        in_shard(batch(ids), k, shards).column("comment_id").to_pylist() for k in range(shards)
    ]
    assert sorted(comment for part in parts for comment in part) == sorted(ids)


@given(st.lists(st.text(max_size=8), unique=True, min_size=1), st.integers(1, 7), st.data())
def test_a_comments_shard_depends_on_its_id_alone(
    ids: list[str], shards: int, data: st.DataObject
) -> None:
    one = data.draw(st.sampled_from(ids))

    def home(among: list[str]) -> list[int]:
        parts = (in_shard(batch(among), k, shards) for k in range(shards))
        return [k for k, part in enumerate(parts) if one in part.column("comment_id").to_pylist()]

    assert home(ids) == home([one])


def test_shards_are_of_about_one_size() -> None:
    ids = batch([f"c20260105-{n:07}" for n in range(10_000)])
    sizes = [in_shard(ids, k, 10).num_rows for k in range(10)]
    assert max(abs(size - 1_000) for size in sizes) < 5 * np.sqrt(1_000)


def test_rows_of_scores_follow_the_schema_and_the_predictions(scoring_artifact: Path) -> None:
    scorer = LocalScorer(scoring_artifact, model_version="7", threads=1)
    rows = staged(score_rows(batch(["a", "b", "c"]), scorer, day=DAY), shard=2)
    assert rows.schema == STAGED_SCORES
    columns = rows.to_pydict()
    predicted = scorer.score(["text of a", "text of b", "text of c"])
    assert columns["comment_id"] == ["a", "b", "c"]
    assert columns["prob"] == predicted.prob.tolist()
    assert columns["uncertainty"] == predicted.uncertainty.tolist()
    assert columns["model_variance"] == predicted.model_variance.tolist()
    assert columns["flagged"] == [float(p) > scorer.threshold for p in predicted.prob]
    constant = ("dt", "model_version", "role", "threshold", "shard")
    assert [set(columns[name]) for name in constant] == [
        {DAY}, {"7"}, {"champion"}, {scorer.threshold}, {2}
    ]  # fmt: skip


def test_an_empty_batch_gives_no_rows(scoring_artifact: Path) -> None:
    scorer = LocalScorer(scoring_artifact, model_version="7", threads=1)
    empty = batch(["a"]).slice(0, 0)
    assert score_rows(empty, scorer, day=DAY).num_rows == 0
    assert in_shard(empty, 0, 3).num_rows == 0
