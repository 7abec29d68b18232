"""Labelled texts from files and databases."""

import json
import sqlite3
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from modwatch.common.errors import SourceError
from modwatch.data.sources.labelled import LabelColumns, read_labelled


def written(path: Path, text: str) -> Path:
    path.write_text(text, "utf-8")
    return path


def test_every_format_gives_the_same(tmp_path: Path) -> None:
    rows = pd.DataFrame({"text": ["one", "two", "three"], "label": [1, 0, 1]})
    rows.to_csv(tmp_path / "a.csv", index=False)
    rows.to_csv(tmp_path / "a.tsv", index=False, sep="\t")
    rows.to_parquet(tmp_path / "a.parquet")
    rows.to_json(tmp_path / "a.jsonl", orient="records", lines=True)
    with sqlite3.connect(tmp_path / "a.db") as database:
        rows.to_sql("comment", database)
    sources = [(tmp_path / f"a.{suffix}", None) for suffix in ("csv", "tsv", "parquet", "jsonl")]
    sources += [(f"sqlite:///{tmp_path / 'a.db'}", "SELECT text, label FROM comment")]
    for source, query in sources:
        found = read_labelled([source], query=query)
        assert found.texts == ("one", "two", "three")
        assert found.labels.tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("label", "share"),
    [
        (0.25, 0.25),
        ("0.25", 0.25),
        (True, 1.0),
        ("False", 0.0),
        ([1, 0, 0, 1], 0.5),
        ([True, None, False], 0.5),
        ("[1, 1, 0, 1]", 0.75),
    ],
)
def test_labels_shares_and_votes(label: object, share: float, tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", json.dumps({"text": "x", "label": label}))
    assert read_labelled([path]).labels.tolist() == [share]


def test_words_for_toxic(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", "body,class\nx,hate\ny,fine\nz,HATE \n")
    columns = LabelColumns(text="body", label="class", toxic_values=frozenset({"hate"}))
    assert read_labelled([path], columns=columns).labels.tolist() == [1, 0, 1]


def test_one_row_a_vote(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", "id,text,label\n1,x,1\n2,y,0\n1,x,0\n1,x,1\n")
    found = read_labelled([path], columns=LabelColumns(comment_id="id"))
    assert found.texts == ("x", "y")
    assert found.labels == pytest.approx([2 / 3, 0])


def test_languages_are_kept(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", "text,label,lang\nx,1,de\ny,0,\n")
    found = read_labelled([path], columns=LabelColumns(language="lang"))
    assert found.languages == ("de", "")


def test_rows_without_text_or_label_are_counted(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", 'text,label\n"x",1\n ,1\ny,\nonly one\n"open,1\n')
    found = read_labelled([path])
    assert found.texts == ("x",)
    assert found.left_out == {"no_text": 1, "no_label": 1, "malformed_record": 2}


def test_several_files_are_read_in_order(tmp_path: Path) -> None:
    paths = [written(tmp_path / f"{name}.csv", f"text,label\n{name},0\n") for name in "ba"]
    assert read_labelled(paths).texts == ("b", "a")


@pytest.mark.parametrize("label", ["5", "-1", "nan", "maybe", "private words", "[2]", "[", "{}"])
def test_a_label_outside_the_classes_is_named_by_its_row_only(label: str, tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", f'text,label\nx,1\ny,"{label}"\nz,"{label}"\n')
    with pytest.raises(SourceError, match=r"2 rows \(the first: a\.csv, line 3\)") as caught:
        read_labelled([path])
    assert "private" not in str(caught.value)


@pytest.mark.parametrize("column", ["text", "label"])
def test_a_missing_column_is_named(column: str, tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", f"{column},other\n")
    missing = "label" if column == "text" else "text"
    with pytest.raises(SourceError, match=f"no column '{missing}'.*--{missing}-column"):
        read_labelled([path])


def test_a_database_needs_a_query_and_shows_no_password(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="--query"):
        read_labelled(["sqlite:///x.db"])
    with pytest.raises(SourceError, match="OperationalError") as caught:
        read_labelled([f"sqlite:///{tmp_path}/x.db"], query="SELECT secret FROM nowhere")
    assert "secret" not in str(caught.value)
    with pytest.raises(SourceError, match="The driver of who://x/ cannot be loaded"):
        read_labelled(["who://knows:secret@x"], query="SELECT 1")


def test_an_empty_file_has_no_rows(tmp_path: Path) -> None:
    found = read_labelled([written(tmp_path / "a.csv", "text,label\n")])
    assert (found.texts, np.asarray(found.labels).size) == ((), 0)
