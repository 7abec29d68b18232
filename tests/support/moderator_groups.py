"""Labels of moderators who chose groups, put into a lake without the queue before them."""

import datetime
from collections.abc import Mapping

import numpy as np
from lake_days import batch, put_scores
from sqlalchemy import Engine, text

from modwatch.data.lake.delta import Lake
from modwatch.data.lake.schemas import ANNOTATIONS
from modwatch.installation.resources import Resources
from modwatch.review.people.accounts import create_moderator
from modwatch.review.people.changes import describe_group

#: Severity from which a group calls a comment toxic: the model follows the north.
THRESHOLDS = {"north": 0.5, "south": 0.35, "west": 0.5, "east": 0.5}

#: Share of labels that are slips, where the severity is between the thresholds and elsewhere.
_HARD, _EASY = 0.25, 0.02
_SHARE, _AGAIN = 0.3, 0.15


def put_moderator_groups(
    resources: Resources,
    day: datetime.date,
    sizes: Mapping[str, int],
    *,
    comments: int = 600,
    seed: int = 0,
) -> int:
    """Give each group so many moderators with labels on `day`; return how many labels.

    They count in the group that they chose. Each labels three comments in ten, and some of these
    again. The model's probability is the severity.
    """
    rng = np.random.default_rng(seed)
    severity = rng.beta(0.8, 1.6, comments)
    put_scores(resources.lake, day, severity.astype(np.float32))
    rows: list[tuple[str, str, int]] = []
    for group, size in sizes.items():
        for number in range(size):
            person = create_moderator(resources.database, f"{group}{number}", "moderator")
            describe_group(resources.database, person.id, group)
            rows += _labels(rng, f"{group}{number}", severity, THRESHOLDS[group])
    count_as_chosen(resources.database)
    _put(resources.lake, day, rows)
    return len(rows)


def count_as_chosen(engine: Engine) -> None:
    """Let everybody who chose a group count in it, as if the draws had come out so."""
    with engine.begin() as connection:
        connection.execute(text("UPDATE moderator_group SET counted_as = group_name"))


def _labels(
    rng: np.random.Generator, name: str, severity: np.ndarray, threshold: float
) -> list[tuple[str, str, int]]:
    """Return comment, annotator and label of what one person labels, in the order of time."""
    mine = np.flatnonzero(rng.random(severity.size) < _SHARE)
    again = mine[rng.random(mine.size) < _AGAIN]
    rows = np.concatenate([mine, again])
    hard = (severity > 0.3) & (severity < 0.55)
    slip = rng.random(rows.size) < np.where(hard, _HARD, _EASY)[rows]
    label = (severity > threshold)[rows] ^ slip
    return [(f"c{row}", name, int(item)) for row, item in zip(rows, label, strict=True)]


def _put(lake: Lake, day: datetime.date, rows: list[tuple[str, str, int]]) -> None:
    comment, annotator, label = (list(column) for column in zip(*rows, strict=True))
    midnight = datetime.datetime.combine(day, datetime.time(), datetime.UTC)
    moments = [midnight + datetime.timedelta(seconds=number) for number in range(len(rows))]
    given = {"comment_id": comment, "annotator": annotator, "label": label, "decided_at": moments}
    made = batch(ANNOTATIONS, len(rows), dt=day, comment_dt=day, source="review", **given)
    lake.replace("annotations", day, [made])
