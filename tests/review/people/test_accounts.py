from concurrent.futures import ThreadPoolExecutor

import pytest

from modwatch.common.errors import QueueError
from modwatch.review.people import accounts, changes
from modwatch.review.tables import ROLES


def test_accounts_are_created_once_and_look_like_no_other(engine, ann):
    assert accounts.create_moderator(engine, "ann", "moderator") == ann
    with pytest.raises(QueueError, match="belongs to an account of role"):
        accounts.create_moderator(engine, "ann", "admin")
    for pseudonym, role in (
        ("ann", "owner"), ("", "moderator"), ("a\nb", "lead"), ("a\0", "lead"), ("x" * 101, "lead"),
    ):  # fmt: skip
        with pytest.raises(QueueError, match="choose"):
            accounts.create_moderator(engine, pseudonym, role)
    for other in ("Ann", "аnn", "ａｎｎ", "ánn"):
        with pytest.raises(QueueError, match="looks like another person"):
            accounts.create_moderator(engine, other, "moderator")
    assert len(accounts.people(engine)) == 1


def test_only_moderators_and_leads_review(engine):
    for role in ROLES:
        person = accounts.create_moderator(engine, role, role)
        assert person.reviews == (role in {"moderator", "lead"}) == (role in accounts.REVIEWERS)


def test_look_alikes_at_once_are_one(engine):
    def create(name: str) -> bool:
        try:
            accounts.create_moderator(engine, name, "moderator")
        except QueueError:
            return False
        return True

    names = ["hanna", "Hanna", "HANNA", "hаnna", "hannа", "ΗΑΝΝΑ"]
    with ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(create, names)) == 1
        made = pool.map(lambda _: accounts.create_moderator(engine, "cy", "moderator"), range(6))
        assert len({person.id for person in made}) == 1  # the same name at once


def test_people_are_listed(engine, ben, ann):
    changes.disable(engine, ben.id)
    first, second = accounts.people(engine)
    assert (first.pseudonym, second.pseudonym) == ("ann", "ben")
    assert first.disabled_at is None
    assert second.disabled_at is not None
    assert not first.has_password
    assert not first.by_oidc
    assert accounts.find_moderator(engine, " ann") == ann
    for name in ("Ann", "", "a\0", "\ud800"):
        with pytest.raises(QueueError, match="no account"):
            accounts.find_moderator(engine, name)
    assert len({ann, ben, ann}) == 2
