"""What a day has lost: values of optional columns, and rows that are all of one kind."""

import pytest


def outcome(checked, name):
    [rule] = (rule for rule in checked.result.results if rule.name == name)
    return rule


def test_values_that_could_not_be_read_are_counted_by_column_and_reason(landed, validate):
    faults = [["language: malformed_language"]] * 3 + [["views: unreadable_views"]] + [None] * 96
    texts = [" ", *["fine"] * 99]

    checked = validate(landed(100, faults=faults, text=texts))

    assert checked.result.left_out == {
        "language: malformed_language": 2,
        "views: unreadable_views": 1,
    }
    rule = outcome(checked, "values_left_out")
    assert (rule.passed, rule.severity) == (False, "warning")
    assert outcome(validate(landed(100, faults=faults[2:] + [None] * 2)), rule.name).passed


LOST = {
    "language": {"language": ["el"] * 5 + ["en"] * 95},
    "label": {"label": [1] * 5 + [0] * 95},
    "file": {"origin": [f"b.csv:{n}" for n in range(5)] + [f"a.csv:{n}" for n in range(95)]},
}


@pytest.mark.parametrize("kind", LOST)
def test_a_group_that_loses_all_its_rows_fails_the_day(landed, validate, kind):
    """Five of a hundred rows: the share alone would pass."""
    lost = [" "] * 5 + ["fine"] * 95

    checked = validate(landed(100, text=lost, **LOST[kind]))

    rule = outcome(checked, "concentrated_loss")
    assert not rule.passed
    assert rule.observed.startswith(f"100 % of 5 rows of {kind} ")
    assert checked.result.rejected
    spread = [" " if n % 20 == 0 else "fine" for n in range(100)]
    assert outcome(validate(landed(100, text=spread, **LOST[kind])), rule.name).passed


def test_rows_whose_comment_is_kept_elsewhere_are_no_loss(landed, validate):
    """A file that is delivered again with other numbers of views."""
    ids = [f"c{n}" for n in range(95)] + [f"c{n}" for n in range(5)]
    origin = [f"a.csv:{n}" for n in range(95)] + [f"b.csv:{n}" for n in range(5)]

    checked = validate(landed(100, comment_id=ids, views=range(100), origin=origin))

    assert checked.result.quarantined == {"duplicate_id": 5}
    assert outcome(checked, "concentrated_loss").passed
