"""The simulated moderators at a real console, over HTTP."""

import datetime
import threading
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_audits import plan_audit
from sqlalchemy import text

from installation import MONDAY, TUESDAY, known_labels
from modwatch.audits.request import AuditRequest
from modwatch.audits.review_items import AuditProgress, audit_labels
from modwatch.common.connections import listen
from modwatch.installation.resources import Resources, open_resources
from modwatch.review.console.app import server
from modwatch.review.console.request_context import ConsoleOptions
from modwatch.review.log.labels import confirming_labels, current_labels
from modwatch.review.people.sessions import authenticate
from modwatch.review.quality_control.comparisons import gold_answers
from modwatch.review.quality_control.gold import add_gold
from modwatch.review.quality_control.queueing import queue_quality_control
from modwatch.review.queue.lanes import load_lanes
from modwatch.review.queue.metrics import counts
from modwatch_lab.demo import moderators
from modwatch_lab.demo.datasets import demo_data
from modwatch_lab.demo.moderators import (
    Shift,
    create_auditors,
    create_moderators,
    label_audit,
    visitor_token,
)
from review.labelling import routed_like_gold

# MLflow 3.17 uses a loader strategy that SQLAlchemy 2.1 deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")

RULES = Path(moderators.__file__).with_name("config")
AUDITORS = ("sim-auditor-1", "sim-auditor-2", "sim-audit-lead")


def audit_of_monday(resources: Resources, **changes: Any) -> None:
    """Plan and draw an audit of 80 comments."""
    day = {"first": MONDAY, "last": MONDAY, "labels": 80}
    request = AuditRequest(**{"audit": "demo", **day, **changes})
    plan_audit(resources, request, actor="eva")
    resources.audit("demo").approve(actor="eve")
    resources.audit("demo").draw()


@pytest.fixture
def staffed(install_scored, request):
    """An installation, with settings as parameters, a day in the queue, a console that answers."""
    with listen("127.0.0.1", 0) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        home = install_scored(console_url=url, **getattr(request, "param", {}))
        home.run("route", "score_challenger")
        with open_resources(home.settings) as resources:
            console = server(
                resources.database, ConsoleOptions(lanes=load_lanes(RULES / "queues.toml"))
            )
            thread = threading.Thread(target=console.run, kwargs={"sockets": [listener]})
            thread.start()
            yield resources
            console.should_exit = True
            thread.join(20)


def test_a_shift_works_the_queue_until_it_is_empty(staffed):
    shift = Shift(staffed, create_moderators(staffed.database))
    shift.work()
    state = counts(staffed.database, MONDAY)
    assert state.waiting == state.leased == 0
    again = sum(
        part.num_rows for part in current_labels(staffed.database, MONDAY, kind="confirmation")
    )
    assert again > 0
    given = [
        row for part in confirming_labels(staffed.database, MONDAY) for row in part.to_pylist()
    ]
    second = {row["comment_id"]: row for row in given if row["round"] == 2}
    differ = {name for name, row in second.items() if row["label"] != row["first_label"]}
    third = {row["comment_id"] for row in given if row["round"] == 3}
    assert third <= differ
    assert len(differ - third) <= 1 + len(differ) // 4  # escalated, or skipped by all others
    assert state.decided == shift.decisions == staffed.lake.count("routed", MONDAY) + again
    shift.work()
    assert shift.decisions == state.decided


# Without confirmations: who settled the first is not asked for the second, which then stays.
@pytest.mark.parametrize("staffed", [{"confirmation_share": 0.0}], indirect=True)
def test_the_lead_settles_what_is_escalated_and_leaves_some_to_a_visitor(staffed):
    people = [replace(person, escalate_rate=0.5) for person in create_moderators(staffed.database)]
    shift = Shift(staffed, people)
    shift.work(leave=4)
    state = counts(staffed.database, MONDAY)
    assert (state.waiting, state.escalated) == (4, 4)
    assert 0 < shift.adjudicated < shift.decisions == state.decided
    shift.work()
    state = counts(staffed.database, MONDAY)
    assert state.waiting == state.escalated == 0


@pytest.mark.soak  # tests/review/quality_control queues gold
def test_gold_is_met_from_the_second_day_on(staffed):
    gold = demo_data("synthetic").gold()
    assert sorted(comment.label for comment in gold) == [0] * 100 + [1] * 100
    assert add_gold(staffed.database, gold) == 200
    people = create_moderators(staffed.database)
    shift = Shift(staffed, people, gold)
    shift.work()
    routed_like_gold(staffed.database, TUESDAY, 300)
    with staffed.database.begin() as connection:  # in whose places the gold comes
        connection.execute(text("UPDATE review_item SET status = 'waiting' WHERE dt = :day AND "
                                "status = 'closed'"), {"day": TUESDAY})  # fmt: skip
    queue_quality_control(staffed.database, TUESDAY, retest_share=0, gold_share=1, salt="s")
    first = shift.decisions
    shift.work()
    answers = [row for part in gold_answers(staffed.database, TUESDAY) for row in part.to_pylist()]
    assert shift.decisions > first
    assert len(answers) >= 20
    assert np.mean([row["label"] == row["first_label"] for row in answers]) > 0.8
    # What the one whom it is for skips nobody labels.
    skipped = sum(
        one.label(comment.comment_id, comment.label) is None for one in people for comment in gold
    )
    assert counts(staffed.database, TUESDAY).waiting <= skipped


def test_a_visitor_may_decide_and_not_for_ever(staffed):
    person = authenticate(staffed.database, visitor_token(staffed.database))
    assert (person.pseudonym, person.role, person.reviews) == ("visitor", "lead", True)
    with staffed.database.connect() as connection:
        query = text("SELECT max(expires_at - created_at) FROM access_token")
        assert connection.scalar(query) == datetime.timedelta(hours=12)


@pytest.mark.parametrize("staffed", [{"config": RULES}], indirect=True)
def test_auditors_label_what_an_audit_drew_and_nothing_else(staffed):
    audit_of_monday(staffed)
    others = counts(staffed.database, MONDAY).waiting - 80
    assert others > 0
    people = create_auditors(staffed.database, staffed.lanes)
    decided = label_audit(staffed, people)
    assert staffed.audit("demo").progress() == AuditProgress(decided=80)
    assert counts(staffed.database, MONDAY).waiting == others
    labels = audit_labels(staffed.database, "demo")
    assert {row.labeller for row in labels} <= {*AUDITORS}
    given = [row for row in labels if row.action == "label"]
    assert len({(row.comment_id, row.labeller) for row in given}) == len(given)
    assert decided >= len(labels) >= 80
    assert label_audit(staffed, people) == 0
    assert staffed.audit("demo").seal() == 80


@pytest.mark.parametrize("staffed", [{"config": RULES}], indirect=True)
def test_auditors_know_the_truth_and_the_lead_is_the_third_where_they_differ(staffed):
    audit_of_monday(staffed, confirmed_share=1.0)
    contrary = [
        replace(person, false_positive_rate=float(number == 0), false_negative_rate=0.0)
        for number, person in enumerate(create_auditors(staffed.database, staffed.lanes))
    ]
    label_audit(staffed, contrary)
    assert staffed.audit("demo").progress().left == 0
    truth = dict(known_labels(staffed.lake))
    labels = audit_labels(staffed.database, "demo")
    given = defaultdict(list)
    for row in labels:
        given[row.comment_id].append(row)
    third = {comment for comment, rows in given.items() if len(rows) == 3}
    assert third
    assert third == {
        comment for comment, rows in given.items() if len(rows) > 1 and not truth[comment]
    }
    assert {row.action for row in labels} == {"label"}
    by_the_lead = [row for row in labels if row.labeller == "sim-audit-lead"]
    assert {row.comment_id for row in by_the_lead} == third
    assert all(row.label == truth[row.comment_id] for row in by_the_lead)
