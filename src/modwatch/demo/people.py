"""The simulated moderators of the demo, who work the queue through the console's API."""

import datetime
from collections.abc import Iterable, Iterator, Mapping, Sequence

from sqlalchemy import Engine, func, select

from modwatch.resources import Resources
from modwatch.review.checks.gold import GoldComment
from modwatch.review.people import create_moderator, issue_token, set_queues
from modwatch.review.queue import counts
from modwatch.review.simulated import SimulatedModerator, work
from modwatch.review.tables import review_item

#: Pseudonym, false-positive rate and false-negative rate of each.
DEMO_PEOPLE = (
    ("sim-quick", 0.010, 0.080),
    ("sim-steady", 0.005, 0.050),
    ("sim-strict", 0.015, 0.030),
    ("sim-careful", 0.002, 0.020),
)

#: Pseudonym and role of those who label for audits.
DEMO_AUDITORS = (
    ("sim-auditor-1", "moderator"),
    ("sim-auditor-2", "moderator"),
    ("sim-audit-lead", "lead"),
)

#: The queue that the demo's rules, `queue_rules.toml`, keep for audits.
AUDIT_QUEUE = "audits"

#: What they now and then do instead of labelling.
_SKIP_RATE, _ESCALATE_RATE = 0.01, 0.02

#: What they say of toxic comments.
_CODES = ("harassment.insult", "threat.person", "hate.origin", "hate.slur")


def hire(engine: Engine) -> list[SimulatedModerator]:
    """Return the simulated moderators, with accounts and tokens."""
    return [
        SimulatedModerator(
            token=issue_token(engine, create_moderator(engine, name, "moderator").id),
            false_positive_rate=false_positive,
            false_negative_rate=false_negative,
            seed=seed,
            skip_rate=_SKIP_RATE,
            escalate_rate=_ESCALATE_RATE,
            codes=_CODES,
        )
        for seed, (name, false_positive, false_negative) in enumerate(DEMO_PEOPLE)
    ]


def hire_lead(engine: Engine) -> SimulatedModerator:
    """Return the simulated lead, who settles what the moderators escalate."""
    return SimulatedModerator(
        token=issue_token(engine, create_moderator(engine, "sim-lead", "lead").id),
        false_positive_rate=0.001,
        false_negative_rate=0.005,
        seed=len(DEMO_PEOPLE),
        codes=_CODES,
    )


def hire_auditors(engine: Engine) -> list[SimulatedModerator]:
    """Return the simulated people who label for audits, the last of them a lead.

    They work the queue of audits and no other, with more care than others have the time for.
    """
    hired = []
    for seed, (name, role) in enumerate(DEMO_AUDITORS, len(DEMO_PEOPLE) + 1):
        person = create_moderator(engine, name, role)
        set_queues(engine, person.id, [AUDIT_QUEUE])
        hired.append(
            SimulatedModerator(
                token=issue_token(engine, person.id),
                false_positive_rate=0.0005,
                false_negative_rate=0.01,
                seed=seed,
                codes=_CODES,
            )
        )
    return hired


def visitor_token(engine: Engine) -> str:
    """Return a token with which whoever runs the demo logs in to the console."""
    lifetime = datetime.timedelta(hours=12)
    return issue_token(engine, create_moderator(engine, "visitor", "lead").id, lifetime=lifetime)


class Shift:
    """The simulated moderators and their lead at work.

    They know the truth, of gold comments too, and err at their own rates.
    """

    def __init__(
        self, at: Resources, people: Sequence[SimulatedModerator], gold: Iterable[GoldComment] = ()
    ) -> None:
        #: Labels, the lead's among them.
        self.decisions = 0
        #: Those by which the lead settled what was escalated.
        self.settled = 0
        self._at = at
        self._people = people
        self._lead = hire_lead(at.database)
        self._truth = _Truth(at, {comment.comment_id: comment.label for comment in gold})

    def work(self, *, leave: int = 0) -> None:
        """Work the queue until it holds no more than `leave` items, and as many escalated ones."""
        while self._round(leave):
            pass

    def _round(self, leave: int) -> bool:
        """Return whether anything was done; what was skipped or settled may wait for others."""
        state, url = counts(self._at.database), self._at.settings.console_url
        limit = max(0, state.waiting - leave - (self._reserved() if leave else 0))
        report = work(url, self._people, self._truth, limit=limit)
        escalated = counts(self._at.database).escalated
        settled = work(
            url, [self._lead], self._truth, limit=max(0, escalated - leave), escalated=True
        )
        self.settled += settled.decisions
        self.decisions += report.decisions + settled.decisions
        return report.decisions + report.skips + report.escalations + settled.decisions > 0

    def _reserved(self) -> int:
        """Return how many items wait for one person alone, so for no visitor."""
        item = review_item.c
        waiting = select(func.count()).where(
            item.status == "waiting", item.reserved_for.isnot(None)
        )
        with self._at.database.connect() as connection:
            return connection.execute(waiting).scalar_one()


def label_audit(at: Resources, people: Sequence[SimulatedModerator]) -> int:
    """Let those of `hire_auditors` label all that waits for them; return how many decisions.

    The lead settles, and labels nothing: nobody may settle what they have labelled.
    """
    url, truth, decisions = at.settings.console_url, _Truth(at, {}), 0
    while True:
        report = work(url, people[:-1], truth)
        settled = work(url, people[-1:], truth, escalated=True)
        decisions += report.decisions + settled.decisions
        if not report.decisions + settled.decisions:
            return decisions


class _Truth(Mapping[str, int]):
    """The labels that came with the comments, and gold's, by comment id; read when first asked."""

    def __init__(self, at: Resources, gold: Mapping[str, int]) -> None:
        self._at = at
        self._labels = dict(gold)

    def __getitem__(self, comment_id: str) -> int:
        if comment_id not in self._labels:
            self._load()
        return self._labels[comment_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._labels)

    def __len__(self) -> int:
        return len(self._labels)

    def _load(self) -> None:
        for day in self._at.lake.days("comments"):
            rows = self._at.lake.table("comments", day, columns=["comment_id", "label"])
            ids, labels = (column.to_pylist() for column in rows.columns)
            self._labels.update(zip(ids, labels, strict=True))
