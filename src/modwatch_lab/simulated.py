"""Simulated moderators with known error rates, who work the queue through the HTTP API."""

import hashlib
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import httpx

from modwatch.common.errors import AccessDeniedError, QueueError

#: After a broken connection or a 5xx, a request is sent again with the same key: the restart of a
#: database on a busy machine takes some ten seconds.
_TRIES = 12
_PAUSE_SECONDS = 0.25
_LONGEST_PAUSE_SECONDS = 4.0

#: Reasons of the policy that comes with Modwatch.
_SKIP_REASONS = ("unsure", "language", "distressing")
_ESCALATE_REASONS = ("policy_gap", "context", "legal")


@dataclass(frozen=True, kw_only=True)
class Ratings:
    """The ratings of some comments by people without names, handed out to simulated people.

    Every person gives one rating of a comment, and the same one every time. The first k people, by
    number, give different ones of its k ratings, in a random order of the comment's own; further
    people give any of the k. So the rating of a person depends neither on who labelled before nor
    on the order of the work, and each is equally likely to be any person's.

    >>> ratings = Ratings(by_comment={"c": [0, 0, 1]})
    >>> sorted(ratings.rating("c", person) for person in range(3))
    [0, 0, 1]
    """

    #: The ratings of each comment, 0 or 1; at least one each.
    by_comment: Mapping[str, Sequence[int]] = field(repr=False)
    seed: int = 0

    def rating(self, comment_id: str, person: int) -> int:
        """Return the rating of the comment by the person of this number, from 0.

        Raises KeyError for a comment without ratings.
        """
        ratings = self.by_comment[comment_id]
        order = _chance(self.seed, comment_id).sample(ratings, len(ratings))
        if person < len(order):
            return order[person]
        return _chance(self.seed, f"{comment_id} {person}").choice(order)


@dataclass(frozen=True, kw_only=True)
class SimulatedModerator:
    """A moderator with known error rates, who gives a comment the same label every time.

    The errors of people with different seeds are independent.

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
    #: P(escalate | not skipped), in [0, 1].
    escalate_rate: float = 0.0
    #: Policy codes for toxic comments, one is given with each such label.
    codes: tuple[str, ...] = ()
    #: Real ratings; this person gives that of number `seed`, whatever the truth; the error
    #: rates are those of other comments.
    ratings: Ratings | None = None

    def label(self, comment_id: str, truth: int) -> int | None:
        """Return the label of this person, or None for a skip; the same for the same comment."""
        chance = _chance(self.seed, comment_id)
        if chance.random() < self.skip_rate:
            return None
        if self.ratings is not None and comment_id in self.ratings.by_comment:
            return self.ratings.rating(comment_id, self.seed)
        errs = chance.random() < (self.false_negative_rate if truth else self.false_positive_rate)
        return 1 - truth if errs else truth

    def escalates(self, comment_id: str) -> bool:
        """Return whether this person escalates the comment instead of labelling it."""
        return _chance(self.seed, f"escalate {comment_id}").random() < self.escalate_rate

    def code(self, comment_id: str, label: int) -> str | None:
        """Return the policy code that this person gives with the label; None if it is not toxic."""
        if label != 1 or not self.codes:
            return None
        return _chance(self.seed, f"code {comment_id}").choice(self.codes)

    def answer(self, comment_id: str, truth: int) -> dict[str, Any]:
        """Return this person's decision on the comment, as a body for the API."""
        label = self.label(comment_id, truth)
        reasons = _chance(self.seed, f"reason {comment_id}")
        if label is None:
            return {"action": "skip", "reason": reasons.choice(_SKIP_REASONS)}
        if self.escalates(comment_id):
            return {"action": "escalate", "reason": reasons.choice(_ESCALATE_REASONS)}
        return {"action": "label", "label": label, "policy_code": self.code(comment_id, label)}

    def seconds(self, comment_id: str) -> float:
        """Return how long this person takes, in seconds: log-normal with median 6."""
        chance = _chance(self.seed, f"seconds {comment_id}")
        return round(chance.lognormvariate(1.8, 0.5), 3)


def _chance(seed: int, name: str) -> random.Random:
    digest = hashlib.blake2b(f"{seed} {name}".encode(), digest_size=8).digest()
    return random.Random(int.from_bytes(digest))  # noqa: S311 - a simulation


@dataclass(frozen=True, kw_only=True)
class ShiftReport:
    """The result of a shift of simulated moderators."""

    #: Labels that were accepted.
    decisions: int
    skips: int
    #: Items escalated to a lead.
    escalations: int
    #: Responses 404 or 409: the item was leased to someone else or withdrawn.
    conflicts: int


def work(
    base_url: str,
    moderators: Sequence[SimulatedModerator],
    truth: Mapping[str, tuple[str, int]],
    *,
    limit: int | None = None,
    concurrency: int = 4,
    escalated: bool = False,
) -> ShiftReport:
    """Let `moderators` work the queue at `base_url` until none of them is served an item.

    `truth` has the id and the true label (1 toxic, 0 not) of every comment that may be served, by
    its text: people are served no ids of comments. The shift also ends after `limit` labels, skips
    and escalations. With `escalated` they are leads, who adjudicate escalated items. At most
    `concurrency` people work at once, each with a connection.
    Raises `QueueError` for a comment that `truth` lacks or an API that keeps failing, and
    `AccessDeniedError` for a rejected token.
    """
    budget = threading.Semaphore(sys.maxsize if limit is None else limit)
    shifts: list[Counter[str]] = [Counter() for _ in moderators]
    request = {"escalated": True} if escalated else {}

    def work_once(moderator: SimulatedModerator, shift: Counter[str]) -> int:
        """Return how many items were served, until none is."""
        headers = {"Authorization": f"Bearer {moderator.token}"}
        served = 0
        with httpx.Client(base_url=base_url, headers=headers, timeout=30.0) as client:
            while budget.acquire(blocking=False):
                answer = _send(client, "/api/v1/leases", request, {})
                if answer.status_code == httpx.codes.NO_CONTENT:
                    budget.release()
                    break
                served += 1
                shift[_decide(client, moderator, truth, answer.json())] += 1
        return served

    with ThreadPoolExecutor(max_workers=max(1, min(concurrency, len(moderators)))) as pool:
        # What one person skips, or labels first of two, is served to the others. The last rounds
        # are sequential: concurrently, a person who is not served may hold the last of the limit.
        while sum(pool.map(work_once, moderators, shifts)) or sum(
            map(work_once, moderators, shifts)
        ):
            pass
    done = sum(shifts, Counter[str]())
    return ShiftReport(
        decisions=done["label"],
        skips=done["skip"],
        escalations=done["escalate"],
        conflicts=done["conflicts"],
    )


def _decide(
    client: httpx.Client,
    moderator: SimulatedModerator,
    truth: Mapping[str, tuple[str, int]],
    lease: dict[str, Any],
) -> str:
    """Return the action that was accepted, or `conflicts`."""
    item = lease["item"]
    try:
        comment_id, label = truth[item["text"]]
    except KeyError:
        raise QueueError(
            f"the true label of item {item['id']} is unknown; pass the labels of all comments that "
            "may be served"
        ) from None
    decision = moderator.answer(comment_id, label)
    body = {"lease_token": lease["token"], "seconds": moderator.seconds(comment_id), **decision}
    key = {"Idempotency-Key": lease["token"]}
    answer = _send(client, f"/api/v1/items/{item['id']}/decisions", body, key)
    conflict = answer.status_code in (httpx.codes.NOT_FOUND, httpx.codes.CONFLICT)
    return "conflicts" if conflict else str(decision["action"])


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
            raise AccessDeniedError(
                f"{client.base_url} rejected a moderator's token; issue a new one"
            )
        if answer.is_success or answer.status_code in (404, 409):
            return answer
        problem = f"status {answer.status_code}"
        if not answer.is_server_error:
            break
    raise QueueError(
        f"{client.build_request('POST', path).url} failed with {problem}; check that the console "
        "runs"
    )
