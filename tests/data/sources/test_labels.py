"""Labels as they are compared and shown."""

import numpy as np
import pytest

from modwatch.data.sources.labels import label_of, numbers_of, shown_label


@pytest.mark.parametrize(
    ("one", "two"),
    [("1", "1.0"), ("1", 1), (True, "true"), (np.float64(2), "2"), (1, np.int8(1)), (b"a", "a")],
)
def test_types_of_a_label_are_one(one, two):
    first, second = label_of(one)[0], label_of(two)[0]
    assert first is not None
    assert second is not None
    assert first.casefold() == second.casefold()


def test_codes_with_an_underscore_are_no_numbers():
    assert [label_of(code)[0] for code in ("1_1", "11", "2_1")] == ["1_1", "11", "2_1"]
    assert numbers_of(["1_1", "2"]) == []


@pytest.mark.parametrize("label", ["toxic\u200b", "t\u043exic", "a\nb", "\u202etoxic"])
def test_characters_that_hide_are_shown(label):
    assert shown_label(label).isprintable()
    assert shown_label(label) != f"'{label}'"
