"""The simulated moderators of the demo, who work the queue through the console's API."""

import datetime
from collections.abc import Iterator, Mapping, Sequence

from sqlalchemy import Engine

from modwatch.review.people import create_moderator, issue_token
from modwatch.review.queue import counts
from modwatch.review.simulated import SimulatedModerator, work
from modwatch.wiring import Wiring

#: Pseudonym, false-positive rate and false-negative rate of each.
DEMO_PEOPLE = (
    ("sim-quick", 0.010, 0.080),
    ("sim-steady", 0.005, 0.050),
    ("sim-strict", 0.015, 0.030),
    ("sim-careful", 0.002, 0.020),
)


def hire(engine: Engine) -> list[SimulatedModerator]:
    """Return the simulated moderators, with accounts and tokens."""
    return [
        SimulatedModerator(
            token=issue_token(engine, create_moderator(engine, name, "moderator").id),
            false_positive_rate=false_positive,
            false_negative_rate=false_negative,
            seed=seed,
        )
        for seed, (name, false_positive, false_negative) in enumerate(DEMO_PEOPLE)
    ]


def visitor_token(engine: Engine) -> str:
    """Return a token with which whoever runs the demo logs in to the console."""
    lifetime = datetime.timedelta(hours=12)
    return issue_token(engine, create_moderator(engine, "visitor", "lead").id, lifetime=lifetime)


class Shift:
    """The simulated moderators at work; they know the truth, and err at their own rates."""

    def __init__(self, at: Wiring, people: Sequence[SimulatedModerator]) -> None:
        self.decisions = 0
        self._at = at
        self._people = people

    def work(self, *, leave: int = 0) -> None:
        """Work the queue until it holds no more than `leave` items."""
        limit = max(0, counts(self._at.database).waiting - leave)
        report = work(self._at.settings.console_url, self._people, _Truth(self._at), limit=limit)
        self.decisions += report.decisions


class _Truth(Mapping[str, int]):
    """The labels that came with the replayed comments, by comment id; read when first asked."""

    def __init__(self, at: Wiring) -> None:
        self._at = at
        self._labels: dict[str, int] = {}

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
