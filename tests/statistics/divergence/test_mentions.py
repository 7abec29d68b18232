"""Mentions of identities, by words."""

import pandas as pd
import pytest

from modwatch.common.errors import SettingsError
from modwatch.statistics.divergence import (
    identity_mentions,
    read_identity_terms,
)

TERMS = {"women": ["woman", "women"], "black": ["black people"]}


@pytest.mark.parametrize(
    ("text", "mentioned"),
    [
        ("WOMEN", ["women"]),
        ("a woman's place", ["women"]),
        ("womenfolk, or nonwomen", []),
        ("(black people)", ["black"]),
        ("black, people", []),
        ("women and Black People", ["black", "women"]),
        ("", []),
    ],
)
def test_terms_are_whole_words_in_any_case(text, mentioned):
    found = identity_mentions([text], TERMS)
    assert sorted(name for name, inside in found.items() if inside[0]) == mentioned


def test_a_term_is_no_pattern():
    assert not identity_mentions(["abc"], {"x": ["a.c"]})["x"].any()
    assert identity_mentions(["a.c"], {"x": ["a.c"]})["x"].all()


def test_a_missing_text_mentions_nothing():
    found = identity_mentions(pd.Series(["women", None]), TERMS)
    assert found["women"].tolist() == [True, False]


def test_a_file_replaces_the_default(tmp_path):
    path = tmp_path / "terms.toml"
    path.write_text('[identities]\nfrauen = ["Frau", "Frauen"]\n')
    assert read_identity_terms(path) == {"frauen": ["Frau", "Frauen"]}
    path.write_text("[identities]\n")
    assert read_identity_terms(path) == {}


@pytest.mark.parametrize(
    "content", ["", "identities = 3", '[identities]\na = "b"', "[identities]\na = []", "[[", "\xff"]
)
def test_another_file_is_refused(tmp_path, content):
    path = tmp_path / "terms.toml"
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(SettingsError, match=r"terms\.toml"):
        read_identity_terms(path)


def test_a_file_that_does_not_exist_is_refused(tmp_path):
    with pytest.raises(SettingsError, match=r"none\.toml cannot be read"):
        read_identity_terms(tmp_path / "none.toml")
