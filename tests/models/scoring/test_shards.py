import datetime
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from modwatch.data.lake.day_scores import day_scores
from modwatch.data.lake.delta import Lake
from modwatch.data.lake.schemas import COMMENTS, SCORES, STAGED_SCORES
from modwatch.models.scoring.local import LocalScorer
from modwatch.models.scoring.scorer import PLAIN, Predictions
from modwatch.models.scoring.shards import (
    ScoresOnce,
    digests,
    own_scores,
    own_version,
    pieces,
    score_rows,
    shards,
    staged,
    subwords,
)
from modwatch.statistics.collaboration import review_strategies
from modwatch.statistics.collaboration.review_strategies import REVIEW_SCORES, ReviewScore

DAY = datetime.date(2026, 1, 5)


def batch(ids: list[str]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"comment_id": ids, "text": [f"text of {i}" for i in ids]})


def day_of(lengths: list[int]) -> list[pa.RecordBatch]:
    """Return a day of texts of these lengths, every second row of the source, in two batches."""
    rows = [{"row": 2 * n, "text": "a" * length} for n, length in enumerate(lengths)]
    schema = pa.schema([("row", pa.int64()), ("text", pa.string())])
    return [pa.RecordBatch.from_pylist(part, schema) for part in (rows[1::2], rows[::2])]


@given(st.lists(st.integers(0, 5_000), max_size=60), st.integers(1, 20_000))
def test_each_comment_is_in_exactly_one_shard(lengths, shard_tokens):
    day = day_of(lengths)
    found = shards(day, shard_tokens=shard_tokens)
    assert [row for rows in found for row in rows] == list(
        range(2 * len(lengths) - 1 if lengths else 0)
    )
    assert all(any(row % 2 == 0 for row in rows) for rows in found)


@given(st.lists(st.integers(0, 5_000), min_size=1, max_size=60), st.integers(1, 20_000))
def test_as_many_shards_as_the_day_has_subwords_for(lengths, shard_tokens):
    day = day_of(lengths)
    size = subwords(pa.array(["a" * length for length in lengths]))
    found = shards(day, shard_tokens=shard_tokens)
    assert len(found) <= np.ceil(size.sum() / shard_tokens)
    even = size.sum() / min(len(lengths), np.ceil(size.sum() / shard_tokens))
    # Bounds fall between comments: a shard is off by one comment at either end.
    assert all(
        size[rows.start // 2 : -(-rows.stop // 2)].sum() <= even + 2 * size.max() for rows in found
    )


def test_the_texts_of_a_day_are_not_kept():
    before, most = pa.total_allocated_bytes(), 0

    def day() -> Iterator[pa.RecordBatch]:
        nonlocal most
        for number in range(20):
            rows = range(1_000 * number, 1_000 * (number + 1))
            yield pa.RecordBatch.from_pydict({"row": rows, "text": ["a" * 1_000] * 1_000})
            most = max(most, pa.total_allocated_bytes() - before)

    assert len(shards(day(), shard_tokens=10**6)) == 6
    assert most < 5_000_000  # a batch has one million, the day 20


def test_a_huge_day_has_no_more_shards_than_airflow_maps():
    assert len(shards(day_of([40] * 3_000), shard_tokens=1)) == 1_000


@given(st.integers(0, 10**6), st.integers(1, 10**5))
def test_the_pieces_of_a_shard_are_its_comments(first, size):
    parts = pieces(range(first, first + size))
    assert list(parts) == list(range(len(parts)))
    assert [place for rows in parts.values() for place in rows] == [*range(first, first + size)]


class Counting:
    """A scorer that keeps what it was asked."""

    model_version, threshold, columns = "7", 0.5, PLAIN

    def __init__(self) -> None:
        self.asked: list[str] = []

    def score(self, texts: Sequence[str]) -> Predictions:
        self.asked += texts
        return Predictions.of(np.array([len(text) / 100 for text in texts]))


@given(st.lists(st.lists(st.text(max_size=3), max_size=9), max_size=5))
def test_equal_texts_of_a_shard_are_scored_once(batches):
    counting, direct = Counting(), Counting()
    once = ScoresOnce(counting)
    for texts in batches:
        assert once.score(texts).values.tolist() == direct.score(texts).values.tolist()
    assert sorted(counting.asked) == sorted({text for texts in batches for text in texts})


@given(st.lists(st.tuples(st.text(), st.text()), unique=True, min_size=1))
def test_comments_have_digests_of_their_own_whatever_the_batch(rows):
    columns = [pa.array(column, pa.string()) for column in zip(*rows, strict=True)]
    day = pa.RecordBatch.from_arrays(columns, ["comment_id", "text"])
    found = digests(day)
    assert len({*found.tolist()}) == len(rows)
    assert found.tolist() == [digests(day.slice(k, 1))[0] for k in range(len(rows))]


def test_rows_of_scores_follow_the_schema_and_the_predictions(scoring_artifact):
    scorer = LocalScorer(scoring_artifact, model_version="7", threads=1)
    comments = batch(["a", "b", "c"])
    digest = digests(comments)
    rows = staged(score_rows(comments, scorer, day=DAY), shard=2, piece=3, digest=digest)
    assert rows.schema == STAGED_SCORES
    columns = rows.to_pydict()
    predicted = scorer.score(["text of a", "text of b", "text of c"])
    assert columns["comment_id"] == ["a", "b", "c"]
    assert columns["digest"] == digest.tolist()
    assert columns["prob"] == predicted.prob.tolist()
    assert columns["uncertainty"] == predicted.uncertainty.tolist()
    assert columns["model_variance"] == predicted.further["model_variance"].tolist()
    assert columns["flagged"] == [float(p) > scorer.threshold for p in predicted.prob]
    constant = ("dt", "model_version", "role", "threshold", "shard", "piece")
    assert [set(columns[name]) for name in constant] == [
        {DAY}, {"7"}, {"champion"}, {scorer.threshold}, {2}, {3}
    ]  # fmt: skip


def test_a_comment_that_was_cut_is_stored_as_uncertain(scoring_artifact):
    scorer = LocalScorer(scoring_artifact, model_version="7", threads=1)
    texts = ["river", "river " * 200_000]
    comments = pa.RecordBatch.from_pydict({"comment_id": ["a", "b"], "text": texts})
    rows = score_rows(comments, ScoresOnce(scorer), day=DAY).to_pydict()
    assert rows["cut"] == [False, True]
    assert rows["uncertainty"][1] == 0.25


def test_an_empty_batch_gives_no_rows(scoring_artifact):
    scorer = LocalScorer(scoring_artifact, model_version="7", threads=1)
    empty = batch(["a"]).slice(0, 0)
    assert score_rows(empty, scorer, day=DAY).num_rows == 0


def comments(*rows: dict[str, object]) -> pa.RecordBatch:
    plain = {
        "dt": DAY,
        "created_at": datetime.datetime(2026, 1, 5, tzinfo=datetime.UTC),
        "text": "words",
    }
    named = [{"comment_id": f"c{number}", **plain, **row} for number, row in enumerate(rows)]
    return pa.RecordBatch.from_pylist(named, schema=COMMENTS)


def test_scores_are_taken_as_they_are():
    batch = comments(
        {"prob": 0.9, "model_version": "v7", "flagged": False},
        {"prob": 0.25, "model_version": "v7", "flagged": True},
    )
    scores = own_scores(batch, day=DAY)
    assert scores.schema == SCORES
    assert scores.column("flagged").to_pylist() == [False, True]
    assert scores.column("prob").to_pylist() == [np.float32(0.9), 0.25]
    assert np.allclose(scores.column("uncertainty").to_numpy(), [0.09, 0.1875])
    for name in ("model_variance", "mutual_information"):
        assert scores.column(name).null_count == 2
    assert scores.column("threshold").null_count == 2
    assert set(scores.column("model_version").to_pylist()) == {"v7"}
    assert set(scores.column("role").to_pylist()) == {"champion"}


def test_a_missing_probability_is_left_to_validation():
    scores = own_scores(comments({"model_version": "v7", "flagged": False}), day=DAY)
    assert np.isnan(scores.column("prob").to_numpy()).all()


def test_the_first_comment_tells_who_scored_the_day():
    empty, row = comments(), comments({"model_version": "v7"})
    assert own_version([empty, row]) == "v7"
    assert own_version([comments({})]) is None
    assert own_version([empty]) is None
    assert own_version([]) is None


class Doubting(Counting):
    """A scorer of a platform with a column of its own."""

    columns = (*PLAIN, "doubt", "unwanted")

    def score(self, texts: Sequence[str]) -> Predictions:
        doubt = np.array([len(text) / 50 for text in texts])
        return Predictions.of(doubt / 2, {"doubt": doubt, "unwanted": doubt})


def test_the_lake_keeps_the_columns_that_review_scores_need(tmp_path, monkeypatch):
    """From the day on which one needs it; what was stored before has none."""
    lake, comments = Lake(root=str(tmp_path)), batch(["a", "bb"])
    lake.replace("scores", DAY, [score_rows(comments, Counting(), day=DAY)])
    score = ReviewScore(**{**vars(REVIEW_SCORES["toxicity"]), "name": "own", "needs": ("doubt",)})
    scores = {**REVIEW_SCORES, "own": score}
    monkeypatch.setattr(review_strategies, "all_review_scores", lambda: scores)
    assert "doubt" not in day_scores(lake, DAY).columns
    later = DAY + datetime.timedelta(days=1)
    rows = score_rows(comments, ScoresOnce(Doubting()), day=later)
    assert rows.schema.names == [*SCORES.names, "doubt"]
    lake.replace("staged_scores", later, [staged(rows, shard=0, piece=0, digest=digests(comments))])
    lake.replace("scores", later, lake.read("staged_scores", later, columns=rows.schema.names))
    found = day_scores(lake, later)
    assert found.columns["doubt"].tolist() == (2 * found.prob).tolist()
    assert "doubt" not in day_scores(lake, DAY).columns
    monkeypatch.undo()  # the package is no longer installed
    assert "doubt" not in day_scores(lake, later).columns
    lake.replace("scores", later, [score_rows(comments, Counting(), day=later)])
    assert lake.count("scores", later) == 2
