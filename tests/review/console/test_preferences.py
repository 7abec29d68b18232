import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from modwatch.review.console.preferences import ACTIONS, Preferences, preferences_of
from modwatch.review.console.request_context import csrf_of
from modwatch.review.people import access_tokens, sessions
from review.console.visiting import by_cookie


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
def test_impossible_choices_are_refused(wrong):
    with pytest.raises(ValidationError):
        Preferences.model_validate(wrong)


def test_keys_may_be_exchanged():
    swapped = Preferences(keys={"fine": "t", "toxic": "n"})
    assert (swapped.all_keys["fine"], swapped.all_keys["toxic"]) == ("t", "n")


@given(st.dictionaries(st.sampled_from(sorted(ACTIONS)), st.characters()))
def test_no_key_does_two_things(keys):
    try:
        chosen = Preferences(keys=keys)
    except ValidationError:
        return
    assert len(set(chosen.all_keys.values())) == len(ACTIONS)


@given(st.dictionaries(st.sampled_from([*Preferences.model_fields, "x"]), st.none() | st.text()))
def test_whatever_is_stored_can_be_read(stored):
    assert preferences_of(stored).all_keys


def test_ones_own_tokens_are_listed_and_revoked(engine, stranger, ann, ben):
    feed = access_tokens.issue_token(engine, ann.id, name="my script", scopes=["review"])
    others = access_tokens.issue_token(engine, ben.id, name="of ben")
    whole = access_tokens.issue_token(engine, ann.id)
    session = sessions.open_session(engine, whole)
    page = stranger.get("/preferences", headers=by_cookie(session)).text
    assert "my script" in page
    assert "of ben" not in page
    ids = {
        token.name: token.id for of in (ann, ben) for token in access_tokens.tokens(engine, of.id)
    }
    for name, status in (("of ben", 404), ("my script", 303)):
        form = {"csrf": csrf_of(session), "token_id": ids[name]}
        answer = stranger.post("/preferences/revoke", data=form, headers=by_cookie(session))
        assert answer.status_code == status
    bearers = [{"Authorization": f"Bearer {token}"} for token in (feed, others)]
    assert [stranger.get("/api/v1/me", headers=who).status_code for who in bearers] == [401, 200]
    stranger.post("/preferences/revoke", data={"csrf": form["csrf"]}, headers=by_cookie(session))
    assert stranger.get("/preferences", headers=by_cookie(session)).status_code == 303
