from modwatch_lab.corpora.corpus import ITEMS, Corpus, annotator_table, table


def test_a_corpus_does_not_show_its_texts():
    items = table(ITEMS, [{"comment_id": "1", "text": "private words"}])
    assert "private" not in repr(Corpus(name="c", items=items))


def test_empty_answers_are_null_and_contradicting_ones_are_both_kept():
    rows = [
        {"annotator_id": "a", "age": "30", "country": ""},
        {"annotator_id": "a", "age": "31", "country": None},
        {"annotator_id": "b", "age": "30", "country": "X"},
    ]
    assert annotator_table(rows, ["age", "country"]).to_pylist() == [
        {"annotator_id": "a", "age": "30|31", "country": None},
        {"annotator_id": "b", "age": "30", "country": "X"},
    ]
