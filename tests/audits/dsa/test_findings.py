from hypothesis import given
from hypothesis import strategies as st

from modwatch.audits.dsa.cells import echo
from modwatch.audits.dsa.findings import RULES, Finding, exit_status, printed

ERROR = Finding(rule="rate-range", row=3, column="Value", message="'97.5' is above 1.")
WARNING = Finding(rule="blank-row", row=4, column=None, message="The row is empty; remove it.")
WHOLE = Finding(rule="file-empty", row=None, column=None, message="There is nothing in the file.")


def test_one_line_a_finding():
    assert printed([WHOLE, ERROR, WARNING]).splitlines() == [
        "file: There is nothing in the file. [error file-empty]",
        "3, Value: '97.5' is above 1. [error rate-range]",
        "4: The row is empty; remove it. [warning blank-row]",
    ]
    assert printed([]) == ""
    assert exit_status([WARNING]) == 0
    assert exit_status([WARNING, ERROR]) == 1


def test_rules_ask_in_one_sentence():
    assert all(rule.requirement.endswith(".") for rule in RULES.values())
    assert {rule.severity for rule in RULES.values()} == {"error", "warning", "note"}


@given(st.text())
def test_what_is_repeated_of_a_cell_is_short_and_harmless(text):
    shown = echo(text)[1:-1]

    assert len(shown) <= 40
    assert all(row.isalnum() or row in " .,:/%+-_[]()?…" for row in shown)
