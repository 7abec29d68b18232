import pytest

from modwatch.errors import CheckError
from modwatch.quality import Verdict, check_comments, profile_comments


def test_verdicts_survive_json(landed, check, day):
    checked = check(landed(30, text=[" "] * 4 + ["x"] * 26))

    assert Verdict.from_json(checked.verdict.to_json()) == checked.verdict


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", '{"suite": "comments"}', "{"])
def test_a_broken_file_is_named_as_such(text):
    with pytest.raises(CheckError, match="a stored check result cannot be read"):
        Verdict.from_json(text)


def test_counts_come_most_frequent_first(landed, check):
    texts = [" ", "x\x00", "y\x00", *["good"] * 20]

    checked = check(landed(23, text=texts))

    assert list(checked.verdict.quarantined.items()) == [("nul_byte", 2), ("blank_text", 1)]


def test_a_few_quarantined_rows_are_no_warning(landed, check):
    checked = check(landed(100, text=[" ", *["x"] * 99]))

    assert checked.verdict.status == "passed"
    assert checked.verdict.sentence == (
        "The comments of 2026-01-05 go on: 99 of 100 are good and 1 went to quarantine."
    )


def test_failed_rules_come_in_order_of_urgency(landed, day, usual):
    batch = landed(1, text=[" "])

    verdict = check_comments(profile_comments([batch], day=day), history=usual(3, 100)).verdict

    found = [(r.level, r.severity) for r in verdict.failed]
    assert found == sorted(found, key=lambda pair: (pair[0] == "row", pair[1] == "warning"))
    assert {"volume_collapse", "quarantined_most"} <= {r.name for r in verdict.failed}
