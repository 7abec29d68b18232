import traceback
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from published import real_data

from modwatch.common.errors import SourceError
from modwatch_lab.corpora import load

TRAIN = "id,target,comment_text,severe_toxicity,female,muslim,white,article_id\n"


def test_train_thresholds_target_and_identities(tmp_path):
    (tmp_path / "train.csv").write_text(
        TRAIN + "1,0.5,a,0,0.5,0.49,1.0,9\n2,0.499,b,0,0,0,0,9\n3,0,c,0,,,,9\n"
    )
    corpus = load("civil_comments", tmp_path)
    assert corpus.items["label"].to_pylist() == [1, 0, 0]
    assert corpus.items["score"].to_pylist() == [0.5, 0.499, 0.0]
    assert corpus.items["groups"].to_pylist() == [["female", "white"], [], None]


def test_all_data_calls_the_target_toxicity(tmp_path):
    path = tmp_path / "all_data.csv"
    path.write_text("id,comment_text,split,toxicity,female\n1,a,train,0.9,\n")
    assert load("civil_comments", path).items["label"].to_pylist() == [1]


def test_another_table_is_refused_with_a_hint(tmp_path):
    path = tmp_path / "comments.csv"
    path.write_text("comment_id,comment_text\n1,a\n")
    with pytest.raises(SourceError, match=r"neither a column target nor toxicity.*_spans"):
        load("civil_comments", path)


#: The file has times without a zone, which are UTC.
START = datetime(2018, 7, 11, 18, 53, 19)  # noqa: DTZ001
SCHEMA = pa.schema(
    [
        ("created_at", pa.timestamp("us")),
        ("text", pa.large_string()),
        ("scores", pa.list_(pa.int64())),
        ("country", pa.list_(pa.int64())),
    ]
)


def write(folder: Path, scores: Sequence[Sequence[int] | None], **columns: Sequence[Any]) -> Path:
    """Write a file of the published format, one comment a second."""
    rows = {
        "created_at": [START + timedelta(seconds=n) for n in range(len(scores))],
        "text": [f"text {n}" for n in range(len(scores))],
        "scores": scores,
        "country": [None] * len(scores),
        **columns,
    }
    pq.write_table(pa.table(rows, schema=SCHEMA), folder / "comments_with_ratings.parquet")
    return folder


def test_a_comment_is_toxic_if_half_of_all_ratings_say_so(tmp_path):
    votes = [[-2, -1, 1], [-1, 1], [-1, 0, 0, 0], [1, 1, -1], [-1, 1, 0]]
    corpus = load("civil_comments_cctk", write(tmp_path, votes))
    assert corpus.items["label"].to_pylist() == [1, 1, 0, 0, 0]
    assert corpus.items["score"].to_pylist() == pytest.approx([2 / 3, 1 / 2, 1 / 4, 1 / 3, 1 / 3])
    assert corpus.annotations is not None
    labels = corpus.annotations["label"].to_pylist()
    assert labels[:3] == [1, 1, 0]
    assert labels.count(None) == 4
    people = corpus.annotations["annotator_id"].to_pylist()
    assert len(set(people)) == sum(map(len, votes))


def test_comments_come_in_order_of_time_with_the_number_of_their_row(tmp_path):
    times = [START + timedelta(hours=hours) for hours in (2, 0, 1, 0)]
    corpus = load("civil_comments_cctk", write(tmp_path, [[1]] * 4, created_at=times))
    ids = ["cctk-00002", "cctk-00004", "cctk-00003", "cctk-00001"]
    assert corpus.items["comment_id"].to_pylist() == ids
    assert corpus.items["created_at"][0].as_py() == START.replace(tzinfo=UTC)


def test_comments_without_ratings_or_without_text_are_left_out_and_counted(tmp_path):
    votes = [[0, 0], [], None, [1], [1], [-1]]
    texts = ["a", "b", "c", None, "e", "f"]
    times = [*[START] * 4, None, START]
    corpus = load("civil_comments_cctk", write(tmp_path, votes, text=texts, created_at=times))
    assert corpus.items["comment_id"].to_pylist() == ["cctk-00001", "cctk-00006"]
    assert corpus.annotations["comment_id"].to_pylist() == [*["cctk-00001"] * 2, "cctk-00006"]
    assert corpus.left_out == {"no_rating": 2, "malformed_record": 2}


def test_the_country_of_each_rating_where_the_file_has_it(tmp_path):
    folder = write(tmp_path, [[1, -1], [1]], country=[[7, 3], None])
    corpus = load("civil_comments_cctk", folder)
    assert corpus.annotators["country"].to_pylist() == ["7", "3", None]


@pytest.mark.parametrize(
    ("scores", "countries", "message"),
    [
        ([[1, 2]], [None], "is not -2, -1, 0 or 1"),
        ([[1, None]], [None], "is not -2, -1, 0 or 1"),
        ([[1, 1]], [[4]], "has 2 ratings and 1 countries"),
    ],
)
def test_another_format_is_refused(tmp_path, scores, countries, message):
    with pytest.raises(SourceError, match=message):
        load("civil_comments_cctk", write(tmp_path, scores, country=countries))


def test_a_missing_column_and_a_broken_file_are_named(tmp_path):
    path = tmp_path / "comments_with_ratings.parquet"
    pq.write_table(pa.table({"text": ["private words"]}), path)
    with pytest.raises(SourceError, match="no column 'created_at', 'scores', 'country'") as caught:
        load("civil_comments_cctk", tmp_path)
    assert "private" not in str(caught.value)
    path.write_bytes(b"PAR1 no parquet")
    with pytest.raises(SourceError, match="comments_with_ratings"):
        load("civil_comments_cctk", tmp_path)


def test_the_published_file():
    corpus = load(
        "civil_comments_cctk", real_data("civil_comments_cctk/comments_with_ratings.parquet")
    )
    assert (corpus.items.num_rows, sum(corpus.items["label"].to_pylist())) == (30_000, 5_710)
    assert (corpus.annotations.num_rows, corpus.annotations["label"].null_count) == (179_477, 2_254)
    assert corpus.items["score"].to_pylist().count(0.5) == 1_054
    assert corpus.left_out == {}


def test_a_value_of_another_type_is_refused_without_being_shown(tmp_path):
    path = tmp_path / "comments_with_ratings.parquet"
    columns = {"created_at": ["private words"], "text": ["x"], "scores": [[1]], "country": [[1]]}
    pq.write_table(pa.table(columns), path)
    with pytest.raises(SourceError, match="is not readable as published") as caught:
        load("civil_comments_cctk", tmp_path)
    assert "private" not in "".join(traceback.format_exception(caught.value))
