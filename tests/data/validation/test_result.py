from datetime import date, timedelta
from pathlib import Path

import pytest

from modwatch.common.errors import CheckError, LakeError
from modwatch.data.validation.result import CheckStore, ValidationResult
from modwatch.data.validation.scores import validate_scores


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", '{"suite": "comments"}', "{"])
def test_a_broken_file_is_named_as_such(text):
    with pytest.raises(CheckError, match="A stored validation result cannot be read"):
        ValidationResult.from_json(text)


def test_counts_come_most_frequent_first(landed, validate):
    texts = [" ", "x\x00", "y\x00", *["good"] * 20]

    checked = validate(landed(23, text=texts))

    assert list(checked.result.quarantined.items()) == [("nul_byte", 2), ("blank_text", 1)]


def test_a_few_quarantined_rows_are_no_warning(landed, validate):
    checked = validate(landed(100, text=[" ", *["x"] * 99]))

    assert checked.result.status == "passed"
    assert checked.result.summary == (
        "Validation of the comments of 2026-01-05 passed: 99 of 100 rows are valid, 1 quarantined."
    )


def test_failed_rules_come_in_order_of_urgency(landed, validate, usual):
    batch = landed(1, text=[" "])

    result = validate(batch, trailing=usual(3, 100)).result

    found = [(r.level, r.severity) for r in result.failed]
    assert found == sorted(found, key=lambda pair: (pair[0] == "row", pair[1] == "warning"))
    assert {"volume_collapse", "quarantined_most"} <= {r.name for r in result.failed}


DAY = date(2026, 1, 5)
NEXT = DAY + timedelta(days=1)


@pytest.fixture
def store(tmp_path):
    return CheckStore(root=str(tmp_path / "checks"))


@pytest.fixture
def result(validate, landed):
    def make(day: date = DAY, rows: int = 3) -> ValidationResult:
        return validate(landed(rows, dt=day), dt=day).result

    return make


def of_scores(day: date) -> ValidationResult:
    return validate_scores([], day=day, comment_ids=[]).result


def test_nothing_is_there_at_first(store):
    assert store.load("comments", DAY) is None
    assert store.history("comments", [DAY, NEXT]) == []
    assert store.days() == []
    assert store.read_page(DAY) is None


def test_a_result_comes_back_as_it_was(store, result):
    store.save(result())
    assert store.load("comments", DAY) == result()
    assert store.load("scores", DAY) is None
    assert store.days() == [DAY]
    store.save(result(rows=4))
    assert store.load("comments", DAY) == result(rows=4)


def test_history_has_the_asked_days_in_their_order(store, result):
    for day in (NEXT, DAY):
        store.save(result(day))
    days = [DAY - timedelta(days=1), DAY, NEXT]
    assert [found.day for found in store.history("comments", days)] == [DAY, NEXT]
    assert store.days() == [DAY, NEXT]


def test_a_new_result_on_comments_ends_that_on_scores(store, result):
    for day in (DAY, NEXT):
        store.save(of_scores(day))
    store.save(result(DAY))
    assert store.load("scores", DAY) is None
    assert store.load("scores", NEXT) is not None


def test_pages_are_kept_by_day_and_whole(store):
    place = store.save_page(DAY, "<p>été</p>")
    assert place == f"{store.root}/{DAY}/index.html"
    assert store.read_page(DAY) == "<p>été</p>"
    store.save_page(DAY, "<p>again</p>")
    assert store.read_page(DAY) == "<p>again</p>"
    assert store.save_page(None, "days") == f"{store.root}/index.html"
    assert list(Path(store.root).rglob("*.part")) == []


def test_a_half_written_file_of_a_killed_process_is_no_result(store, result):
    store.save(result())
    (Path(store.root) / str(DAY) / "scores.json.part").write_text('{"suite": "sco')
    assert store.load("scores", DAY) is None
    store.save(of_scores(DAY))
    assert store.load("scores", DAY) == of_scores(DAY)


def test_a_damaged_result_is_an_error_that_says_what_to_do(store):
    store.save_page(DAY, "")
    (Path(store.root) / str(DAY) / "comments.json").write_text('{"suite": "comments"')
    with pytest.raises(CheckError, match="run the check of its day again"):
        store.load("comments", DAY)


def test_an_object_store_url_works_as_a_folder_does(result):
    store = CheckStore(root="memory://checks-of-a-test/")
    store.save(result())
    assert store.load("comments", DAY) == result()
    assert store.days() == [DAY]


def test_an_unusable_place_names_the_setting(tmp_path, result):
    (tmp_path / "file").write_text("not a folder")
    store = CheckStore(root=str(tmp_path / "file"))
    for call in (
        lambda: store.save(result()),
        lambda: store.load("comments", DAY),
        lambda: store.save_page(DAY, ""),
        lambda: store.read_page(DAY),
    ):
        with pytest.raises(LakeError, match=r"validation results at .*file.* check MODWATCH_LAKE"):
            call()
