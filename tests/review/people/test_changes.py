import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from modwatch.common.errors import QueueError
from modwatch.review.people import access_tokens, accounts, changes, sessions
from modwatch.review.queue.lanes import Lane, Lanes
from review.labelling import open_queues


def test_queues_are_named_or_all(engine, ann, ben):
    token = access_tokens.issue_token(engine, ann.id)
    open_queues(engine, "spam")
    changes.set_queues(engine, ann.id, ["spam", "general", "spam"])
    assert sessions.authenticate(engine, token).queues == {"spam", "general"}
    assert [account.queues for account in accounts.people(engine)] == [{"spam", "general"}, None]
    with pytest.raises(QueueError, match="no queue given"):
        changes.set_queues(engine, ann.id, [])
    for name in ("", "a\0", "\ud800", "x" * 101):
        with pytest.raises(QueueError, match=r"unknown queue .* \(known queues: general, spam\)"):
            changes.set_queues(engine, ann.id, ["spam", name])
    assert accounts.find_moderator(engine, "ann").queues == {"spam", "general"}
    changes.set_queues(engine, ann.id, None)
    assert sessions.authenticate(engine, token) == ann


def test_an_unknown_queue_is_rejected_with_the_nearest_known(engine, ann):
    rules = Lanes(reason={"audit": Lane(queue="audits")})
    open_queues(engine, "de")
    with pytest.raises(QueueError, match=r"'audit', did you mean 'audits'\?") as error:
        changes.set_queues(engine, ann.id, ["audit"], lanes=rules)
    assert "(known queues: audits, de, general)" in str(error.value)
    assert accounts.find_moderator(engine, "ann").queues is None
    changes.set_queues(engine, ann.id, ["audits", "de"], lanes=rules)
    assert accounts.find_moderator(engine, "ann").queues == {"audits", "de"}


def test_roles_change(engine, ann):
    token = access_tokens.issue_token(engine, ann.id)
    changes.change_role(engine, ann.id, "auditor")
    person = sessions.authenticate(engine, token)
    assert person.role == "auditor"
    assert not person.reviews
    assert person.may("audit")
    with pytest.raises(QueueError, match="unknown role"):
        changes.change_role(engine, ann.id, "owner")


def test_unknown_people_are_named(engine):
    for act, more in (
        (changes.disable, ()), (changes.enable, ()), (changes.change_role, ("lead",)),
        (changes.set_queues, (None,)), (changes.save_preferences, ({},)),
    ):  # fmt: skip
        with pytest.raises(QueueError, match="moderator 99 does not exist"):
            act(engine, 99, *more)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.text(), JSON, max_size=5))
@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_preferences_come_back_or_are_refused(engine, preferences):
    person = accounts.create_moderator(engine, "ann", "moderator")
    try:
        changes.save_preferences(engine, person.id, preferences)
    except QueueError:
        assert "\0" in str(preferences) or "\\x00" in repr(preferences)
    else:
        assert accounts.find_moderator(engine, "ann").preferences == preferences


def test_unusable_preferences_are_refused(engine, ann):
    for preferences in (
        {"a": object()}, {"a": float("nan")}, {"a": "x" * 20_000}, {"a\0": 1}, {"a": ["\ud800"]},
    ):  # fmt: skip
        with pytest.raises(QueueError, match="without NUL"):
            changes.save_preferences(engine, ann.id, preferences)
    changes.save_preferences(engine, ann.id, {"a": r"\u0000 as \\u0000 letters"})
