from modwatch.review.events import recent_events, record_event
from modwatch.review.people import access_tokens, accounts, changes, passwords
from review.labelling import open_queues


def test_every_change_says_who_and_whom(engine, ann):
    admin = accounts.create_moderator(engine, "zoe", "admin")
    by = {"actor_id": admin.id}
    token = access_tokens.issue_token(engine, ann.id, name="script", scopes=["review"], **by)
    changes.change_role(engine, ann.id, "lead", **by)
    open_queues(engine, "a", "b")
    changes.set_queues(engine, ann.id, {"b", "a"}, **by)
    passwords.set_password(engine, ann.id, "correct horse battery", **by)
    changes.disable(engine, ann.id, **by)
    changes.enable(engine, ann.id, **by)
    access_tokens.revoke_token(engine, token)
    found = recent_events(engine, subject_id=ann.id)
    assert [(event.action, event.actor, dict(event.details)) for event in reversed(found)] == [
        ("create", None, {"pseudonym": "ann", "role": "moderator", "by_oidc": False}),
        ("issue_token", "zoe", {"token": 1, "name": "script", "scopes": ["review"]}),
        ("change_role", "zoe", {"role": "lead", "was": "moderator"}),
        ("set_queues", "zoe", {"queues": ["a", "b"]}),
        ("set_password", "zoe", {"revoked_tokens": [1]}),
        ("disable", "zoe", {}),
        ("enable", "zoe", {}),
        ("revoke_token", "ann", {"token": 1, "name": "script"}),
    ]
    assert token not in str(found)
    assert "horse" not in str(found)


def test_what_changes_nothing_is_no_event(engine, ann):
    accounts.create_moderator(engine, "ann", "moderator")
    changes.change_role(engine, ann.id, "moderator")
    changes.enable(engine, ann.id)
    changes.save_preferences(engine, ann.id, {"theme": "dark"})
    assert [event.action for event in recent_events(engine)] == ["create"]


def test_pages_follow_each_other(engine, ann):
    with engine.begin() as connection:
        for number in range(5):
            record_event(connection, "export", actor_id=ann.id, number=number)
    first = recent_events(engine, limit=3)
    rest = recent_events(engine, before=first[-1].id, limit=2)
    assert [event.details["number"] for event in first + rest] == [4, 3, 2, 1, 0]
    assert {event.subject for event in rest} == {None}
