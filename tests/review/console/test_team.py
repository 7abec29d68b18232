"""The lead's pages of error rates and overturned labels, and of agreement."""

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from modwatch.review.console.request_context import SESSION_COOKIE
from modwatch.review.people import accounts, changes
from modwatch.review.quality_control.gold import GoldComment, add_gold
from modwatch.review.quality_control.queueing import queue_quality_control
from modwatch.review.queue import intake, leases
from modwatch.review.queue.items import NewItem
from review.console.visiting import plain, session_of
from review.labelling import label_all, open_queues, routed_like_gold, settle

Make = Callable[..., NewItem]

TODAY = datetime.now(UTC).date()
NAMES = ("ann-the-first", "ben-the-second", "cai-the-third")


@pytest.fixture
def lead(engine, visitor, cora):
    visitor.cookies.set(SESSION_COOKIE, session_of(engine, cora))
    return visitor


@pytest.fixture
def overturned(engine, new_item):
    """Let n comments be labelled toxic by one person, and not toxic by two others."""

    def put(n: int, day: date = TODAY, **fields: Any) -> None:
        named = [{"comment_id": f"secret-id-{day}-{k}", **fields} for k in range(n)]
        items = [
            new_item(rank=3 * k + number, **item, **more)
            for k, item in enumerate(named)
            for number, more in enumerate(
                ({}, *({"kind": "confirmation", "round": number} for number in (2, 3))), start=1
            )
        ]
        intake.enqueue(engine, items, day)
        for number, name in enumerate(NAMES):
            person = accounts.find_moderator(engine, name) if name in known else None
            person = person or accounts.create_moderator(engine, name, "moderator")
            known.add(name)
            label_all(engine, person, lambda _, value=int(number == 0): value)  # type: ignore[misc]
        settle(engine)

    known: set[str] = set()
    return put


def test_rates_from_thirty_confirmed_labels_on(engine, lead, overturned):
    overturned(29)
    page = lead.get("/lead/errors")
    assert page.status_code == 200
    response = plain(page)
    assert (
        response.count("too few confirmed labels (29)") == 6
    )  # two rates by queue, reason and week
    tables = response.partition("By queue")[2].partition("Overturned labels Comments")[0]
    assert "%" not in tables
    overturned(1, TODAY - timedelta(1), reason="random_slice", stratum=1)
    response = plain(lead.get("/lead/errors"))
    queues = response.partition("By queue")[2].partition("By reason")[0]
    assert re.search(r"general (\d[\d.]*% \(\d[\d.]*% – \d[\d.]*%\) ){2}30 30 30", queues)
    assert re.search(r"random sample too few confirmed labels \(1\)", response)
    assert "insufficient" not in response


def test_it_opens_on_the_newest_weeks_that_have_labels(lead, overturned):
    day = TODAY - timedelta(400)
    overturned(3, day)
    assert "too few confirmed labels (3)" in plain(page := lead.get("/lead/errors"))
    assert f'name="last" value="{day}"' in page.text
    monday = day - timedelta(day.weekday()) - timedelta(weeks=7)
    assert f'name="first" value="{monday}"' in page.text


def test_no_one_is_named(lead, overturned):
    overturned(31)
    shown = lead.get("/lead/errors").text.partition("<main")[2]  # above is the reader's own name
    assert "invented text" in shown
    assert not re.search(r"the-first|the-second|the-third|pseudonym|moderator_id", shown)
    assert "secret-id" not in shown.replace("invented text of secret-id", "")
    assert not re.search(r"\d\d:\d\d", shown)
    assert "/items/" not in shown


def test_no_view_ranks_people_below_the_minimum(engine, lead, overturned):
    """Twenty-nine answers of each to gold comments, and as many retests, are no figure."""
    overturned(29)
    panel = [
        GoldComment(comment_id=f"g{k}", text="invented", label=1, source="panel") for k in range(29)
    ]
    add_gold(engine, panel)
    tomorrow = TODAY + timedelta(1)  # without the items of today, which look otherwise
    routed_like_gold(engine, tomorrow)
    queue_quality_control(
        engine, tomorrow, retest_share=1.0, gold_share=1.0, salt="s", least_days=0
    )
    for name in NAMES:
        label_all(engine, accounts.find_moderator(engine, name), lambda _: 1)
    days = {"first": str(TODAY - timedelta(1)), "last": str(TODAY + timedelta(1))}
    recent = lead.get("/lead/team", params=days).text.partition('id="gold-title"')[2]
    assert not [name for name in NAMES if name in recent]  # a lead could undo what is gold
    settle(engine)
    tables = lead.get("/lead/team", params=days).text.partition('id="gold-title"')[2]
    rows = re.findall(r"<bdi>([^<]*)</bdi>.*?insufficient data:", tables, re.S)
    assert rows == [*NAMES, *NAMES]
    assert "%" not in tables


def test_texts_are_hidden_from_who_wants_them_so_or_holds_the_comment(
    engine, lead, cora, new_item,
    overturned
):  # fmt: skip
    overturned(1)
    page = lead.get("/lead/errors", headers={"Accept-Language": "de"})
    assert "zu wenige bestätigte Labels (1)" in plain(page)
    assert "Widerlegte Labels" in plain(page)
    assert "invented text" in page.text
    assert '<details class="masked">' not in page.text
    changes.save_preferences(engine, cora.id, {"masking": "blur"})
    assert '<details class="masked">' in lead.get("/lead/errors").text
    intake.enqueue(engine, [new_item(f"secret-id-{TODAY}-0")], TODAY + timedelta(1))
    assert leases.lease(engine, cora.id) is not None
    assert "invented text" not in lead.get("/lead/errors").text


def test_a_lead_of_some_queues_reads_of_these(engine, lead, cora, overturned):
    overturned(1)
    page = lead.get("/lead/errors", params={"queue": "general"})
    assert '<option value="general" selected>' in page.text
    assert "invented text" in page.text
    assert "invented text" not in lead.get("/lead/errors", params={"queue": "de"}).text
    open_queues(engine, "de")
    changes.set_queues(engine, cora.id, ["de"])
    lead.cookies.set(SESSION_COOKIE, session_of(engine, cora))
    for path in ("/lead/errors", "/lead/errors?queue=general"):
        page = lead.get(path)
        assert "invented text" not in page.text
        assert "too few confirmed labels (0)" in plain(page)
        assert '<option value="general"' not in page.text


def test_periods_and_no_labels_in_them(lead):
    response = plain(lead.get("/lead/errors"))
    assert "All queues too few confirmed labels (0)" in response
    assert "No overturned labels in this period" in response
    for first, last in (("2026-01-02", "2026-01-01"), ("2025-01-01", "2026-01-01")):
        wrong = lead.get("/lead/errors", params={"first": first, "last": last})
        assert wrong.status_code == 422
        assert "must be in order" in plain(wrong)
