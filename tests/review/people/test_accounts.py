from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import Engine

from modwatch.common.errors import QueueError
from modwatch.review.people import accounts, changes
from modwatch.review.people.accounts import Moderator
from modwatch.review.tables import ROLES


def test_accounts_are_created_once(engine: Engine) -> None:
    first = accounts.create_moderator(engine, "ann", "moderator")
    assert accounts.create_moderator(engine, "ann", "moderator") == first


@pytest.mark.parametrize("role", ROLES)
def test_only_moderators_and_leads_review(engine: Engine, role: str) -> None:
    person = accounts.create_moderator(engine, role, role)
    assert person.reviews == (role in {"moderator", "lead"})
    assert person.reviews == (role in accounts.REVIEWERS)


@pytest.mark.parametrize(
    ("pseudonym", "role"),
    [("ann", "owner"), ("", "moderator"), ("a\nb", "lead"), ("a\0", "lead"), ("x" * 101, "lead")],
)
def test_impossible_accounts_are_refused(engine: Engine, pseudonym: str, role: str) -> None:
    with pytest.raises(QueueError, match="choose"):
        accounts.create_moderator(engine, pseudonym, role)


def test_a_pseudonym_keeps_its_role(engine: Engine, ann: Moderator) -> None:
    with pytest.raises(QueueError, match="belongs to an account of role"):
        accounts.create_moderator(engine, "ann", "admin")


@pytest.mark.parametrize("other", ["Ann", "аnn", "ａｎｎ", "ánn"])
def test_no_one_passes_for_another(engine: Engine, ann: Moderator, other: str) -> None:
    with pytest.raises(QueueError, match="looks like another person"):
        accounts.create_moderator(engine, other, "moderator")
    assert len(accounts.people(engine)) == 1


def test_look_alikes_at_once_are_one(engine: Engine) -> None:
    def create(name: str) -> bool:
        try:
            accounts.create_moderator(engine, name, "moderator")
        except QueueError:
            return False
        return True

    names = ["hanna", "Hanna", "HANNA", "hаnna", "hannа", "ΗΑΝΝΑ"]
    with ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(create, names)) == 1


def test_the_same_name_at_once_is_one_account(engine: Engine) -> None:
    with ThreadPoolExecutor(6) as pool:
        made = list(
            pool.map(lambda _: accounts.create_moderator(engine, "ann", "moderator"), range(6))
        )
    assert len({person.id for person in made}) == 1


def test_people_are_listed(engine: Engine, ben: Moderator, ann: Moderator) -> None:
    changes.disable(engine, ben.id)
    first, second = accounts.people(engine)
    assert (first.pseudonym, second.pseudonym) == ("ann", "ben")
    assert first.disabled_at is None
    assert second.disabled_at is not None
    assert not first.has_password
    assert not first.by_oidc


def test_people_are_found_by_name(engine: Engine, ann: Moderator) -> None:
    assert accounts.find_moderator(engine, " ann") == ann
    for name in ("Ann", "", "a\0", "\ud800"):
        with pytest.raises(QueueError, match="no account"):
            accounts.find_moderator(engine, name)


def test_people_can_be_kept_in_sets(ann: Moderator, ben: Moderator) -> None:
    assert len({ann, ben, ann}) == 2
