import pytest

from modwatch.common.errors import SourceError
from modwatch.data.sources.corpora import load

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
