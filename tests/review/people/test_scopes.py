import pytest
from hypothesis import given
from hypothesis import strategies as st

from modwatch.common.errors import QueueError
from modwatch.review.people.accounts import ROLE_SCOPES, SCOPES, cut, usable_scopes
from modwatch.review.tables import ROLES


def test_every_role_has_scopes_and_one_no_one_else_grants_itself():
    assert set(ROLE_SCOPES) == set(ROLES)
    assert {role for role in ROLES if "review" in cut(role, None)} == {"moderator", "lead"}
    assert {role for role in ROLES if "admin" in cut(role, None)} == {"admin"}
    assert {role for role in ROLES if "lead" in cut(role, None)} == {"lead"}
    assert cut("owner", None) == frozenset()


@given(st.sampled_from(ROLES), st.sets(st.sampled_from(sorted(SCOPES))))
def test_a_cut_adds_nothing(role, scopes):
    assert cut(role, scopes) == scopes & cut(role, None)


def test_tokens_of_no_use_are_refused():
    assert usable_scopes("lead", None) is None
    assert usable_scopes("lead", ["review", "admin", "lead"]) == ["lead", "review"]
    with pytest.raises(QueueError, match="has none of these scopes"):
        usable_scopes("moderator", ["admin"])
    with pytest.raises(QueueError, match="unknown scope 'root'"):
        usable_scopes("moderator", ["review", "root"])
