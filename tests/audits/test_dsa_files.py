"""The DSA's files of an audit: what counts as a measure, and of whom, in a small lake."""

import csv
import io
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from audit_making import plan_of
from lake_days import put_comments, put_scores
from small_audits import plan_audit
from sqlalchemy import select

from installation import MONDAY, TUESDAY, Installation
from modwatch.audits.dsa.from_audit import Measures, automated_means, qualitative
from modwatch.audits.dsa.statement import automated_means_csv, qualitative_csv
from modwatch.audits.dsa.validation import validate
from modwatch.audits.dsa.vocabulary import LANGUAGES
from modwatch.audits.dsa_files import period_measures
from modwatch.audits.files import AUTOMATED_MEANS_FILE, QUALITATIVE_FILE
from modwatch.audits.request import AuditRequest
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
from modwatch.statistics.audit.plan import AuditPlan, PopulationDay
from review.labelling import held, label, label_all

SIZE = 400
#: Of every ten comments of a day.
TAGS = ["en", "en-GB", "de", "de", "de", "de", "nb", None, "", "FR"]
FLAGGED, UNFLAGGED = "c390", "c10"
SERVICE = "An Example"


def dsa(opened: Resources, plan: AuditPlan, result: Mapping[str, Any]) -> dict[str, bytes]:
    measures = period_measures(plan, opened.lake, opened.database)
    return {
        AUTOMATED_MEANS_FILE: automated_means_csv(
            automated_means(plan, result, measures, service=SERVICE)
        ),
        QUALITATIVE_FILE: qualitative_csv(qualitative(plan, result, measures, service=SERVICE)),
    }


@pytest.fixture
def opened(queue_url: str, tmp_path: Path, same_draws: None) -> Iterator[Resources]:
    """Two days of scored comments, the later half of each flagged."""
    home = Installation(values={"home": tmp_path, "database_url": queue_url})
    with open_resources(home.settings) as wiring:
        for day in (MONDAY, TUESDAY):
            put_comments(wiring.lake, day, SIZE, language=TAGS * (SIZE // 10))
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


UNTOUCHED = Measures(comments=2 * SIZE, solely=SIZE)


def test_what_no_one_reviewed_is_measured_by_automated_means_alone(opened: Resources) -> None:
    found = period_measures(small_plan(opened), opened.lake, opened.database)
    row = Measures(comments=SIZE // 5, solely=SIZE // 10)
    assert found == {
        "": row + row,
        "FR": row,
        "de": row + row + row + row,
        "en": row,
        "en-GB": row,
        "nb": row,
    }


@pytest.mark.parametrize("kind", ["review", "imported"])
@pytest.mark.parametrize(
    ("comment", "expected", "solely", "not_solely"),
    [
        (FLAGGED, 1, SIZE - 1, 1),
        (FLAGGED, 0, SIZE - 1, 0),
        (UNFLAGGED, 1, SIZE, 1),
        (UNFLAGGED, 0, SIZE, 0),
    ],
)
def test_what_a_person_decided_is_theirs(
    opened: Resources, kind: str, comment: str, expected: int, solely: int, not_solely: int
) -> None:
    enqueue(opened, item(comment, kind))
    label_all(
        opened.database, create_moderator(opened.database, "ann", "moderator"), lambda _: expected
    )
    assert whole(opened) == Measures(
        comments=2 * SIZE, solely=solely, not_solely=not_solely, reviewed=1
    )


@pytest.mark.parametrize("kind", ["audit", "gold"])
@pytest.mark.parametrize("comment", [FLAGGED, UNFLAGGED])
def test_labels_that_measure_people_or_the_model_are_no_measures(
    opened: Resources, kind: str, comment: str
) -> None:
    enqueue(opened, item(comment, kind))
    done = label_all(
        opened.database, create_moderator(opened.database, "ann", "moderator"), lambda _: 1
    )
    assert len(done) == 1
    assert whole(opened) == UNTOUCHED


def test_a_confirmation_changes_nothing(opened: Resources) -> None:
    enqueue(
        opened,
        item(FLAGGED),
        item(
            FLAGGED,
            "confirmation",
            round=2,
            confirms=[0, 1],
            confirmation_probability_0=1.0,
            confirmation_probability_1=1.0,
        ),
    )
    for number, name in enumerate(("ann", "ben")):
        person = create_moderator(opened.database, name, "moderator")
        assert len(label_all(opened.database, person, lambda _, given=number: given)) == 1
    found = whole(opened)
    assert found.reviewed == 1
    assert found.solely == SIZE - 1


def test_a_review_that_is_not_finished_has_decided_nothing(opened: Resources) -> None:
    enqueue(opened, item(FLAGGED, labels_wanted=2))
    for expected, name in enumerate(("ann", "ben")):
        person = create_moderator(opened.database, name, "moderator")
        label(opened.database, person, held(opened.database, person), expected)
        assert whole(opened) == UNTOUCHED
    lead = create_moderator(opened.database, "lea", "lead")
    lease = lease_escalated(opened.database, lead.id)
    assert lease is not None
    label(opened.database, lead, lease, 1)
    assert whole(opened) == replace(UNTOUCHED, solely=SIZE - 1, not_solely=1, reviewed=1)


def test_what_is_taken_back_or_corrected_does_not_stand(opened: Resources) -> None:
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


def test_of_a_comment_that_was_also_imported_what_was_stated_last_stands(opened: Resources) -> None:
    ann, ben = (create_moderator(opened.database, name, "moderator") for name in ("ann", "ben"))
    enqueue(opened, item(FLAGGED, "imported"))
    label_all(opened.database, ann, lambda _: 1)
    enqueue(opened, item(FLAGGED))
    label_all(opened.database, ben, lambda _: 0)
    assert whole(opened) == replace(UNTOUCHED, solely=SIZE - 1, reviewed=1)


def test_decisions_of_other_days_or_of_no_comment_do_not_count(opened: Resources) -> None:
    enqueue(opened, item(FLAGGED), day=MONDAY - timedelta(days=1))
    enqueue(opened, item("nowhere"))
    label_all(opened.database, create_moderator(opened.database, "ann", "moderator"), lambda _: 1)
    assert whole(opened) == UNTOUCHED


def test_scores_that_changed_since_the_plan_are_refused(opened: Resources) -> None:
    planned = small_plan(opened)
    put_scores(opened.lake, TUESDAY, np.full(SIZE, 0.9, dtype=np.float32))
    with pytest.raises(AuditError, match=f"{TUESDAY} has 400 comments, 400 of them flagged"):
        period_measures(planned, opened.lake, opened.database)


def signed(opened: Resources, *, says: int | None = None) -> tuple[AuditPlan, dict[str, Any]]:
    """Carry an audit out whose labellers say what the score says, or always the same."""
    request = AuditRequest(audit="spring", first=MONDAY, last=TUESDAY, labels=200)
    planned = plan_audit(opened, request, actor="eva")
    opened.audit("spring").approve(actor="eve")
    opened.audit("spring").draw()
    for name in ("cem", "dan"):
        label_all(
            opened.database,
            create_moderator(opened.database, name, "moderator"),
            lambda comment: int(int(comment[1:]) > 190) if says is None else says,
        )
    opened.audit("spring").seal()
    return planned, dict(opened.audit("spring").estimate())


def over_a_half_year(
    planned: AuditPlan, result: dict[str, Any]
) -> tuple[AuditPlan, dict[str, Any]]:
    """Return the same audit, as if the half-year around it had no other comments."""
    days = {day.day: day for day in planned.population}
    first = date(2026, 1, 1)
    population = tuple(
        days.get(day)
        or PopulationDay(
            day=day, comments=0, flagged=0, model_version="", threshold=0.5, digest="00", texts="00"
        )
        for day in (first + timedelta(days=number) for number in range(181))
    )
    wider = replace(planned, population=population)
    return wider, result | {"plan": wider.digest}


def rows_of(content: bytes) -> dict[tuple[str, str], dict[str, str]]:
    rows = csv.DictReader(io.StringIO(content.decode(), newline=""))
    return {(row["Scope"], row["Indicator"].rpartition(" - ")[2]): row for row in rows}


SOLELY = "Number of measures solely taken by automated means"
OTHERS = "Number of measures not taken by automated means"


def test_the_files_of_an_audit_hold_what_people_and_model_did(opened: Resources) -> None:
    ann = create_moderator(opened.database, "ann", "moderator")
    reviewed = ("c202", "c203", "c252", "c255", "c2", "c6")
    enqueue(opened, *(item(comment) for comment in reviewed))
    label_all(opened.database, ann, lambda comment: int(comment != "c252"))
    made = dsa(opened, *over_a_half_year(*signed(opened)))
    assert list(made) == [AUTOMATED_MEANS_FILE, QUALITATIVE_FILE]
    for content in made.values():
        assert validate(content) == []
    rows = rows_of(made[AUTOMATED_MEANS_FILE])
    # c202, c203, c255, c252 are German and flagged, c2 is German and was not, c6 is Norwegian.
    for scope in ("Total number", "Own-initiative"):
        assert rows[scope, SOLELY]["Value"] == "396"
        assert rows[scope, OTHERS]["Value"] == "5"
    assert rows["de", SOLELY]["Value"] == "156"
    assert rows["de", OTHERS]["Value"] == "4"
    assert rows["en", SOLELY]["Value"] == "80"
    assert rows["fr", SOLELY]["Value"] == "40"
    listed = sum(int(rows[code, SOLELY]["Value"]) for code in LANGUAGES)
    left = rows["Own-initiative", SOLELY]["Contextual Information"]
    assert listed == 276
    assert "official language of the EU: 120 solely by automated means and 1 others" in left
    for scope in ("NAM Total", "NAM Trusted Flagger"):
        blank = [row for (of, _), row in rows.items() if of == scope]
        assert [row["Value"] for row in blank] == [""] * 5
        assert all(row["Contextual Information"] for row in blank)


def test_rates_are_those_of_the_result(opened: Resources) -> None:
    planned, result = signed(opened)
    rows = rows_of(dsa(opened, planned, result)[AUTOMATED_MEANS_FILE])
    german = next(domain for domain in result["domains"] if domain["value"] == "de")
    for scope, figures in (("Total number", result["figures"]), ("de", german["figures"])):
        for metric, name in (("precision", "Precision"), ("recall", "Recall")):
            figure = next(entry for entry in figures if entry["metric"] == metric)
            row = rows[scope, name]
            # The seed decides whether there are enough; if not, there may be a bound.
            if scope == "de" and figure["status"] != "ok":
                assert row["Value"] == ""
                found = {"lower": "The rate is at least", "upper": "The rate is at most", None: ""}
                assert found[figure["bound"]] in row["Contextual Information"]
                continue
            assert figure["status"] == "ok"
            assert float(row["Value"]) == pytest.approx(figure["value"], abs=5.1e-5)
            assert f"Labels: {figure['labels']}." in row["Contextual Information"]
    assert float(rows["Own-initiative", "Accuracy"]["Value"]) > 0.9
    assert "2 different tags" in rows["en", "Recall"]["Contextual Information"]


def test_an_audit_that_found_too_little_leaves_blank_what_it_does_not_know(
    opened: Resources,
) -> None:
    made = dsa(opened, *over_a_half_year(*signed(opened, says=0)))
    assert [validate(content) for content in made.values()] == [[], []]
    rows = rows_of(made[AUTOMATED_MEANS_FILE])
    assert rows["Total number", "Recall"]["Value"] == ""
    assert "labels of flagged comments" in rows["Total number", "Recall"]["Contextual Information"]
    assert rows["Total number", SOLELY]["Value"] == "400"


def test_without_languages_their_rows_are_blank(opened: Resources) -> None:
    for day in (MONDAY, TUESDAY):
        put_comments(opened.lake, day, SIZE)
    made = dsa(opened, *over_a_half_year(*signed(opened)))
    assert [validate(content) for content in made.values()] == [[], []]
    rows = rows_of(made[AUTOMATED_MEANS_FILE])
    of_languages = [row for (scope, _), row in rows.items() if scope in LANGUAGES]
    assert len(of_languages) == 5 * len(LANGUAGES)
    assert {row["Value"] for row in of_languages} == {""}
    assert rows["Total number", SOLELY]["Value"] == "400"


def test_the_same_lake_gives_the_same_bytes_in_whatever_order_it_lies(opened: Resources) -> None:
    planned, result = signed(opened)
    first = dsa(opened, planned, result)
    rows = opened.lake.table("comments", MONDAY)
    backwards = rows.take(list(range(rows.num_rows))[::-1])
    opened.lake.replace("comments", MONDAY, backwards.to_batches())
    assert dsa(opened, planned, result) == first


def test_no_text_of_a_comment_is_in_the_files(opened: Resources) -> None:
    for content in dsa(opened, *signed(opened)).values():
        assert b"invented text" not in content
