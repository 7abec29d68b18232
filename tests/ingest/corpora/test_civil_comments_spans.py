from collections import Counter

from published import real_data

from modwatch.ingest.corpora import load
from modwatch.ingest.corpora.civil_comments_spans import spans


def test_votes_are_turned_round_and_spans_joined(tmp_path):
    (tmp_path / "comments.csv").write_text("comment_id,comment_text\n5,a b\n6,c\n")
    (tmp_path / "annotations.csv").write_text(
        "annotation,comment_id,worker,country,all toxic,not toxic\n"
        "0,5,w1,USA,False,False\n1,5,w2,IND,False,True\n2,5,w1,USA,True,False\n"
    )
    (tmp_path / "spans.csv").write_text("annotation,type,start,end\n0,Insult,0,1\n2,,2,3\n")
    corpus = load("civil_comments_spans", tmp_path)
    assert corpus.items["label"].to_pylist() == [1, None]
    assert corpus.annotations["label"].to_pylist() == [1, 0, 1]
    assert spans(tmp_path)["type"].to_pylist() == ["Insult", None]
    assert spans(tmp_path)["annotator_id"].to_pylist() == ["w1", "w1"]


def test_published_release():
    folder = real_data("civil_comments/comments.csv.gz").parent
    corpus = load("civil_comments_spans", folder)
    assert corpus.items.num_rows == 16_100
    assert corpus.annotations.num_rows == 59_215
    assert corpus.annotators.num_rows == 3579
    labels = Counter(corpus.items["label"].to_pylist())
    assert labels[1] / (labels[0] + labels[1]) == 11_275 / 16_071  # 30 % not toxic
    assert spans(folder).num_rows == 46_784
