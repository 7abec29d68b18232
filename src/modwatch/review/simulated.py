"""Moderators with known error rates, who work the queue through its HTTP API."""

import hashlib
import random
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import httpx

from modwatch.errors import AccessDeniedError, QueueError

#: A request that meets a broken connection or a 5xx is sent again, with the same key: a database
#: that restarts on a busy machine is away for some ten seconds.
_TRIES = 12
_PAUSE_SECONDS = 0.25
_LONGEST_PAUSE_SECONDS = 4.0

#: Of the policy that comes with Modwatch.
_SKIP_REASONS = ("unsure", "language", "distressing")
_ESCALATE_REASONS = ("policy_gap", "context", "legal")


@dataclass(frozen=True, kw_only=True)
class SimulatedModerator:
    """A person who errs at known rates, each comment alike whenever it is shown to them.

    Two people of different seeds err independently.

    >>> Person = SimulatedModerator
    >>> careful = Person(token="", false_positive_rate=0.0, false_negative_rate=0.0, seed=1)
    >>> careful.label("c1", 1), careful.label("c2", 0)
    (1, 0)
    >>> contrary = Person(token="", false_positive_rate=1.0, false_negative_rate=1.0, seed=1)
    >>> contrary.label("c1", 1), contrary.label("c2", 0)
    (0, 1)
    """

    #: An API token of a moderator or lead.
    token: str = field(repr=False)
    #: P(label 1 | truth 0), in [0, 1].
    false_positive_rate: float
    #: P(label 0 | truth 1), in [0, 1].
    false_negative_rate: float
    seed: int
    #: P(skip), in [0, 1).
    skip_rate: float = 0.0
    #: P(hand to a lead), in [0, 1], of what is not skipped.
    escalate_rate: float = 0.0
    #: Codes of the policy for toxic comments: one of them goes with each such label.
    codes: tuple[str, ...] = ()

    def label(self, comment_id: str, truth: int) -> int | None:
        """Return the label of this person, or None for a skip; the same for the same comment."""
        draws = self._draws(comment_id)
        if draws.random() < self.skip_rate:
            return None
        errs = draws.random() < (self.false_negative_rate if truth else self.false_positive_rate)
        return 1 - truth if errs else truth

    def escalates(self, comment_id: str) -> bool:
        """Return whether this person hands the comment to a lead instead of labelling it."""
        return self._draws(f"escalate {comment_id}").random() < self.escalate_rate

    def code(self, comment_id: str, label: int) -> str | None:
        """Return the code that this person gives with the label; None for a comment not toxic."""
        if label != 1 or not self.codes:
            return None
        return self._draws(f"code {comment_id}").choice(self.codes)

    def answer(self, comment_id: str, truth: int) -> dict[str, Any]:
        """Return what this person does with the comment, as the API takes a decision."""
        label = self.label(comment_id, truth)
        reasons = self._draws(f"reason {comment_id}")
        if label is None:
            return {"action": "skip", "reason": reasons.choice(_SKIP_REASONS)}
        if self.escalates(comment_id):
            return {"action": "escalate", "reason": reasons.choice(_ESCALATE_REASONS)}
        return {"action": "label", "label": label, "policy_code": self.code(comment_id, label)}

    def seconds(self, comment_id: str) -> float:
        """Return how long this person takes, in seconds: log-normal with median 6."""
        draws = self._draws(f"seconds {comment_id}")
        return round(draws.lognormvariate(1.8, 0.5), 3)

    def _draws(self, name: str) -> random.Random:
        digest = hashlib.blake2b(f"{self.seed} {name}".encode(), digest_size=8).digest()
        return random.Random(int.from_bytes(digest))  # noqa: S311 - a simulation


@dataclass(frozen=True, kw_only=True)
class ShiftReport:
    """What the simulated moderators did."""

    #: Labels that were accepted.
    decisions: int
    skips: int
    #: Items handed to a lead.
    escalations: int
    #: Answers 404 or 409: the item had gone to somebody else or was withdrawn.
    conflicts: int
    #: Wall time of the whole shift.
    seconds: float
    #: Labels by moderator, in the order in which they were handed over.
    by_moderator: tuple[int, ...]

    @property
    def decisions_per_second(self) -> float:
        """Labels a second, over all moderators; 0 for a shift of no length."""
        return self.decisions / self.seconds if self.seconds else 0.0


@dataclass(kw_only=True)
class _Shift:
    """What one moderator did so far."""

    label: int = 0
    skip: int = 0
    escalate: int = 0
    conflicts: int = 0


def work(
    base_url: str,
    moderators: Sequence[SimulatedModerator],
    truth: Mapping[str, int],
    *,
    limit: int | None = None,
    concurrency: int = 4,
    timeout: float = 30.0,
    escalated: bool = False,
) -> ShiftReport:
    """Let `moderators` work the queue at `base_url` until it is empty for all of them.

    `truth` holds the true label (1 toxic, 0 not) of every comment that may be served. The shift
    ends when nobody is served any more, or after `limit` labels, skips and escalations. With
    `escalated` they are leads, who settle what others handed to them. At most `concurrency`
    people work at once, each over a connection of their own; a request has `timeout` seconds.
    Raises `QueueError` for a comment without truth, or an API that stays out of order, and
    `AccessDeniedError` for a token that is refused.
    """
    started = time.monotonic()
    budget = _Budget(limit)
    shifts = [_Shift() for _ in moderators]

    def work_once(moderator: SimulatedModerator, shift: _Shift) -> int:
        with httpx.Client(
            base_url=base_url,
            headers={"Authorization": f"Bearer {moderator.token}"},
            timeout=timeout,
        ) as client:
            asked = {"escalated": True} if escalated else {}
            return _work_until_unserved(client, moderator, shift, truth, budget, asked)

    with ThreadPoolExecutor(max_workers=max(1, min(concurrency, len(moderators)))) as pool:
        # What the last one at work skips, or labels as the first of two, is for the others. At the
        # end they go one by one: together, one not served may hold the last of the limit.
        while sum(pool.map(work_once, moderators, shifts)) or sum(
            map(work_once, moderators, shifts)
        ):
            pass
    return ShiftReport(
        decisions=sum(shift.label for shift in shifts),
        skips=sum(shift.skip for shift in shifts),
        escalations=sum(shift.escalate for shift in shifts),
        conflicts=sum(shift.conflicts for shift in shifts),
        seconds=time.monotonic() - started,
        by_moderator=tuple(shift.label for shift in shifts),
    )


class _Budget:
    """How many items may still be taken, over all threads."""

    def __init__(self, limit: int | None) -> None:
        self._left = limit
        self._lock = threading.Lock()

    def take(self) -> bool:
        with self._lock:
            if self._left is None:
                return True
            if self._left == 0:
                return False
            self._left -= 1
            return True

    def give_back(self) -> None:
        with self._lock:
            if self._left is not None:
                self._left += 1


def _work_until_unserved(
    client: httpx.Client,
    moderator: SimulatedModerator,
    shift: _Shift,
    truth: Mapping[str, int],
    budget: _Budget,
    asked: dict[str, Any],
) -> int:
    """Return how many items were served."""
    served = 0
    while budget.take():
        answer = _send(client, "/api/v1/leases", asked, {})
        if answer.status_code == httpx.codes.NO_CONTENT:
            budget.give_back()
            break
        served += 1
        _decide(client, moderator, shift, truth, answer.json())
    return served


def _decide(
    client: httpx.Client,
    moderator: SimulatedModerator,
    shift: _Shift,
    truth: Mapping[str, int],
    lease: dict[str, Any],
) -> None:
    item = lease["item"]
    comment_id = item["comment_id"]
    if comment_id not in truth:
        raise QueueError(
            f"the true label of comment {comment_id!r} is unknown; hand over the truth of every "
            "comment that may be served"
        )
    does = moderator.answer(comment_id, truth[comment_id])
    body = {"lease_token": lease["token"], "seconds": moderator.seconds(comment_id), **does}
    key = {"Idempotency-Key": lease["token"]}
    answer = _send(client, f"/api/v1/items/{item['id']}/decisions", body, key)
    conflict = answer.status_code in (httpx.codes.NOT_FOUND, httpx.codes.CONFLICT)
    done = "conflicts" if conflict else does["action"]
    setattr(shift, done, getattr(shift, done) + 1)


def _send(
    client: httpx.Client, path: str, body: dict[str, Any], headers: dict[str, str]
) -> httpx.Response:
    problem = ""
    for attempt in range(_TRIES):
        if attempt:
            time.sleep(min(_PAUSE_SECONDS * 2**attempt, _LONGEST_PAUSE_SECONDS))
        try:
            answer = client.post(path, json=body, headers=headers)
        except httpx.TransportError as exc:
            problem = type(exc).__name__
            continue
        if answer.status_code in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN):
            raise AccessDeniedError(f"{client.base_url} refused a moderator's token; issue another")
        if answer.is_success or answer.status_code in (404, 409):
            return answer
        problem = f"status {answer.status_code}"
        if not answer.is_server_error:
            break
    raise QueueError(
        f"{client.build_request('POST', path).url} answered {problem}; check that the console runs"
    )
