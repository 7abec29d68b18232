import html
import re
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from modwatch.review.console.text_rendering import excerpt, fold, mark_invisible

HIDDEN = st.sampled_from("\u202e\u202d\u2066\u200b\u200d\xad\ufeff\x07\U000e0041")
TEXTS = st.lists(st.characters(exclude_categories=["Cs"]) | HIDDEN | st.sampled_from("<&\"'"))


def without_marks(page: str) -> str:
    return html.unescape(re.sub(r'<span class="mark"[^>]*>[^<]*</span>', "", page))


@given(TEXTS.map("".join))
def test_nothing_that_is_seen_is_lost_and_nothing_that_turns_text_is_left(text):
    shown = mark_invisible(text)
    left = without_marks(shown)
    assert not re.search("[\u202a-\u202e\u2066-\u2069]", shown)
    assert "<" not in re.sub(r"</?span[^>]*>", "", shown)
    seen = [sign for sign in text if unicodedata.category(sign) not in ("Cc", "Cf", "Zl", "Zp")]
    kept = [sign for sign in left if unicodedata.category(sign) not in ("Cc", "Cf", "Zl", "Zp")]
    assert [sign for sign in seen if sign in kept] == kept


def test_joiners_stay_where_they_belong():
    assert mark_invisible("می\u200cخواهم") == "می\u200cخواهم"
    assert "ZWNJ" in mark_invisible("pass\u200cword")


def test_long_runs_are_counted():
    assert "×40" in mark_invisible("\u200b" * 40)


RUNS = st.tuples(st.sampled_from(["ab", "a ", " ", "\n", "b\n", "<"]), st.integers(1, 6_000))


@given(st.lists(RUNS, min_size=1, max_size=20))
def test_a_fold_loses_nothing(runs):
    text = "".join(signs * times for signs, times in runs)
    parts = fold(text)
    whole = html.unescape("".join([parts.head, *parts.rest]))
    assert whole.replace("\n", "") == text.replace("\n", "")
    assert parts.length == len(text)
    assert len(parts.head) < 5 * 5_001


def test_usual_comments_are_not_folded():
    assert fold("x" * 5_000).rest == ()
    assert fold("x" * 5_001).rest
    assert fold("\n" * 300).rest


def test_an_excerpt_is_one_line():
    assert excerpt("one\n two " + "x" * 200) == "one two " + "x" * 71 + "…"
