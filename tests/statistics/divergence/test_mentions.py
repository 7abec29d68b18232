"""AUCs of identity mentions, against the published definition by pairs."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from modwatch.common.errors import MetricInputError, SettingsError
from modwatch.statistics.divergence import (
    bnsp_auc,
    bpsn_auc,
    identity_mentions,
    read_identity_terms,
    subgroup_auc,
)

ROWS = st.lists(
    st.tuples(
        st.integers(0, 1), st.sampled_from([0.1, 0.4, 0.6, 0.9]), st.booleans(), st.integers(1, 3)
    ),
    min_size=1,
    max_size=25,
)


@given(rows=ROWS)
def test_they_are_shares_of_pairs(rows):
    y, p, m, w = (np.array(column) for column in zip(*rows, strict=True))

    def share(positive: np.ndarray, negative: np.ndarray) -> float | None:
        up, down = p[positive][:, None], p[negative][None, :]
        pairs = w[positive][:, None] * w[negative][None, :]
        won = (up > down) + 0.5 * (up == down)
        return float((won * pairs).sum() / pairs.sum()) if pairs.size else None

    parts = {
        subgroup_auc: ((y == 1) & m, (y == 0) & m),
        bpsn_auc: ((y == 1) & ~m, (y == 0) & m),
        bnsp_auc: ((y == 1) & m, (y == 0) & ~m),
    }
    for metric, (positive, negative) in parts.items():
        wanted = share(positive, negative)
        found = metric(y, p, m, sample_weight=w)
        assert found == (None if wanted is None else pytest.approx(wanted))


def test_bad_mentions_are_named():
    with pytest.raises(MetricInputError, match="mentions contains values other than 0 and 1"):
        subgroup_auc([0, 1], [0.1, 0.9], [0.5, 1])
    with pytest.raises(MetricInputError, match="inconsistent numbers"):
        bpsn_auc([0, 1], [0.1, 0.9], [True])


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
