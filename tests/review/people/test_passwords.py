import statistics
import time

import pytest
from argon2 import PasswordHasher
from hypothesis import example, given, settings
from hypothesis import strategies as st

from modwatch.common.errors import QueueError
from modwatch.review.people import passwords

GOOD = "correct horse battery"


def test_hashes_are_argon2id_and_salted():
    first, second = passwords.hash_password(GOOD), passwords.hash_password(GOOD)
    assert first != second
    assert first.startswith("$argon2id$v=19$m=65536,t=3,p=4$")
    assert passwords.matches(first, GOOD)
    assert not passwords.matches(first, GOOD.upper())
    assert not passwords.matches(None, GOOD)
    assert not passwords.matches("not a hash", GOOD)


def test_weaker_hashes_and_other_keyboards_match():
    weak = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1).hash(GOOD)
    assert passwords.matches(weak, GOOD)
    stored = passwords.hash_password("caf\u00e9 au lait bitte")
    assert passwords.matches(stored, "cafe\u0301\u00a0au\u2003lait bitte")


def test_unusable_passwords_are_refused_unquoted():
    for password in (
        "", "eleven char", "x" * 257, "nul \0 in the middle", "lone \ud800 surrogate",
        "tab\tand bell\a",
    ):  # fmt: skip
        with pytest.raises(QueueError, match="12 to 256 characters") as refusal:
            passwords.hash_password(password)
        assert not password or password not in str(refusal.value)


@given(st.text(alphabet=st.characters(categories=["Cc", "Cs", "Cn"]), min_size=1), st.text())
@example("\0", "x" * 1_000_000)
@settings(deadline=50)  # far less than a hash takes
def test_what_no_one_can_have_is_refused_before_it_is_hashed(bad, rest):
    assert not passwords.matches(None, rest + bad)


def test_no_ones_password_takes_as_long_as_someones():
    stored = passwords.hash_password(GOOD)

    def seconds(hashed: str | None) -> float:
        began = time.process_time()
        passwords.matches(hashed, "another long password")
        return time.process_time() - began

    pairs = [(seconds(stored), seconds(None)) for _ in range(3)]
    ratio = statistics.median(nobody / somebody for somebody, nobody in pairs)
    assert 0.5 < ratio < 2
