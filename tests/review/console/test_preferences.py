from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from modwatch.review.console.preferences import ACTIONS, Preferences, preferences_of


@pytest.mark.parametrize(
    "wrong",
    [
        {"keys": {"fine": "t"}},
        {"keys": {"fine": "T"}},
        {"keys": {"fine": "1"}},
        {"keys": {"fine": " "}},
        {"keys": {"fine": "\u202e"}},
        {"keys": {"fine": "ab"}},
        {"keys": {"unknown": "a"}},
        {"timezone": "../../etc/passwd"},
        {"budget": 0},
        {"theme": "pink"},
        {"unknown": 1},
    ],
)
def test_impossible_choices_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Preferences.model_validate(wrong)


def test_keys_may_be_exchanged() -> None:
    swapped = Preferences(keys={"fine": "t", "toxic": "n"})
    assert (swapped.all_keys["fine"], swapped.all_keys["toxic"]) == ("t", "n")


@given(st.dictionaries(st.sampled_from(sorted(ACTIONS)), st.characters()))
def test_no_key_does_two_things(keys: dict[str, str]) -> None:
    try:
        chosen = Preferences(keys=keys)
    except ValidationError:
        return
    assert len(set(chosen.all_keys.values())) == len(ACTIONS)


@given(st.dictionaries(st.sampled_from([*Preferences.model_fields, "x"]), st.none() | st.text()))
def test_whatever_is_stored_can_be_read(stored: dict[str, Any]) -> None:
    assert preferences_of(stored).all_keys
