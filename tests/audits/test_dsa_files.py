"""The DSA's files of an audit: what counts as a measure, and of whom, in a small lake."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import numpy as np
import pytest
from audit_making import plan_of
from lake_days import put_comments, put_scores
from small_audits import REMOVED, REQUEST, plan_audit
from sqlalchemy import select

from audits.dsa.half_year import audited, cells
from installation import MONDAY, TUESDAY, Installation
from modwatch.audits.dsa.from_audit import Measures, automated_means
from modwatch.audits.dsa.qualitative import qualitative
from modwatch.audits.dsa_files import period_measures
from modwatch.audits.files import AUTOMATED_MEANS_FILE, QUALITATIVE_FILE
from modwatch.audits.review_items import enqueue_audit
from modwatch.audits.sources import scored
from modwatch.common.errors import AuditError
from modwatch.installation.resources import Resources, open_resources
from modwatch.review.people.accounts import create_moderator
from modwatch.review.queue import intake
from modwatch.review.queue.deciding import correct, undo
from modwatch.review.queue.items import NewItem
from modwatch.review.queue.leases import lease_escalated
from modwatch.review.tables import review_item
from modwatch.statistics.audit.plan import AuditPlan
from review.labelling import held, label, label_all

SIZE = 400
#: Of every ten comments of a day.
TAGS = ["en", "en-GB", "de", "de", "de", "de", "nb", None, "", "FR"]
FLAGGED, UNFLAGGED = "c390", "c10"
SERVICE = "An Example"
SOLELY = "Number of measures solely taken by automated means"
OTHERS = "Number of measures not taken by automated means"


def dsa(opened: Resources, plan: AuditPlan, result: Mapping[str, Any]) -> dict[str, bytes]:
    measures = period_measures(plan, opened.lake, opened.database)
    return {
        AUTOMATED_MEANS_FILE: automated_means(plan, result, measures, service=SERVICE),
        QUALITATIVE_FILE: qualitative(plan, result, measures, service=SERVICE),
    }


@pytest.fixture
def opened(queue_url, tmp_path, same_draws):
    """Two days of scored comments, the later half of each flagged."""
    home = Installation(values={"home": tmp_path, "database_url": queue_url})
    with open_resources(home.settings) as wiring:
        for day in (MONDAY, TUESDAY):
            put_comments(wiring.lake, day, SIZE, language=TAGS * (SIZE // 10), **REMOVED)
            put_scores(wiring.lake, day, np.arange(SIZE, dtype=np.float32) / SIZE + 0.001)
        yield wiring


def item(comment_id: str, kind: str = "review", **more: Any) -> NewItem:
    return NewItem(
        comment_id=comment_id, kind=kind, text="an invented text", reason="uncertainty", stratum=0,
        inclusion_probability=1.0, rank=1, review_score=0.2, prob=0.4, uncertainty=0.24,
        model_version="3", **more,
    )  # fmt: skip


def enqueue(opened: Resources, *new: NewItem, day: date = MONDAY) -> None:
    if new[0].kind == "audit":
        enqueue_audit(opened.database, "another", [(day, row) for row in new])
    else:
        intake.enqueue(opened.database, new, day, kinds={row.kind for row in new})


def small_plan(opened: Resources) -> AuditPlan:
    parts = [part for day in (MONDAY, TUESDAY) for part in scored(opened.lake, day)]
    return plan_of(parts, {}, 5)


def whole(opened: Resources) -> Measures:
    return sum(
        period_measures(small_plan(opened), opened.lake, opened.database).values(), Measures()
    )


UNTOUCHED = Measures(comments=2 * SIZE, decided=2 * SIZE, solely=SIZE)


def label_by(opened: Resources, name: str, judge: Callable[[str], int]) -> int:
    return len(
        label_all(opened.database, create_moderator(opened.database, name, "moderator"), judge)
    )


def test_what_no_one_reviewed_is_measured_by_automated_means_alone(opened):
    found = period_measures(small_plan(opened), opened.lake, opened.database)
    row = Measures(comments=SIZE // 5, decided=SIZE // 5, solely=SIZE // 10)
    assert found == {
        "": row + row,
        "FR": row,
        "de": row + row + row + row,
        "en": row,
        "en-GB": row,
        "nb": row,
    }


@pytest.mark.parametrize("kind", ["review", "imported"])
def test_what_a_person_decided_is_theirs(opened, kind):
    """Two flagged and two unflagged comments, one of each against the rules."""
    enqueue(opened, *(item(comment, kind) for comment in ("c390", "c391", "c10", "c11")))
    label_by(opened, "ann", lambda comment: int(comment in ("c390", "c10")))
    assert whole(opened) == replace(UNTOUCHED, solely=SIZE - 2, not_solely=2, reviewed=4)


@pytest.mark.parametrize("kind", ["audit", "gold"])
def test_labels_that_measure_people_or_the_model_are_no_measures(opened, kind):
    enqueue(opened, item(FLAGGED, kind), item(UNFLAGGED, kind))
    assert label_by(opened, "ann", lambda _: 1) == 2
    assert whole(opened) == UNTOUCHED


def test_a_confirmation_changes_nothing(opened):
    chances = {"confirmation_probability_0": 1.0, "confirmation_probability_1": 1.0}
    second = item(FLAGGED, "confirmation", round=2, confirms=[0, 1], **chances)
    enqueue(opened, item(FLAGGED), second)
    for number, name in enumerate(("ann", "ben")):
        assert label_by(opened, name, lambda _, given=number: given) == 1
    found = whole(opened)
    assert found.reviewed == 1
    assert found.solely == SIZE - 1


def test_a_review_that_is_not_finished_has_decided_nothing(opened):
    enqueue(opened, item(FLAGGED, labels_wanted=2))
    for expected, name in enumerate(("ann", "ben")):
        label_by(opened, name, lambda _, given=expected: given)
        assert whole(opened) == UNTOUCHED
    lead = create_moderator(opened.database, "lea", "lead")
    lease = lease_escalated(opened.database, lead.id)
    assert lease is not None
    label(opened.database, lead, lease, 1)
    assert whole(opened) == replace(UNTOUCHED, solely=SIZE - 1, not_solely=1, reviewed=1)


def test_what_is_taken_back_or_corrected_does_not_stand(opened):
    ann = create_moderator(opened.database, "ann", "moderator")
    enqueue(opened, item(FLAGGED))
    done = label(opened.database, ann, held(opened.database, ann), 1)
    lease = undo(opened.database, moderator_id=ann.id, decision_id=done.id, idempotency_key="undo")
    assert whole(opened) == UNTOUCHED
    label(opened.database, ann, lease, 0, "again")
    assert whole(opened) == replace(UNTOUCHED, solely=SIZE - 1, reviewed=1)
    with opened.database.connect() as connection:
        version = connection.scalar(select(review_item.c.version))
    correct(
        opened.database,
        moderator_id=ann.id,
        item_id=lease.item.id,
        label=1,
        version=version,
        idempotency_key="correction",
        reason="mistake",
    )
    assert whole(opened) == replace(UNTOUCHED, solely=SIZE - 1, not_solely=1, reviewed=1)


def test_of_a_comment_that_was_also_imported_what_was_stated_last_stands(opened):
    enqueue(opened, item(FLAGGED, "imported"))
    label_by(opened, "ann", lambda _: 1)
    enqueue(opened, item(FLAGGED))
    label_by(opened, "ben", lambda _: 0)
    assert whole(opened) == replace(UNTOUCHED, solely=SIZE - 1, reviewed=1)


def test_decisions_of_other_days_or_of_no_comment_do_not_count(opened):
    enqueue(opened, item(FLAGGED), day=MONDAY - timedelta(days=1))
    enqueue(opened, item("nowhere"))
    label_by(opened, "ann", lambda _: 1)
    assert whole(opened) == UNTOUCHED


def test_scores_that_changed_since_the_plan_are_refused(opened):
    planned = small_plan(opened)
    put_scores(opened.lake, TUESDAY, np.full(SIZE, 0.9, dtype=np.float32))
    with pytest.raises(AuditError, match=f"{TUESDAY} has 400 comments, 400 of them flagged"):
        period_measures(planned, opened.lake, opened.database)


def test_the_files_of_an_audit_hold_what_people_and_model_did(opened):
    # Approved before anybody decides: the sample is the same in every run.
    plan = plan_audit(opened, replace(REQUEST, labels=200), actor="eva")
    opened.audit("small").approve(actor="eve")
    reviewed = ("c202", "c203", "c252", "c255", "c2", "c6")
    enqueue(opened, *(item(comment) for comment in reviewed))
    label_by(opened, "ann", lambda comment: int(comment != "c252"))
    opened.audit("small").draw()
    for name in ("cem", "dan"):
        label_by(opened, name, lambda comment: int(int(comment[1:]) > 190))
    opened.audit("small").seal()
    result = opened.audit("small").estimate()
    made = dsa(opened, plan, result)
    assert list(made) == [AUTOMATED_MEANS_FILE, QUALITATIVE_FILE]
    assert not any(b"invented text" in content for content in made.values())
    rows = cells(made[AUTOMATED_MEANS_FILE])
    # c202, c203, c255, c252 are German and flagged, c2 is German and was not, c6 is Norwegian.
    for scope in ("Total number", "Own-initiative"):
        assert rows[scope, SOLELY]["Value"] == "396"
        assert rows[scope, OTHERS]["Value"] == "5"
    values = {code: rows[code, SOLELY]["Value"] for code in ("de", "en", "fr")}
    assert values == {"de": "156", "en": "80", "fr": "40"}
    assert rows["de", OTHERS]["Value"] == "4"
    left = rows["Own-initiative", SOLELY]["Contextual Information"]
    assert "official language of the EU: 120 solely by automated means and 1 others" in left
    recall = next(figure for figure in result["figures"] if figure["metric"] == "recall")
    assert float(rows["Total number", "Recall"]["Value"]) == pytest.approx(
        recall["value"], abs=5.1e-5
    )
    assert "2 different tags" in rows["en", "Recall"]["Contextual Information"]

    # The same lake in another order gives the same bytes.
    table = opened.lake.table("comments", MONDAY)
    backwards = table.take(list(range(table.num_rows))[::-1])
    opened.lake.replace("comments", MONDAY, backwards.to_batches())
    assert dsa(opened, plan, result) == made


def test_without_languages_all_are_of_none(opened):
    for day in (MONDAY, TUESDAY):
        put_comments(opened.lake, day, SIZE, **REMOVED)
    assert period_measures(small_plan(opened), opened.lake, opened.database) == {"": UNTOUCHED}


def test_a_flag_is_no_measure(opened):
    """Where the source brings no decisions, the file is empty and says why."""
    for day in (MONDAY, TUESDAY):
        put_comments(opened.lake, day, SIZE, language=TAGS * (SIZE // 10))
    enqueue(opened, item(FLAGGED), item(UNFLAGGED))
    label_by(opened, "ann", lambda comment: int(comment == FLAGGED))
    measures = whole(opened)
    assert measures == Measures(comments=2 * SIZE, not_solely=1, reviewed=2)
    plan, result = audited()
    rows = cells(automated_means(plan, result, {"de": measures}, service="A"))
    assert not any(row["Value"] for row in rows.values())
    reasons = {rows[scope, SOLELY]["Contextual Information"] for scope in ("Total number", "de")}
    assert all("a flag of a model is no measure" in reason for reason in reasons)
    words = qualitative(plan, result, {"de": measures}, service="A")
    assert b"no decisions of the service" in words


def test_whose_measure_it_is_must_be_known(opened):
    """Of persons, of nobody known, and of none: each counts as what the source says of it."""
    takers = ["person", None, "model", "rule"] * (SIZE // 4)
    decisions = ["limited"] * (SIZE // 2) + ["none"] * (SIZE // 4) + [None] * (SIZE // 4)
    for day in (MONDAY, TUESDAY):
        put_comments(opened.lake, day, SIZE, decision=decisions, decided_by=takers)
    measures = whole(opened)
    quarter = SIZE // 4
    assert measures == Measures(
        comments=8 * quarter, decided=6 * quarter, solely=2 * quarter, not_solely=quarter,
        by_unknown=quarter,
    )  # fmt: skip
    plan, result = audited()
    made = cells(automated_means(plan, result, {"": measures}, service="A"))
    row = made["Total number", SOLELY]
    assert f"does not say who took {quarter} measures" in row["Contextual Information"]
    known = replace(measures, by_unknown=0)
    made = cells(automated_means(plan, result, {"": known}, service="A"))
    row, other = (made["Total number", name] for name in (SOLELY, OTHERS))
    assert (row["Value"], other["Value"]) == (str(2 * quarter), str(quarter))
    for each in (row, other):
        unknown = f"The decisions on {2 * quarter} comments are unknown."
        assert unknown in each["Contextual Information"]
