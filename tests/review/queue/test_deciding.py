import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from databases import execute
from sqlalchemy import Engine, func, select, text

from modwatch.common.errors import ItemNotFoundError, LeaseConflictError, QueueError
from modwatch.review.log import verification
from modwatch.review.log.decision_log import Decision
from modwatch.review.people import accounts
from modwatch.review.people.accounts import Moderator
from modwatch.review.queue import deciding, intake, leases, metrics
from modwatch.review.queue.items import Lease
from modwatch.review.tables import decision
from review.labelling import held

Fill = Callable[[int], None]

OVER = timedelta(0)


def label(
    engine: Engine, person: Moderator, lease: Lease, key: str = "k", value: int = 1, **more: object
) -> Decision:
    return deciding.decide(
        engine,
        moderator_id=person.id,
        item_id=lease.item.id,
        lease_token=lease.token,
        label=value,
        idempotency_key=key,
        **more,  # type: ignore[arg-type]
    )


def skip(engine: Engine, person: Moderator, lease: Lease, key: str = "s") -> Decision:
    return deciding.skip(
        engine,
        moderator_id=person.id,
        item_id=lease.item.id,
        lease_token=lease.token,
        idempotency_key=key,
    )


def logged(engine: Engine) -> int:
    with engine.connect() as connection:
        return connection.scalar(select(func.count()).select_from(decision)) or 0


def test_items_come_by_rank_and_by_how_long_they_waited(engine, ann, new_item, day):
    intake.enqueue(engine, [new_item("second", 2), new_item("first", 1)], day)
    execute(engine, "UPDATE review_item SET serve_by = serve_by - interval '13 hours'")
    intake.enqueue(engine, [new_item("later", 1)], day + timedelta(days=1))
    served = [held(engine, ann).item.comment_id for _ in range(3)]
    assert served == ["first", "second", "later"]
    assert leases.lease(engine, ann.id) is None


def test_a_decision_says_what_was_decided(engine, ann, fill):
    assert leases.lease(engine, ann.id) is None
    fill(3)
    lease = held(engine, ann)
    done = label(engine, ann, lease, seconds=2.5, policy_code="P1", note="unsure")
    assert (done.item_id, done.comment_id, done.label) == (lease.item.id, "c0", 1)
    assert (done.seconds, done.policy_code, done.note) == (2.5, "P1", "unsure")
    assert (done.item_version, done.position) == (1, 1)
    assert "unsure" not in repr(done)
    assert lease.token not in repr(lease)
    assert metrics.counts(engine).decided == 1
    # The seconds default to those since the claim, also when the clock jumps back.
    lease = held(engine, ann)
    done = label(engine, ann, lease, key="l", value=True)  # a label may be a truth value
    assert (done.label, verification.verify_log(engine).intact) == (1, True)
    assert done.seconds is not None
    assert 0 < done.seconds <= (done.decided_at - lease.claimed_at).total_seconds()
    lease = held(engine, ann)
    execute(engine, "UPDATE review_item SET claimed_at = now() + interval '1 day'")
    assert label(engine, ann, lease, key="m").seconds == 0


def test_the_same_request_again_is_the_same_decision(engine, ann, ben, fill):
    fill(3)
    lease = held(engine, ann)
    assert label(engine, ann, lease) == label(engine, ann, lease)
    with pytest.raises(LeaseConflictError, match="another decision"):
        label(engine, ann, lease, value=0)
    following = held(engine, ann)
    with pytest.raises(LeaseConflictError, match="send a new key"):
        label(engine, ann, following)
    assert label(engine, ann, following, key="k2").position == 2  # the lease was not lost
    assert logged(engine) == 2
    assert label(engine, ben, held(engine, ben), key="k2").position == 1  # a key is one's own


def test_foreign_expired_and_used_leases_conflict(engine, ann, ben, fill):
    fill(1)
    expired = held(engine, ann, length=OVER)
    with pytest.raises(LeaseConflictError, match="has expired"):
        label(engine, ann, expired)
    lease = held(engine, ben)
    assert lease.item.id == expired.item.id  # it came back by itself
    for person, token in ((ann, expired.token), (ann, lease.token), (ben, "guess")):
        with pytest.raises(LeaseConflictError):
            deciding.decide(
                engine,
                moderator_id=person.id,
                item_id=lease.item.id,
                lease_token=token,
                label=1,
                idempotency_key="k",
            )
    label(engine, ben, lease)
    with pytest.raises(LeaseConflictError):
        label(engine, ben, lease, key="another")
    assert logged(engine) == 1


def test_a_skipped_item_is_for_the_others(engine, ann, ben, fill):
    fill(1)
    with pytest.raises(ItemNotFoundError, match="item 7"):
        deciding.skip(engine, moderator_id=ann.id, item_id=7, lease_token="t", idempotency_key="k")
    lease = held(engine, ann)
    # A lease can be taken up again.
    assert leases.resume(engine, ann.id, lease.item.id, lease.token) == lease
    assert leases.resume(engine, ben.id, lease.item.id, lease.token) is None
    assert leases.resume(engine, ann.id, lease.item.id, "guess") is None
    assert skip(engine, ann, lease) == skip(engine, ann, lease)
    assert leases.lease(engine, ann.id) is None
    assert held(engine, ben).item.id == lease.item.id


def test_impossible_decisions_are_refused_and_keep_the_lease(engine, ann, fill):
    fill(1)
    lease = held(engine, ann)
    impossible: list[tuple[dict[str, Any], str]] = [
        ({"value": 2}, "0 or 1"),
        ({"note": "private\0"}, "note"),
        ({"note": "private" * 1_000}, "note"),
        ({"key": "private\ud800"}, "idempotency_key"),
        ({"seconds": -1.0}, "seconds"),
        ({"seconds": float("nan")}, "seconds"),
        ({"seconds": float("inf")}, "seconds"),
    ]
    for fields, named in impossible:
        with pytest.raises(QueueError, match=named) as refused:
            label(engine, ann, lease, **fields)
        assert "private" not in str(refused.value)
    label(engine, ann, lease)


def test_racing_workers_get_every_item_once(engine, fill):
    fill(80)
    team = [accounts.create_moderator(engine, f"worker {i}", "moderator") for i in range(8)]

    def work(person: Moderator) -> list[int]:
        served = []
        while (lease := leases.lease(engine, person.id)) is not None:
            served.append(lease.item.id)
            label(engine, person, lease, key=f"{lease.item.id}")
        return served

    with ThreadPoolExecutor(len(team)) as pool:
        served = Counter(item for part in pool.map(work, team) for item in part)
    assert len(served) == 80
    assert set(served.values()) == {1}
    assert logged(engine) == 80
    assert verification.verify_log(engine).intact


def test_racing_retries_make_one_decision(engine, ann, fill):
    fill(8)
    with ThreadPoolExecutor(8) as pool:
        for _ in range(8):
            lease = held(engine, ann)
            tries = [pool.submit(label, engine, ann, lease, lease.token) for _ in range(4)]
            assert len({item.result(timeout=30).id for item in tries}) == 1
    assert logged(engine) == 8


#: Decides, and waits for a lock of the database; `test_faults.py` kills a console after it decided.
KILLED = """
import sys
from modwatch.review.database import connect
from modwatch.review.queue import deciding
url, moderator, item, token = sys.argv[1:]
engine = connect(url)
print("deciding", flush=True)
deciding.decide(engine, moderator_id=int(moderator), item_id=int(item), lease_token=token,
                label=1, idempotency_key="k")
"""


def test_killed_while_the_database_is_at_it_a_retry_makes_one_decision(
    engine, queue_url, ann, fill
):
    fill(1)
    lease = held(engine, ann)
    command = [sys.executable, "-c", KILLED, queue_url, str(ann.id), str(lease.item.id)]
    with engine.begin() as connection:  # the decision waits for this lock
        connection.execute(text("SELECT FROM review_item FOR UPDATE"))
        with subprocess.Popen([*command, lease.token], stdout=subprocess.PIPE) as worker:
            assert worker.stdout is not None
            assert worker.stdout.readline() == b"deciding\n"
            _wait_for_a_blocked_statement(engine)
            worker.kill()
    label(engine, ann, lease)
    assert logged(engine) == 1
    assert verification.verify_log(engine).intact


def _wait_for_a_blocked_statement(engine: Engine) -> None:
    blocked = text("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
    for _ in range(200):
        with engine.connect() as connection:
            if connection.scalar(blocked):
                return
        time.sleep(0.05)
    raise AssertionError("nothing waits for the lock")
