from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier

import pytest
from databases import execute, scalar, tamper
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, text

from modwatch.common.errors import ItemNotFoundError, LeaseConflictError
from modwatch.review.people import accounts
from modwatch.review.people.accounts import Moderator
from modwatch.review.queue import deciding, intake, leases
from modwatch.review.queue.items import NewItem
from modwatch.review.queue.lanes import Lane, Lanes, load_lanes
from review.labelling import held, skip

Fill = Callable[[int], None]
Make = Callable[..., NewItem]

MINUTE = timedelta(minutes=1)


def age(engine: Engine, minutes: float) -> None:
    """Let time pass for every lease."""
    execute(
        engine,
        "UPDATE review_item SET claimed_at = claimed_at - make_interval(secs => :s), "
        "leased_until = leased_until - make_interval(secs => :s)",
        s=60 * minutes,
    )


def test_a_heartbeat_holds_the_item_for_an_hour_at_most(engine, ann, fill):
    fill(1)
    lease = held(engine, ann)
    age(engine, 9)
    until = leases.extend(engine, ann.id, lease.item.id, lease.token)
    assert timedelta(minutes=9) < until - (lease.expires_at - 9 * MINUTE) <= timedelta(minutes=9.1)
    for _ in range(5):
        age(engine, 9)
        last = leases.extend(engine, ann.id, lease.item.id, lease.token)
    assert last == lease.claimed_at + 6 * MINUTE  # an hour after the claim, which was 54 min ago
    age(engine, 9)
    with pytest.raises(LeaseConflictError, match="has expired"):
        leases.extend(engine, ann.id, lease.item.id, lease.token)


def test_a_heartbeat_of_nothing_is_refused_and_none_shortens(engine, ann, ben, fill):
    fill(1)
    lease = held(engine, ann)
    assert leases.extend(engine, ann.id, lease.item.id, lease.token, MINUTE) == lease.expires_at
    with pytest.raises(LeaseConflictError):
        leases.extend(engine, ben.id, lease.item.id, lease.token)
    with pytest.raises(ItemNotFoundError):
        leases.extend(engine, ann.id, 99, lease.token)
    # A released item is for everybody again.
    assert leases.lease(engine, ann.id) is None
    assert leases.release(engine, ann.id, lease.item.id, lease.token)
    assert not leases.release(engine, ann.id, lease.item.id, lease.token)
    assert held(engine, ann).item.id == lease.item.id


@pytest.mark.parametrize("hours", [-24, 24])
def test_a_clock_set_back_or_forward_keeps_no_one_waiting(engine, ann, ben, fill, hours):
    fill(1)
    lease = held(engine, ann)
    age(engine, 60 * hours)  # claimed tomorrow, or yesterday
    resumed = leases.resume(engine, ann.id, lease.item.id, lease.token)
    assert (resumed is not None) == (hours < 0)
    assert held(engine, ben).item.id == lease.item.id


def test_reasons_are_served_as_often_as_their_turns_say(engine, ann, new_item, day):
    reasons = ("uncertainty", "random_slice")
    items = [new_item(f"c{i}", i + 1, reason=reasons[i % 2]) for i in range(200)]
    intake.enqueue(engine, items, day)
    rules = Lanes(reason={"uncertainty": Lane(turns=3), "random_slice": Lane(turns=1)})
    with engine.connect() as connection:
        of = dict(connection.execute(text("SELECT id, reason FROM review_item")).all())
    found = Counter(of[held(engine, ann, lanes=rules).item.id] for _ in range(100))
    assert 53 <= found["uncertainty"] <= 97  # 75, five standard deviations
    rest = Counter(of[held(engine, ann, lanes=rules).item.id] for _ in range(100))
    assert found + rest == {"uncertainty": 100, "random_slice": 100}  # nothing is left behind
    intake.enqueue(engine, [new_item("c", reason="something new")], day + timedelta(1))
    assert held(engine, ann).item.comment_id == "c"  # a reason that no rule names


def among(number: int) -> Lanes:
    rules = load_lanes()
    served = rules.confirmations.model_copy(update={"among": number})
    return rules.model_copy(update={"confirmations": served})


def test_any_of_the_next_items_of_a_reason_is_served(engine, ann, new_item, day):
    rules, left = among(4), [f"c{number:02}" for number in range(40)]
    items = (new_item(name, rank) for rank, name in enumerate(left, start=1))
    intake.enqueue(engine, items, day, lanes=rules)
    places = Counter[int]()
    while left:
        served = held(engine, ann, lanes=rules).item.comment_id
        places[left.index(served)] += 1
        left.remove(served)
    assert max(places) == 3
    assert min(places[place] for place in range(4)) > 0
    assert leases.lease(engine, ann.id, lanes=rules) is None
    # What a lead put first is first all the same.
    more = [new_item(f"d{n}", n) for n in range(1, 13)]
    intake.enqueue(engine, more, day + timedelta(1), lanes=among(16))
    assert intake.serve_first(engine, day + timedelta(1), ["d5", "d11"]) == 2
    first = {held(engine, ann, lanes=among(16)).item.comment_id for _ in range(2)}
    assert first == {"d5", "d11"}


def test_the_first_of_a_day_is_due_sooner_than_the_last(engine, new_item, day):
    items = [new_item(f"c{i}", i + 1) for i in range(4)]
    intake.enqueue(engine, items, day, lanes=load_lanes())
    with engine.connect() as connection:
        hours = [
            float(row.hours)
            for row in connection.execute(
                text(
                    "SELECT extract(epoch FROM serve_by - queued_at) / 3600 AS hours "
                    "FROM review_item ORDER BY rank"
                )
            )
        ]
    assert hours == pytest.approx([12, 15, 18, 21])  # of 24, half of it by rank


def test_routing_again_keeps_the_promise_of_the_first_time(engine, new_item, day):
    intake.enqueue(engine, [new_item("c1")], day)
    execute(engine, "UPDATE review_item SET queued_at = now() - interval '20 hours'")
    intake.enqueue(engine, [new_item("c1", prob=0.4)], day)
    left = scalar(engine, "SELECT extract(epoch FROM due_at - now()) / 3600 FROM review_item")
    assert float(left) == pytest.approx(4, abs=0.01)


def test_an_item_for_one_person_takes_the_place_of_one_that_looks_like_it(
    engine, ann, ben, new_item, day
):
    shown = {"language": "en", "platform": "forum", "parent_text": "p"}
    unlike = [shown | {name: None} for name in shown] + [shown | {"text": "long " * 40}]
    items = [new_item(f"c{k}", k + 1, **more) for k, more in enumerate([*unlike, shown, shown])]
    intake.enqueue(engine, [*items, new_item("mine", 9, **shown)], day)
    execute(
        engine,
        "UPDATE review_item SET reserved_for = :ann, serve_after = 1, "
        "serve_by = '2020-01-01' WHERE comment_id = 'mine'",
        ann=ann.id,
    )
    for places in (["c0", "c1", "c2", "c3", "c4"], ["c1", "c2", "c3", "mine", "c4"]):
        assert [held(engine, ann).item.comment_id for _ in places] == places
        execute(engine, "UPDATE review_item SET leased_until = now()")
        skipped = held(engine, ann)
        skip(engine, ann, skipped)
    assert [held(engine, ben).item.comment_id for _ in range(6)] == [f"c{k}" for k in range(6)]
    assert leases.lease(engine, ann.id) is None  # nothing is left in whose place it could come


@pytest.mark.parametrize("races", [50, pytest.param(1_250, marks=pytest.mark.soak)])
def test_two_people_never_hold_one_item(engine, fill, races):
    """Eight people ask at once for one of few items, many times."""
    fill(2)
    team = [accounts.create_moderator(engine, f"racer {i}", "moderator") for i in range(8)]
    start = Barrier(len(team))

    def race(person: Moderator) -> list[int]:
        served = []
        for _ in range(races):
            start.wait()
            lease = leases.lease(engine, person.id)
            start.wait()
            served.append(lease.item.id if lease else 0)
            if lease:
                assert leases.release(engine, person.id, lease.item.id, lease.token)
        return served

    with ThreadPoolExecutor(len(team)) as pool:
        rounds = list(zip(*pool.map(race, team), strict=True))
    assert len(rounds) == races
    for round in rounds:
        taken = [item for item in round if item]
        assert len(taken) == len(set(taken))
        assert taken


def test_a_lead_may_claim_what_no_one_holds(engine, ann, ben, fill):
    fill(1)
    lease = leases.claim(engine, ann.id, 1)
    assert lease is not None
    assert leases.claim(engine, ben.id, 1) is None
    assert leases.release(engine, ann.id, 1, lease.token)
    assert leases.claim(engine, ben.id, 1, escalated_only=True) is None
    assert leases.claim(engine, ben.id, 1) is not None
    assert leases.claim(engine, ben.id, 99) is None


def test_an_escalated_item_is_leased_again_to_leads_only(engine, ann, ben, fill):
    fill(1)
    first = held(engine, ann)
    deciding.escalate(
        engine, moderator_id=ann.id, item_id=1, lease_token=first.token,
        reason="unsure", idempotency_key="e",
    )  # fmt: skip
    lease = leases.claim(engine, ben.id, 1, escalated_only=True)
    assert lease is not None
    assert leases.release(engine, ben.id, 1, lease.token)
    assert leases.renew(engine, ben.id, 1, lease.token) is None
    assert leases.renew(engine, ann.id, 1, first.token, escalated=True) is None  # she escalated it
    again = leases.renew(engine, ben.id, 1, lease.token, escalated=True)
    assert again is not None
    assert again.opinions == lease.opinions


#: Ends the other connections of the role to the database; the owner's are not its own.
END_OTHERS = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE pid <> pg_backend_pid() AND datname = current_database() AND usename = current_user
"""


def test_a_lost_connection_is_nothing_to_a_lease(engine, ann, fill):
    fill(2)
    first = held(engine, ann)
    with engine.connect() as connection:
        ended = connection.execute(text(END_OTHERS)).all()
    assert ended
    request = {"moderator_id": ann.id, "item_id": first.item.id, "lease_token": first.token}
    later = first.item.version + 1  # a version that has passed conflicts
    with pytest.raises(LeaseConflictError, match="has changed"):
        deciding.decide(engine, label=1, idempotency_key="k", version=later, **request)
    request["version"] = first.item.version
    assert deciding.decide(engine, label=1, idempotency_key="k", **request).position == 1
    assert held(engine, ann).item.id != first.item.id


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["general", "de"]),
            st.sampled_from(["uncertainty", "audit"]),
            st.sampled_from(["waiting", "blocked", "escalated", "decided"]),
            st.sampled_from(["", "mine", "hers"]),  # reserved for
            st.booleans(),  # excluded
            st.booleans(),  # held by someone
        ),
        max_size=8,
    ),
    st.sampled_from([None, ["de"], []]),
    st.sampled_from([[], ["audit"]]),
)
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_person_is_served_all_that_they_may_be_and_nothing_else(
    engine, new_item, day, rows,
    queues, opt_outs
):  # fmt: skip
    ann = accounts.create_moderator(engine, "ann", "moderator")
    ben = accounts.create_moderator(engine, "ben", "moderator")
    whose = {"": None, "mine": ann.id, "hers": ben.id}
    tamper(engine, "DELETE FROM review_item")
    tamper(engine, "DELETE FROM lane")
    intake.enqueue(engine, [new_item(f"c{i}", i + 1) for i in range(len(rows))], day)
    with engine.begin() as connection:
        for rank, (name, reason, status, reserved, excluded, busy) in enumerate(rows, 1):
            connection.execute(
                text(
                    "UPDATE review_item SET queue = :queue, reason = :reason, status = :status, "
                    "reserved_for = :reserved, excluded = CASE WHEN :excluded THEN ARRAY[:ann] "
                    "ELSE '{}' END, leased_by = CASE WHEN :busy THEN :ben END, "
                    "claimed_at = CASE WHEN :busy THEN now() END, "
                    "leased_until = CASE WHEN :busy THEN now() + interval '1 hour' END "
                    "WHERE rank = :rank"
                ),
                {
                    "queue": name, "reason": reason, "status": status, "excluded": excluded,
                    "reserved": whose[str(reserved)], "busy": busy, "ann": ann.id, "ben": ben.id,
                    "rank": rank,
                },
            )  # fmt: skip
        connection.execute(
            text(
                "INSERT INTO lane SELECT DISTINCT queue, reason FROM review_item "
                "ON CONFLICT DO NOTHING"
            )
        )
    may_be, reserved_ones, places = set(), {}, set()
    for rank, (name, reason, status, reserved, excluded, busy) in enumerate(rows, 1):
        theirs = (queues is None or name in queues) and reason not in opt_outs
        if status != "waiting" or excluded or busy:
            continue
        if reserved == "mine":
            reserved_ones[f"c{rank - 1}"] = name
        elif not reserved and theirs:
            may_be.add(f"c{rank - 1}")
            places.add(name)
    may_be |= {item for item, name in reserved_ones.items() if name in places}
    served = []
    while lease := leases.lease(engine, ann.id, queues=queues, opt_outs=opt_outs):
        served.append(lease.item.comment_id)
    assert sorted(served) == sorted(may_be)
