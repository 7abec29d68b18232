import pytest
from published import real_data

from modwatch_lab.corpora import load, training_corpus
from modwatch_lab.corpora.wikipedia_talk import normalise


def test_the_three_forms_are_distinguished_by_their_columns(tmp_path):
    (tmp_path / "context_gc.csv").write_text("id,text,parent,label,api\n1.1,a,,1,0.25\n")
    (tmp_path / "toxicity_testset.csv").write_text("rev_id,comment,toxic\n7,b,True\n")
    (tmp_path / "balanced_test.csv").write_text('c,1\n"d\ne",0\n')
    (context,) = load("wikipedia_talk", tmp_path).items.to_pylist()
    assert (context["label"], context["score"], context["parent_text"]) == (1, 0.25, None)
    (test,) = load("wikipedia_talk", tmp_path / "toxicity_testset.csv").items.to_pylist()
    assert (test["comment_id"], test["label"]) == ("7", 1)
    plain = load("wikipedia_talk", tmp_path / "balanced_test.csv").items
    assert plain["text"].to_pylist() == ["c", "d\ne"]
    assert plain["comment_id"].to_pylist() == ["balanced_test-000001", "balanced_test-000002"]


def test_training_leaves_out_the_stream_repetitions_and_what_is_broken(tmp_path):
    (tmp_path / "balanced_test.csv").write_text('In the  Stream,1\nkept,1\n" KEPT",0\n')
    (tmp_path / "non_toxic_train.csv").write_text('other,0\n"cut off')
    (tmp_path / "context_gc.csv").write_text("id,text,parent,label,api\n1,in the stream,,0,0\n")
    expected = {"in_stream": 1, "duplicate": 1, "malformed_record": 1}
    for stream in (load("wikipedia_talk", tmp_path), {normalise("In the stream")}):
        found = training_corpus("wikipedia_talk", tmp_path, stream)
        assert found.texts == ("kept", "other")
        assert found.labels.tolist() == [1, 0]
        assert found.account.left_out == expected


@pytest.mark.parametrize(
    ("file", "rows", "toxic", "left_out"),
    [
        ("context_gc", 10_000, 151, {}),
        ("balanced_test", 12_180, 6090, {}),
        ("non_toxic_train", 6851, 0, {"malformed_record": 1}),
        ("toxicity_testset", 1492, 248, {}),
    ],
)
def test_published_files(file, rows, toxic, left_out):
    corpus = load("wikipedia_talk", real_data(f"wikipedia_talk/{file}.csv.gz"))
    assert (corpus.items.num_rows, sum(corpus.items["label"].to_pylist())) == (rows, toxic)
    assert corpus.left_out == left_out
    assert len(set(corpus.items["comment_id"].to_pylist())) == rows


def test_published_training_rows():
    folder = real_data("wikipedia_talk/context_gc.csv.gz").parent
    found = training_corpus("wikipedia_talk", folder, load("wikipedia_talk", folder))
    assert len(found.texts) + sum(found.account.left_out.values()) == 12_180 + 6851 + 1
    assert found.account.left_out == {"in_stream": 2, "duplicate": 6, "malformed_record": 1}
