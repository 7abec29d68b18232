from published import real_data

from modwatch_lab.corpora import load

COMMENTS = "rev_id\tcomment\tyear\tlogged_in\tns\tsample\tsplit\n"
PEOPLE = "worker_id\tgender\tenglish_first_language\tage_group\teducation\n"


def test_comments_votes_and_workers(tmp_path):
    (tmp_path / "toxicity_annotated_comments.tsv").write_text(
        COMMENTS + "10.0\tNEWLINE_TOKENaTAB_TOKENb\t2004\tTrue\tuser\tblocked\ttrain\n"
        "11.0\ttie\t2004\tTrue\tuser\tblocked\ttrain\n"
    )
    (tmp_path / "toxicity_annotations.tsv").write_text(
        "rev_id\tworker_id\ttoxicity\ttoxicity_score\n"
        "10.0\t1\t1\t-1.0\n10.0\t2\t1\t-2.0\n10.0\t3\t0\t1.0\n11.0\t1\t0.0\t0.0\n11.0\t2\t1\t-1.0\n"
    )
    (tmp_path / "toxicity_worker_demographics.tsv").write_text(PEOPLE + "1\tfemale\t1\t\ths\n")
    corpus = load("wikipedia_detox", tmp_path)
    first, tie = corpus.items.to_pylist()
    assert (first["comment_id"], first["text"], first["label"]) == ("10", "\na\tb", 1)
    assert first["score"] == 2 / 3
    assert (tie["label"], tie["score"]) == (None, 0.5)
    assert corpus.annotations["label"].to_pylist() == [1, 1, 0, 0, 1]
    assert corpus.annotators.to_pylist()[0]["age_group"] is None


def test_other_tasks_and_no_worker_table(tmp_path):
    (tmp_path / "attack_annotated_comments.tsv").write_text(COMMENTS + "1\ta\t1\tT\tu\tb\tt\n")
    (tmp_path / "attack_annotations.tsv").write_text(
        "rev_id\tworker_id\tquoting_attack\trecipient_attack\tthird_party_attack\tother_attack"
        "\tattack\n1\t5\t0\t1\t0\t0\t1.0\n"
    )
    corpus = load("wikipedia_detox", tmp_path)
    assert corpus.items["label"].to_pylist() == [1]
    assert corpus.annotators is None


def test_published_workers():
    path = real_data("wikipedia_talk/toxicity_worker_demographics.tsv.gz")
    corpus = load("wikipedia_detox", path)
    assert corpus.items.num_rows == 0
    assert corpus.annotators.num_rows == 3591
    assert corpus.annotators["age_group"].null_count == 77
