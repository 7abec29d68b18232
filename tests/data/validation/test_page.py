import base64
import hashlib
import re
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from modwatch.common.account import Account
from modwatch.common.errors import CheckError
from modwatch.data.validation.page import render_index, render_page
from modwatch.data.validation.rows import first_origins
from modwatch.data.validation.scores import validate_scores

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "quality"

HOSTILE = "<script>alert('hostile')</script>"


@pytest.fixture
def results(landed, scores, day, usual, validate):
    """A day with invalid rows, a warning and a bad score, after three usual ones."""
    batch = landed(
        200,
        text=[" "] * 3 + ["x"] * 197,
        problem=[None] * 3 + ["broken"] + [None] * 196,
        faults=[["views: unreadable_views"]] * 6 + [None] * 194,
    )
    ids = batch["comment_id"].slice(4)
    batches = [scores(ids.to_pylist(), [2.0] + [0.1] * 195)]
    account = Account(read=260, places={"header": 1, "other_day": 59, "landed": 200})
    checked = validate(batch, trailing=usual(3, 40))
    return [
        checked.result.with_account(account, first_origins([batch], checked.invalid)),
        validate_scores(batches, day=day, comment_ids=[ids]).result,
    ]


def golden(name: str, text: str) -> None:
    expected = (GOLDEN / name).read_text("utf-8")
    assert text == expected, f"{name} changed; if that is meant, write the new text to {GOLDEN}"


def test_page_of_a_day_with_everything(results, passed):
    golden("day.html", render_page(results, history=passed(3, 40)))


def test_page_of_a_rejected_day(validate, usual, passed):
    result = validate(trailing=usual(3, 40)).result

    golden("rejected.html", render_page([result], history=passed(3, 40)))


def test_the_account_must_be_of_the_landed_rows(landed, validate):
    result = validate(landed(10)).result
    assert result.with_account(None, {}).account is None
    with pytest.raises(CheckError, match="ingest the day again"):
        result.with_account(Account(read=9, places={"landed": 9}), {})


def test_list_of_days(results, passed):
    golden("index.html", render_index([*passed(2, 40), *results]))
    assert "No day has been validated yet." in render_index([])


def test_a_passed_day_has_nothing_to_say(landed, validate):
    page = render_page([validate(landed(10)).result])

    assert "<p>None.</p>" in page
    assert "No earlier day has been validated" in page
    assert "scores of this day have not been validated yet" in page


def test_the_scores_may_come_first(results):
    assert render_page(results[::-1]) == render_page(results)


def test_hostile_values_are_not_on_the_page(landed, validate):
    columns = ["comment_id", "text", "platform", "language", "author_id", "thread_id", "problem"]

    checked = validate(landed(3, **{name: [HOSTILE, HOSTILE, None] for name in columns}))
    page = render_page([checked.result])

    assert "hostile" not in page + checked.result.to_json()
    assert "<script" not in page
    # Names in a stored result that was forged are escaped.
    assert "<script" not in render_page([replace(checked.result, quarantined={HOSTILE: 1})])


def test_a_page_loads_nothing_and_runs_nothing(results):
    for page in (render_page(results), render_index(results)):
        assert re.search(r"content=\"default-src 'none'; style-src 'sha256-", page)
        assert not re.search(
            r"<script|<link|<img|<iframe|javascript:| on\w+=|style=|url\(|https?:", page
        )


def test_the_style_sheet_is_the_one_that_the_policy_allows(results):
    page = render_page(results)

    (style,) = re.findall(r"<style>(.*?)</style>", page, flags=re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"style-src 'sha256-{digest}'" in page


def test_the_strip_shows_the_latest_days(landed, validate, passed):
    result = replace(validate(landed(80)).result, day=date(2026, 3, 1))
    past = passed(1, 40)[0]
    history = [replace(past, day=date(2026, 1, 1 + n)) for n in range(31)]

    page = render_page([result], history=history)

    assert page.count("<rect") == 28
    assert "From 2026-01-05 to 2026-01-31, the minimum was 40 and the maximum 40" in page
