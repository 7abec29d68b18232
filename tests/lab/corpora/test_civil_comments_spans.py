from collections import Counter

from published import real_data

from modwatch_lab.corpora import load


def test_votes_are_inverted(tmp_path):
    (tmp_path / "comments.csv").write_text("comment_id,comment_text\n5,a b\n6,c\n")
    (tmp_path / "annotations.csv").write_text(
        "annotation,comment_id,worker,country,all toxic,not toxic\n"
        "0,5,w1,USA,False,False\n1,5,w2,IND,False,True\n2,5,w1,USA,True,False\n"
    )
    corpus = load("civil_comments_spans", tmp_path)
    assert corpus.items["label"].to_pylist() == [1, None]
    assert corpus.annotations["label"].to_pylist() == [1, 0, 1]


def test_published_release():
    folder = real_data("civil_comments/comments.csv.gz").parent
    corpus = load("civil_comments_spans", folder)
    assert corpus.items.num_rows == 16_100
    assert corpus.annotations.num_rows == 59_215
    assert corpus.annotators.num_rows == 3579
    labels = Counter(corpus.items["label"].to_pylist())
    assert labels[1] / (labels[0] + labels[1]) == 11_275 / 16_071  # 30 % not toxic
