import pytest

from modwatch.errors import SourceError
from modwatch.ingest.corpora import LOADERS, load, training_corpus


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
