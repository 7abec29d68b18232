import pytest

from modwatch.common.errors import SourceError
from modwatch.statistics.disagreement import Annotations
from modwatch_lab.corpora import LOADERS, Corpus, load, long_table, training_corpus


def test_an_unknown_name_lists_those_there_are(tmp_path):
    with pytest.raises(SourceError, match="Corpus 'reddit' does not exist; use one of civil_com"):
        load("reddit", tmp_path)


@pytest.mark.parametrize("name", LOADERS)
def test_every_loader_names_what_it_misses_in_an_empty_folder(tmp_path, name):
    with pytest.raises(SourceError, match=r"contains no .*; use the folder with the published"):
        load(name, tmp_path)


def test_a_path_that_is_not_there(tmp_path):
    with pytest.raises(SourceError, match="gone does not exist"):
        load("sbic", tmp_path / "gone")


def test_only_one_corpus_has_a_training_part(tmp_path):
    with pytest.raises(SourceError, match="'sbic' has no training part; use wikipedia_talk"):
        training_corpus("sbic", tmp_path, set())


def test_a_long_table_has_the_labels_in_the_order_in_which_they_were_given():
    votes = [
        {"comment_id": "c", "annotator_id": "ann", "label": 1, "round": 1},
        {"comment_id": "c", "annotator_id": "ann", "label": 0, "round": 0},
        {"comment_id": "c", "annotator_id": "bob", "label": None, "round": 0},
    ]
    table = long_table(Corpus.from_rows("some", {}, [{"comment_id": "c", "text": ""}], votes))
    assert table.to_dict("list") == {
        "item": ["c", "c"],
        "annotator": ["ann", "ann"],
        "label": [0, 1],
        "round": [0, 1],
    }
    assert table.attrs["unsure"] == 1
    annotations = Annotations.from_columns(**table[["item", "annotator", "label"]])
    assert annotations.retests.differ.tolist() == [True]


def test_a_corpus_without_single_annotations_has_no_long_table():
    with pytest.raises(SourceError, match="some has no annotations by single annotators"):
        long_table(Corpus.from_rows("some", {}, [{"comment_id": "c", "text": ""}]))
