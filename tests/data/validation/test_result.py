import pytest

from modwatch.common.errors import CheckError
from modwatch.data.validation import ValidationResult


def test_results_survive_json(landed, validate, day):
    checked = validate(landed(30, text=[" "] * 4 + ["x"] * 26))

    assert ValidationResult.from_json(checked.result.to_json()) == checked.result


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
