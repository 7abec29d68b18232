import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modwatch.common.errors import QueueError
from modwatch.review.people.pseudonyms import skeletons, usable_pseudonym

LOOK_ALIKES = [
    ("ann", "Ann"),
    ("ann", "аnn"),  # Cyrillic а
    ("HANNA", "ΗΑΝΝΑ"),  # Greek
    ("hanna", "ΗΑΝΝΑ"),
    ("scope", "ѕсоре"),  # Cyrillic throughout
    ("ann", "ａｎｎ"),  # full width
    ("ann", "𝐚𝐧𝐧"),  # mathematical
    ("ann", "ánn"),
    ("bill", "bi11"),
    ("bill", "biIl"),
    ("robot", "r0b0t"),
    ("modern", "modem"),
    ("ann-lee", "ann\u2010lee"),
    ("ann  lee", "ann lee"),
    ("straße", "STRASSE"),
    ("viko", "νικο"),
]
DIFFERENT = [
    ("ann", "anna"),
    ("ann", "ben"),
    ("m1", "m2"),
    ("कि", "की"),
    ("สมชาย", "สมหญิง"),
    ("ann lee", "annlee"),
]


def test_look_alikes_share_a_skeleton_and_different_names_stay_apart():
    for name, other in LOOK_ALIKES:
        assert skeletons(name) & skeletons(other), other
    for name, other in DIFFERENT:
        assert not skeletons(name) & skeletons(other), other


@given(st.text(max_size=30))
def test_case_and_form_do_not_make_a_name_new(name):
    for other in (unicodedata.normalize("NFD", name), unicodedata.normalize("NFKC", name)):
        assert skeletons(other) & skeletons(name)


@given(st.text(alphabet="abcdefghjkmpqstuxyz", min_size=1))
def test_plain_letters_are_taken_as_they_stand(name):
    assert skeletons(name) == {name}


def test_names_that_cannot_be_read_are_refused():
    for name in (
        "", " ", " ann", "ann ", "a\nb", "a\0", "\ud800", "x" * 101,
        "a\u202eb", "a\u2066b", "a\u200bb", "a\u200db", "a\u00adb", "\ufeffann", "a\u00a0b",
        "a\u3164b", "a\u115fb", "a\u034fb", "a\ufe0fb", "a\u2800b", "a\U000e0100b", "a\U000e0041b",
    ):  # fmt: skip
        with pytest.raises(QueueError, match="choose another"):
            usable_pseudonym(name)


@given(st.text(min_size=1, max_size=30))
def test_usable_names_are_stable(name):
    try:
        stored = usable_pseudonym(name)
    except QueueError:
        return
    assert usable_pseudonym(stored) == stored
    stored.encode()
