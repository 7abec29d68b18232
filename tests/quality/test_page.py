import base64
import hashlib
import re
from dataclasses import fields, replace
from datetime import date
from pathlib import Path

import pytest

from modwatch.quality import (
    check_comments,
    check_scores,
    profile_comments,
    profile_scores,
    render_index,
    render_page,
)
from modwatch.quality.page import Bar, DayLine, DayPage, Strip

GOLDEN = Path(__file__).resolve().parent.parent / "golden" / "quality"
TEMPLATES = Path(render_page.__code__.co_filename).parent / "templates"

HOSTILE = "<script>alert('hostile')</script>"


@pytest.fixture
def verdicts(landed, scores, day, usual):
    """A day with refused rows, a warning and a bad score, after three usual ones."""
    history = usual(3, 40)
    batch = landed(
        200, text=[" "] * 3 + ["x"] * 197, problem=[None] * 3 + ["broken"] + [None] * 196
    )
    checked = check_comments(profile_comments([batch], day=day), history=history)
    ids = batch["comment_id"].slice(4)
    batches = [scores(ids.to_pylist(), [2.0] + [0.1] * 195)]
    return [
        checked.verdict,
        check_scores(profile_scores(batches, day=day, comment_ids=[ids])).verdict,
    ]


def golden(name: str, text: str) -> None:
    expected = (GOLDEN / name).read_text("utf-8")
    assert text == expected, f"{name} changed; if that is meant, write the new text to {GOLDEN}"


def test_page_of_a_day_with_everything(verdicts, usual):
    golden("day.html", render_page(verdicts, history=usual(3, 40)))


def test_page_of_a_rejected_day(day, usual):
    history = usual(3, 40)
    verdict = check_comments(profile_comments([], day=day), history=history).verdict

    golden("rejected.html", render_page([verdict], history=history))


def test_list_of_days(verdicts, usual):
    golden("index.html", render_index([*usual(2, 40), *verdicts]))


def test_list_of_no_days():
    assert "No day has been checked yet." in render_index([])


def test_a_passed_day_has_nothing_to_say(landed, check):
    page = render_page([check(landed(10)).verdict])

    assert "<p>Nothing.</p>" in page
    assert "no earlier day was checked" in page
    assert "scores of this day have not been checked yet" in page


def test_the_scores_may_come_first(verdicts):
    assert render_page(verdicts[::-1]) == render_page(verdicts)


def test_hostile_values_are_not_on_the_page(landed, check):
    columns = ["comment_id", "text", "platform", "language", "author_id", "thread_id", "problem"]

    checked = check(landed(3, **{name: [HOSTILE, HOSTILE, None] for name in columns}))
    page = render_page([checked.verdict])

    assert "hostile" not in page + checked.verdict.to_json()
    assert "<script" not in page


def test_hostile_names_in_a_stored_verdict_are_escaped(landed, check):
    verdict = check(landed(3)).verdict
    forged = replace(verdict, quarantined={HOSTILE: 1})

    assert "<script" not in render_page([forged])


def test_a_page_loads_nothing_and_runs_nothing(verdicts):
    for page in (render_page(verdicts), render_index(verdicts)):
        assert re.search(r"content=\"default-src 'none'; style-src 'sha256-", page)
        assert not re.search(
            r"<script|<link|<img|<iframe|javascript:| on\w+=|style=|url\(|https?:", page
        )


def test_the_style_sheet_is_the_one_that_the_policy_allows(verdicts):
    page = render_page(verdicts)

    (style,) = re.findall(r"<style>(.*?)</style>", page, flags=re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"style-src 'sha256-{digest}'" in page


@pytest.mark.parametrize(
    ("context", "name", "template"),
    [
        (DayPage, "page", "day.html"),
        (Strip, "page.strip", "day.html"),
        (Bar, "bar", "day.html"),
        (DayLine, "line", "index.html"),
    ],
)
def test_templates_use_every_field_of_their_context(context, name, template):
    text = (TEMPLATES / template).read_text("utf-8")

    unused = [f.name for f in fields(context) if f"{name}.{f.name}" not in text]
    assert unused == []


def test_the_strip_shows_the_latest_days(landed, check, usual):
    verdict = replace(check(landed(80)).verdict, day=date(2026, 3, 1))
    past = usual(1, 40)[0]
    history = [replace(past, day=date(2026, 1, 1 + n)) for n in range(31)]

    page = render_page([verdict], history=history)

    assert page.count("<rect") == 28
    assert "from 2026-01-05 to 2026-01-31, the fewest a day were 40 and the most 40" in page
