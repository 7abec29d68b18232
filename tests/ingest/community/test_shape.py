import datetime as dt

import numpy as np
import pytest

from modwatch.ingest.community.shape import authors, comment_ids, parse_id, threads

DAY = dt.date(2024, 3, 1)


def test_ids_tell_their_day_and_row():
    assert [parse_id(c) for c in comment_ids(DAY, 9_999_999, 2)] == [
        ("c", DAY, 9_999_999),
        ("c", DAY, 10_000_000),
    ]


@pytest.mark.parametrize(
    "wrong", ["", "c1", "c20240301-", "a20240301-0000001", "c20240230-0000001"]
)
def test_other_ids_are_none(wrong):
    with pytest.raises(ValueError):  # noqa: PT011 – the caller says what it means
        parse_id(wrong)


def test_answers_come_after_what_they_answer_and_share_its_thread():
    roots, parents = threads(500, np.random.default_rng(0))
    for i, parent in enumerate(parents):
        assert roots[i] == (i if parent is None else roots[parent])
        assert parent is None or i - 20 <= parent < i
    assert 0.5 < np.mean([parent is not None for parent in parents]) < 0.7


def test_a_few_authors_write_most():
    _, counts = np.unique(authors(10_000, np.random.default_rng(0)), return_counts=True)
    assert np.sort(counts)[::-1][:200].sum() > 3_000
