"""The comments of the benchmark: nothing is tested that was trained on, and all is counted."""

import csv
import gzip
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from modwatch.common.errors import SourceError
from modwatch.data.duplicates import near_duplicates
from modwatch_lab.benchmark.corpora import TEST_PART, benchmark_data

WORDS = ["river", "lamp", "stone", "quiet", "marble", "window", "garden", "bridge", "paper", "sun"]


def sentence(seed: int) -> str:
    return " ".join(np.random.default_rng(seed).choice(WORDS, 8)) + f" number{seed}"


def write_csv(path: Path, header: list[str], rows: list[list[object]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerows([header, *rows])


@pytest.fixture
def challenge(tmp_path):
    """The format of the challenge: one test comment is not scored, one is trained on."""
    rows = [[f"a{k}", sentence(k), int(k % 5 == 0), 0, 0, 0, 0, 0] for k in range(30)]
    header = ["id", "comment_text", "toxic", "severe_toxic", "obscene", "threat", "insult",
              "identity_hate"]  # fmt: skip
    write_csv(tmp_path / "train.csv", header, rows)
    tests = [[f"b{k}", sentence(100 + k)] for k in range(9)] + [["b9", sentence(3).upper() + "!"]]
    write_csv(tmp_path / "test.csv", ["id", "comment_text"], tests)
    labels = [[f"b{k}", -1 if k == 8 else int(k % 3 == 0)] + [0] * 5 for k in range(10)]
    write_csv(tmp_path / "test_labels.csv", ["id", *header[2:]], labels)
    return tmp_path


@pytest.fixture
def civil(tmp_path):
    """The format of CivilComments; the shares of raters are 0.5, 0.7 and 0.8."""
    shares = [0.5, 0.7, 0.8, 0.0]
    path = tmp_path / "all_data.csv"
    rows = [[k, sentence(200 + k), shares[k % 4]] for k in range(8)]
    write_csv(path, ["id", "comment_text", "toxicity"], rows)
    return path


def test_synthetic_comments_need_no_data(data):
    assert len(data.in_domain.texts) == len(data.out_of_domain.texts) == 300
    assert [*data.in_domain.left_out] == ["not_drawn"]
    assert data.in_domain.prevalence == data.in_domain.labels.mean()


def test_no_training_comment_is_a_duplicate_of_a_tested_one(data):
    tested = data.in_domain.texts + data.out_of_domain.texts
    assert not near_duplicates(data.train.texts, tested).any()
    counted = sum(data.train.left_out.values())
    assert len(data.train.texts) + counted == 20_000
    assert data.train.left_out["near_duplicates_of_tested_comments"] > 0


def test_the_complete_corpora(challenge, civil):
    found = benchmark_data(wikipedia=challenge, civil_comments=civil)
    assert len(found.train.texts) == 29
    assert found.train.left_out == {"exact_duplicates_of_tested_comments": 1}
    assert len(found.in_domain.texts) == 9
    assert found.in_domain.left_out == {"not_scored": 1}
    assert (found.in_domain.weights == 1).all()
    assert found.out_of_domain.labels.tolist() == [0, 0, 1, 0] * 2


def test_the_published_parts(tmp_path):
    for name in ("jigsaw2018", "wikipedia_talk", "civil_comments_cctk"):
        (tmp_path / name).mkdir()
    texts = [sentence(k) for k in range(30)]
    table = {"text": texts, "any_toxic": [1] * 3 + [0] * 27, "toxic": [None, 0] + [1] + [0] * 27}
    pq.write_table(pa.table(table), tmp_path / "jigsaw2018" / "train.parquet")
    rows = [f"{sentence(50 + k)},{k % 2}\n" for k in range(20)]
    (tmp_path / "wikipedia_talk" / "balanced_test.csv.gz").write_bytes(
        gzip.compress("".join(rows).encode())
    )
    rated = {
        "created_at": pa.array(list(range(10)), pa.timestamp("us")),
        "text": [sentence(80 + k) for k in range(10)],
        "scores": [[-1, -1, -1, 1] if k < 5 else [-1, 1] for k in range(10)],
        "country": pa.nulls(10, pa.list_(pa.int64())),
    }
    pq.write_table(
        pa.table(rated), tmp_path / "civil_comments_cctk" / "comments_with_ratings.parquet"
    )
    found = benchmark_data(folder=tmp_path)
    assert found.train.labels[:3].tolist() == [1, 0, 1]  # `toxic`; `any_toxic` where unknown
    assert found.in_domain.prevalence == pytest.approx(TEST_PART[1] / TEST_PART[0])
    assert found.out_of_domain.labels.tolist() == [1] * 5 + [0] * 5


def test_the_digest_follows_every_part(data):
    other = benchmark_data("synthetic", train_examples=700, test_examples=301)
    assert data.digest != other.digest
    assert len(data.digest) == 64


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"name": "others"}, "--data must be published or synthetic"),
        ({"name": "synthetic", "wikipedia": Path("x")}, "--data synthetic reads no files"),
        ({"folder": Path("/nowhere")}, "/nowhere/jigsaw2018/train.parquet does not exist"),
        ({"wikipedia": Path("/nowhere")}, "/nowhere contains no train.csv"),
        ({"name": "synthetic", "test_examples": 1}, "are all of one class"),
        ({"name": "synthetic", "train_examples": 0}, "--train-examples must be at least 1"),
    ],
)
def test_what_cannot_be_is_one_sentence(given, message):
    with pytest.raises(SourceError, match=message):
        benchmark_data(**given)  # type: ignore[arg-type]
