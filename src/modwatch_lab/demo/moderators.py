"""The simulated moderators and auditors of the demo, who use the API of the console."""

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from sqlalchemy import Engine, func, select

from modwatch.data.lake.delta import Lake
from modwatch.installation.resources import Resources
from modwatch.review.people.access_tokens import issue_token
from modwatch.review.people.accounts import create_moderator, find_moderator
from modwatch.review.people.changes import set_queues
from modwatch.review.quality_control.gold import GoldComment
from modwatch.review.queue.lanes import Lanes
from modwatch.review.queue.metrics import counts
from modwatch.review.tables import review_item
from modwatch_lab.simulated import Ratings, SimulatedModerator, work

#: Pseudonym, false-positive rate and false-negative rate.
DEMO_MODERATORS = (
    ("sim-quick", 0.010, 0.080),
    ("sim-steady", 0.005, 0.050),
    ("sim-strict", 0.015, 0.030),
    ("sim-careful", 0.002, 0.020),
)

#: Pseudonym and role of the people who label for audits.
DEMO_AUDITORS = (
    ("sim-auditor-1", "moderator"),
    ("sim-auditor-2", "moderator"),
    ("sim-audit-lead", "lead"),
)

#: False-positive and false-negative rate of each of them.
AUDITOR_ERROR_RATES = (0.0005, 0.01)

#: The queue for audits in `config/queues.toml`.
AUDIT_QUEUE = "audits"

#: Rates of skipped and escalated items.
_SKIP_RATE, _ESCALATE_RATE = 0.01, 0.02

#: Policy codes that they use for toxic comments.
_CODES = ("harassment.insult", "threat.person", "hate.origin", "hate.slur")


def create_moderators(
    engine: Engine,
    ratings: Ratings | None = None,
    error_rates: tuple[float, float] | None = None,
) -> list[SimulatedModerator]:
    """Return the simulated moderators, with accounts and tokens.

    They give real `ratings` of the comments that have some. `error_rates`: the false-positive and
    false-negative rate of all, in place of their own.
    """
    moderators = [
        _simulated(engine, name, "moderator", error_rates or (fpr, fnr), seed, ratings)
        for seed, (name, fpr, fnr) in enumerate(DEMO_MODERATORS)
    ]
    return [
        replace(person, skip_rate=_SKIP_RATE, escalate_rate=_ESCALATE_RATE) for person in moderators
    ]


def create_lead(engine: Engine, ratings: Ratings | None = None) -> SimulatedModerator:
    """Return the simulated lead, who adjudicates escalated items."""
    return _simulated(engine, "sim-lead", "lead", (0.001, 0.005), len(DEMO_MODERATORS), ratings)


def create_auditors(
    engine: Engine, lanes: Lanes, ratings: Ratings | None = None
) -> list[SimulatedModerator]:
    """Return the simulated people who label for audits; the last one is a lead.

    They work the queue of audits only, with lower error rates than the moderators.
    """
    auditors = []
    for seed, (name, role) in enumerate(DEMO_AUDITORS, len(DEMO_MODERATORS) + 1):
        auditors.append(_simulated(engine, name, role, AUDITOR_ERROR_RATES, seed, ratings))
        set_queues(engine, find_moderator(engine, name).id, [AUDIT_QUEUE], lanes=lanes)
    return auditors


def _simulated(
    engine: Engine,
    name: str,
    role: str,
    error_rates: tuple[float, float],
    seed: int,
    ratings: Ratings | None,
) -> SimulatedModerator:
    """Return a person with a new account and a token, who neither skips nor escalates."""
    return SimulatedModerator(
        token=issue_token(engine, create_moderator(engine, name, role).id),
        false_positive_rate=error_rates[0],
        false_negative_rate=error_rates[1],
        seed=seed,
        codes=_CODES,
        ratings=ratings,
    )


def visitor_token(engine: Engine) -> str:
    """Return a token for the visitor to log in to the console."""
    lifetime = datetime.timedelta(hours=12)
    return issue_token(engine, create_moderator(engine, "visitor", "lead").id, lifetime=lifetime)


class Shift:
    """Simulated moderators and a lead at work.

    They label with real ratings where there are some, else with true labels, flipped at their error
    rates.
    """

    def __init__(
        self,
        resources: Resources,
        people: Sequence[SimulatedModerator],
        gold: Iterable[GoldComment] = (),
        ratings: Ratings | None = None,
    ) -> None:
        #: Number of labels, including those of the lead.
        self.decisions = 0
        #: Number of adjudications by the lead.
        self.adjudicated = 0
        self._resources = resources
        self._people = people
        self._lead = create_lead(resources.database, ratings)
        known = {comment.text: (comment.comment_id, comment.label) for comment in gold}
        self._truth = _Truth(resources.lake, known)

    def work(self, *, leave: int = 0) -> None:
        """Work the queue until at most `leave` items, and as many escalated ones, are left."""
        while self._round(leave):
            pass

    def _round(self, leave: int) -> bool:
        """Return whether anything was done; skipped items may then wait for other people."""
        state, url = counts(self._resources.database), self._resources.settings.console_url
        limit = max(0, state.waiting - leave - (self._reserved() if leave else 0))
        report = work(url, self._people, self._truth, limit=limit)
        escalated = counts(self._resources.database).escalated
        lead = work(url, [self._lead], self._truth, limit=max(0, escalated - leave), escalated=True)
        self.adjudicated += lead.decisions
        self.decisions += report.decisions + lead.decisions
        return report.decisions + report.skips + report.escalations + lead.decisions > 0

    def _reserved(self) -> int:
        """Return the number of items that are reserved for one person, so not for the visitor."""
        item = review_item.c
        waiting = select(func.count()).where(
            item.status == "waiting", item.reserved_for.isnot(None)
        )
        with self._resources.database.connect() as connection:
            return connection.execute(waiting).scalar_one()


def label_audit(resources: Resources, people: Sequence[SimulatedModerator]) -> int:
    """Let `people`, from `create_auditors`, work their queue; return the number of decisions.

    The lead adjudicates, and is the third person where two differ.
    """
    url, truth, decisions = resources.settings.console_url, _Truth(resources.lake, {}), 0
    while True:
        report = work(url, people[:-1], truth)
        lead = work(url, people[-1:], truth, escalated=True)
        done = report.decisions + lead.decisions
        if not done:  # nothing that the others could still label
            done = work(url, people[-1:], truth).decisions
        decisions += done
        if not done:
            return decisions


class _Truth(dict[str, tuple[str, int]]):
    """Ids and labels of the source's and of gold comments by text; loaded on first use."""

    def __init__(self, lake: Lake, gold: Mapping[str, tuple[str, int]]) -> None:
        super().__init__(gold)
        self._lake = lake

    def __missing__(self, text: str) -> tuple[str, int]:
        for day in self._lake.days("comments"):
            rows = self._lake.table("comments", day, columns=["text", "comment_id", "label"])
            texts, ids, labels = (column.to_pylist() for column in rows.columns)
            self.update(zip(texts, zip(ids, labels, strict=True), strict=True))
        if text not in self:
            raise KeyError(text)
        return self[text]
