"""Texts that repeat an earlier one."""

import subprocess
import sys

import pytest

from modwatch.common.text import ERASED
from modwatch.data.duplicates import repeated

SPAM = "Buy the best watches of the whole town here today and tomorrow, at shop {} or {}!"


def test_variants_of_spam_are_copies_of_the_first_and_of_nothing_else():
    texts = ["An honest opinion about the weather in the mountains.", SPAM.format(1, 1)]
    texts += [SPAM.format(number, number) for number in range(2, 50)]
    texts += [SPAM.upper().replace("!", " ;-)"), "Another honest opinion."]
    assert repeated(texts).tolist() == [False, False, *[True] * 48, True, False]


def test_who_quotes_a_comment_and_adds_an_insult_repeats_nothing():
    quoted = SPAM.format(1, 1)
    answer = f"{quoted} Whoever wrote this is as stupid as the whole rest of their family is."
    assert repeated([quoted, answer]).tolist() == [False, False]


@pytest.mark.parametrize("text", ["", " \t", "!!!", "\U0001f600", ERASED])
def test_texts_without_words_and_erased_ones_repeat_nothing(text):
    assert not repeated([text] * 3).any()


def test_short_texts_are_compared_as_a_whole():
    texts = ["lol", "LOL!", "lol no", "no lol", "\ud800 lol", "lol\0"]
    assert repeated(texts).tolist() == [False, True, False, False, True, True]


def test_every_process_finds_the_same():
    texts = [*(SPAM.format(n, n % 3) for n in range(60)), "x y z", "x y z w"]
    code = f"from modwatch.data.duplicates import repeated\nprint(repeated({texts!r}).tolist())"
    found = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONHASHSEED": "1"}, capture_output=True, check=True, text=True,
    )  # fmt: skip
    assert found.stdout == f"{repeated(texts).tolist()}\n"
