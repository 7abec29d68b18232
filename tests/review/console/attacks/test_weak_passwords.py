"""Somebody who tries what many people choose: it must not be anybody's password."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from modwatch.common.errors import WeakPasswordError
from modwatch.review.console.render import NOTICES
from modwatch.review.console.request_context import SESSION_COOKIE
from modwatch.review.people import accounts, passwords
from modwatch.review.people.passwords import WEAKNESSES, check_strength
from review.console.visiting import hidden, session_of

WEAK = {
    "aaaaaaaaaaaa": "repeats",
    "annannannann": "repeats",
    "abcabcabcabcabc": "repeats",
    "abcdefghijkl": "sequence",
    "qwertzuiopqw": "common",
    "qwertyuiopas": "common",
    "123456789012": "common",
    "password1234": "common",
    "P@ssw0rd2026!": "common",
    "iloveyou1234": "common",
    "Passwort1234": "common",
    "quiet-otter-17": "own_name",
    "QUIET-OTTER-17!": "own_name",
    "71-retto-teiuq": "own_name",
    "otterotterquiet": None,
    "modwatch2026!": "own_name",
    "ｐａｓｓｗｏｒｄ１２３４": "common",
    "Sommer2026!!!": None,
    "a" * 256: "repeats",
    "horsehorse" * 7: "repeats",
}


def test_what_attackers_try_first_is_refused_unquoted():
    for password, weakness in WEAK.items():
        with pytest.raises(WeakPasswordError, match="is easy to guess") as refusal:
            check_strength(password, "quiet-otter-17")
        assert password not in str(refusal.value)
        assert weakness in (refusal.value.weakness, None), password


def test_pass_phrases_and_random_ones_are_taken():
    for password in (
        "a long pass phrase",
        "café au lait bitte",
        "xK7!vq2Lm9#Tz4pW",
        "four words which differ",
        "ヤマト運輸の黒い猫が走る",
        "password" * 4 + "-xK7!vq2Lm9#Tz4pW",  # weak up to its 32nd character
        "4@8({[<69" * 4 + " and a long pass phrase",
    ):
        check_strength(password, "quiet-otter-17")


def test_a_hostile_password_takes_no_time():
    """The library's time grows steeply with the length and with characters of many readings."""
    seconds = list[float]()

    def judge() -> None:
        began = time.thread_time()
        _judge("4@8({[<69!1|7$5+0%2" * 13 + "x")
        seconds.append(time.thread_time() - began)

    worker = threading.Thread(target=judge, daemon=True)
    worker.start()
    worker.join(300)
    assert seconds
    assert seconds[0] < 10  # of processor time


def _judge(password: str) -> bool:
    try:
        check_strength(password, "ann")
    except WeakPasswordError:
        return False
    return True


def test_the_name_of_one_is_not_judged_as_that_of_another():
    """The library keeps the names it was told in a global."""
    names = [f"zorblaxquint{letter}" for letter in "bcdfghjkmnpqrstvwxyz"] * 2
    with ThreadPoolExecutor(8) as pool:
        judged = list(pool.map(lambda name: _refused(name, name), names))
    assert all(judged)
    assert not passwords._turn.locked()


def _refused(password: str, name: str) -> bool:
    with pytest.raises(WeakPasswordError):
        check_strength(password, name)
    return True


def test_no_one_sets_one_by_any_way(engine, client):
    admin = accounts.create_moderator(engine, "the admin", "admin")
    kit = accounts.create_moderator(engine, "kit-of-the-north", "moderator")
    client.cookies.set(SESSION_COOKIE, session_of(engine, admin))
    where = f"/admin/people/{kit.id}"
    form = hidden(client.get(where), where[1:])
    answer = client.post(where, data=form | {"password": "kit-of-the-north"})
    assert answer.status_code == 422
    assert "it contains the pseudonym" in answer.text
    passwords.set_password(engine, kit.id, "a long pass phrase")
    client.cookies.set(SESSION_COOKIE, session_of(engine, kit))
    form = hidden(client.get("/preferences"), "password")
    form |= {"old": "a long pass phrase", "new": "kit-of-the-north"}
    answer = client.post("/preferences/password", data=form)
    assert "contains your pseudonym" in answer.text
    assert passwords.log_in(engine, "kit-of-the-north", "a long pass phrase", address="::1")


def test_each_weakness_is_reported_on_the_page():
    assert set(WEAKNESSES) <= set(NOTICES["preferences"])
