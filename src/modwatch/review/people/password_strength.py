"""Which passwords are too easy to guess, by the estimate of zxcvbn.

Wheeler, D. L. (2016), "zxcvbn: Low-Budget Password Strength Estimation", USENIX Security. The
library carries a list of the 30,000 passwords that leaks contain most often, English words, names,
keyboard rows, sequences and dates. Limitation: words of other languages count as random letters, so
the bound is the highest of the library, 10^10 guesses.
"""

import re
import threading
import unicodedata
from collections.abc import Sequence
from typing import Any

from zxcvbn import zxcvbn

from modwatch.common.errors import WeakPasswordError

#: zxcvbn's grade from 0 to 4; 4 means 10^10 guesses or more.
WEAKEST_GRADE = 4

#: Characters that are judged: the time grows steeply with the length, up to 0.5 s for these. A
#: password whose beginning is hard to guess is hard to guess.
_JUDGED = 32

#: What makes a password weak, with the advice for it. The keys are also the console's notices.
WEAKNESSES = {
    "own_name": "it contains the pseudonym or the name of this software",
    "common": "it is, or resembles, a password that many people use",
    "repeats": "it repeats characters or words",
    "sequence": "it follows the alphabet, the digits or the keyboard",
    "predictable": "it consists of few, common parts",
}

_BY_PATTERN = {"repeat": "repeats", "sequence": "sequence", "spatial": "sequence"}

#: zxcvbn keeps the inputs of the current call in a global.
_turn = threading.Lock()


def check_strength(password: str, pseudonym: str) -> None:
    """Raise `WeakPasswordError`, which never quotes it, for a password that is easy to guess.

    `pseudonym`, its parts and "modwatch" make a password no harder to guess.
    """
    inputs = [pseudonym, *re.findall(r"\w{3,}", pseudonym.replace("_", " ")), "modwatch"]
    judged = unicodedata.normalize("NFKC", password)[:_JUDGED]
    with _turn:
        estimate = zxcvbn(judged, user_inputs=inputs)
    if estimate["score"] < WEAKEST_GRADE:
        weakness = _weakness(estimate["sequence"])
        raise WeakPasswordError(
            f"this password is easy to guess: {WEAKNESSES[weakness]}; use four or more words that "
            "have nothing to do with each other, or a password manager",
            weakness=weakness,
        )


def _weakness(matches: Sequence[Any]) -> str:
    """Return the key of `WEAKNESSES` that describes the longest part that zxcvbn recognised."""
    longest = max(
        (each for each in matches if each["pattern"] != "bruteforce"),
        key=lambda each: len(each["token"]),
        default=None,
    )
    if longest is None:
        return "predictable"
    if longest["pattern"] == "dictionary":
        by_list = {"user_inputs": "own_name", "passwords": "common"}
        return by_list.get(longest["dictionary_name"], "predictable")
    return _BY_PATTERN.get(longest["pattern"], "predictable")
