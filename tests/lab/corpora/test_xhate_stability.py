import pytest
from published import real_data

from modwatch.common.errors import SourceError
from modwatch_lab.corpora import load

HEADER = "row, condition, annotator, label1, label2\n"


def test_two_rounds_with_the_language_of_each(tmp_path):
    (tmp_path / "annotations.csv").write_text(
        HEADER + "2, en-de, ann1, Hateful, Not hateful\n2, de-de, ann2, Hateful, Hateful\n"
    )
    corpus = load("xhate_stability", tmp_path)
    votes = corpus.annotations.to_pylist()
    assert [(v["round"], v["language"], v["label"]) for v in votes] == [
        (0, "en", 1),
        (1, "de", 0),
        (0, "de", 1),
        (1, "de", 1),
    ]
    assert corpus.items.to_pylist()[0]["label"] == 1
    assert corpus.items["text"].null_count == 1
    (tmp_path / "XHate999-EN-Gao-test.txt").write_text("text\tlabel\nfirst\t1\n")
    assert load("xhate_stability", tmp_path).items["text"].to_pylist() == ["first"]


def test_another_label_is_refused(tmp_path):
    (tmp_path / "annotations.csv").write_text(HEADER + "2, en-en, ann1, Maybe, Hateful\n")
    with pytest.raises(SourceError, match="neither Hateful nor Not hateful"):
        load("xhate_stability", tmp_path)


def test_published_release_is_consistent_as_often_as_its_paper_says():
    corpus = load("xhate_stability", real_data("xhate_stability/annotations.csv.gz").parent)
    votes = corpus.annotations.to_pandas()
    rounds = votes.pivot(index=["comment_id", "annotator_id"], columns="round", values="label")
    assert rounds.shape == (2090, 2)
    assert round((rounds[0] == rounds[1]).mean(), 3) == 0.793
    assert corpus.items.num_rows == 95
    assert corpus.items["text"].null_count == 0
