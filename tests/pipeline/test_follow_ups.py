"""Follow-ups of a day, from the missing labels to the estimates, with real parts."""

import itertools
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from databases import unguarded
from sqlalchemy import select, text

from installation import (
    MONDAY,
    Installation,
    copy_home,
    known_labels,
    review,
)
from modwatch.data.lake.day_scores import day_scores
from modwatch.installation.resources import open_resources
from modwatch.monitoring.measurements import tables
from modwatch.monitoring.publishing.days import read_days
from modwatch.monitoring.publishing.keys import FOLLOW_UPS
from modwatch.review.people.accounts import create_moderator
from modwatch.review.queue.deciding import decide, skip
from modwatch.review.queue.leases import claim, lease
from modwatch.review.tables import review_item
from modwatch.routing.follow_ups import PARTS, draw_follow_ups
from modwatch.statistics.sampling import random_keys

# MLflow 3.17 uses a loader strategy that SQLAlchemy 2.1 deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")

COLLECT = ("collect_labels", "follow_up")


@pytest.fixture
def home(install, scored_monday):
    """An installation whose Monday waits for reviews: 30 comments, half of them the slice."""
    home = install(window_days=3, slice_share=0.5, confirmation_share=0, follow_up_share=0.3)
    copy_home(scored_monday.home, home.home)
    home.run("route")
    return home


def end_review(home: Installation) -> None:
    """Let the deadline of all items pass."""
    with open_resources(home.settings) as resources, unguarded(resources.database) as connection:
        connection.execute(text("UPDATE review_item SET due_at = due_at - interval '30 days'"))


def review_some(home: Installation, skipped: Callable[[int], bool]) -> None:
    """Let one person label all comments but those to skip, by their number in top or slice."""
    with open_resources(home.settings) as resources:
        truth = dict(known_labels(resources.lake))
        person = create_moderator(resources.database, "sue", "moderator")
        routed = resources.lake.table("routed", MONDAY, columns=["comment_id", "reason"])
        reasons = dict(zip(*(column.to_pylist() for column in routed.columns), strict=True))
        numbers = {reason: itertools.count() for reason in reasons.values()}
        while held := lease(resources.database, person.id):
            ids = {"moderator_id": person.id, "item_id": held.item.id}
            ids |= {"lease_token": held.token, "idempotency_key": held.token}
            if skipped(next(numbers[reasons[held.item.comment_id]])):
                skip(resources.database, **ids)
            else:
                decide(resources.database, label=truth[held.item.comment_id], **ids)


def answer(home: Installation) -> None:
    """Let another person label all follow-ups, as they may come in any order of lanes."""
    wanted = follow_ups(home).query("drawn")["comment_id"].tolist()
    with open_resources(home.settings) as resources:
        truth = dict(known_labels(resources.lake))
        person = create_moderator(resources.database, "ann", "moderator")
        query = select(review_item.c.id).where(review_item.c.comment_id.in_(wanted))
        with resources.database.connect() as connection:
            items = connection.scalars(query.where(review_item.c.kind == "review")).all()
        for item in items:
            held = claim(resources.database, person.id, item)
            assert held is not None
            ids = {"moderator_id": person.id, "item_id": item, "lease_token": held.token}
            label = truth[held.item.comment_id]
            decide(resources.database, label=label, idempotency_key=held.token, **ids)


def follow_ups(home: Installation) -> pd.DataFrame:
    with open_resources(home.settings) as resources:
        return resources.lake.table("follow_ups", MONDAY).to_pandas()


def labelled(home: Installation) -> tables.LabelledDay:
    with open_resources(home.settings) as resources:
        return tables.labelled_day(
            resources.lake, MONDAY, day_scores(resources.lake, MONDAY), resources.policy
        )


def recorded(home: Installation) -> dict[str, float]:
    """Return the figures of Monday about follow-ups, without their group."""
    home.run("measure", "detect_drift", "publish")
    with open_resources(home.settings) as resources:
        figures = {day.day: day.figures for day in read_days(resources.lake)}[MONDAY]
    return {key.removeprefix("review/"): figures[key].value for key in FOLLOW_UPS if key in figures}


def test_missing_labels_are_followed_up_and_estimated_with(home):
    review_some(home, skipped=lambda number: number % 3 == 0)
    home.run(*COLLECT)
    assert follow_ups(home).empty  # the review goes on
    end_review(home)
    (labels, waiting) = home.run(*COLLECT)
    rows = follow_ups(home)
    assert len(rows) == 30 - labels == 10
    assert set(rows["reason"]) == {"skipped"}
    drawn = rows[rows["drawn"]]
    assert waiting == len(drawn) > 0
    found = {"missing_skipped": 10, "follow_ups": len(drawn), "late_labels": 0}
    assert recorded(home) == found | {"follow_ups_answered": 0}
    assert not labelled(home).labelled[labelled(home).missing >= 0].any()

    answer(home)
    assert home.run(*COLLECT) == [labels + len(drawn), 0]
    day = labelled(home)
    assert day.labelled.sum() == labels + len(drawn)
    assert ((day.missing >= 0) & day.labelled).sum() == len(drawn)
    assert recorded(home) == found | {"follow_ups_answered": len(drawn)}


def test_a_label_that_came_late_and_was_not_drawn_is_left_out(home):
    review_some(home, skipped=lambda number: number % 3 == 0)
    end_review(home)
    home.run(*COLLECT)
    drawn = int(follow_ups(home)["drawn"].sum())
    review(home, name="ann")  # the follow-ups, and all others after them
    home.run(*COLLECT)
    day = labelled(home)
    assert day.late == 10 - drawn > 0
    assert day.labelled.sum() == 20 + drawn
    found = {"missing_skipped": 10, "follow_ups": drawn, "follow_ups_answered": drawn}
    assert recorded(home) == found | {"late_labels": 10 - drawn}


def test_follow_ups_are_drawn_once_and_can_be_drawn_again(home):
    review_some(home, skipped=lambda number: number % 3 == 0)
    end_review(home)
    home.run(*COLLECT)
    rows = follow_ups(home)
    review(home, name="ann", limit=2)
    home.but(follow_up_share=0.9).run(*COLLECT)
    assert follow_ups(home).equals(rows)
    with open_resources(home.settings) as resources:
        policy, salt = resources.policy, resources.sampling_salt
    keys = random_keys(
        rows["comment_id"].tolist(), day=str(MONDAY), design_digest=f"{policy.digest} follow-up",
        salt=salt,
    )  # fmt: skip
    part = np.array([PARTS.index(name) for name in rows["part"]])
    drawn, probability = draw_follow_ups(part, keys, share=policy.follow_up_share)
    assert np.array_equal(drawn, rows["drawn"])
    assert np.array_equal(probability, rows["probability"])


def test_nothing_is_drawn_when_hardly_anything_is_labelled(home):
    review_some(home, skipped=lambda number: number > 0)
    end_review(home)
    assert home.run(*COLLECT)[1] == 0
    assert follow_ups(home).empty
    assert labelled(home).missing is None
