from datetime import date, timedelta
from pathlib import Path

import pytest

from modwatch.common.errors import DayRejectedError
from modwatch.data.validation.page import publish_result
from modwatch.data.validation.result import CheckStore
from modwatch.data.validation.scores import validate_scores

DAY = date(2026, 1, 5)


@pytest.fixture
def checks(tmp_path):
    return CheckStore(root=str(tmp_path))


def test_a_rejected_day_keeps_its_result_and_names_its_page(checks, landed, validate):
    broken = validate(landed(50), dt=DAY + timedelta(days=1)).result
    assert broken.rejected
    with pytest.raises(DayRejectedError, match=r"quarantined_most.* page is .*01-06/index\.html"):
        publish_result(checks, broken)
    assert checks.load("comments", broken.day) == broken
    assert "quarantined_most" in (checks.read_page(broken.day) or "")
    assert "2026-01-06" in (Path(checks.root) / "index.html").read_text()


def test_the_page_of_a_day_shows_both_suites_and_the_days_before(checks, landed, validate, passed):
    for earlier in passed(2, 40):
        publish_result(checks, earlier)
    publish_result(checks, validate(landed(50)).result)
    publish_result(checks, validate_scores([], day=DAY, comment_ids=[]).result)
    page = checks.read_page(DAY) or ""
    assert "Validation of the comments of 2026-01-05" in page
    assert "Validation of the scores of 2026-01-05" in page
    assert "From 2026-01-03 to 2026-01-04" in page


def test_twice_leaves_the_same_files(checks, landed, validate):
    def files() -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in Path(checks.root).rglob("*.*")}

    result = validate(landed(5)).result
    publish_result(checks, result)
    before = files()
    publish_result(checks, result)
    assert files() == before
