"""Parts of the template that are recognised, and not validated.

Headers and rows are those of the Commission's English CSV files, as published copies have them.
"""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modwatch.audits.dsa.findings import exit_status
from modwatch.audits.dsa.validation import validate
from modwatch.audits.dsa.vocabulary import COLUMNS, OTHER_PARTS, QUALITATIVE_COLUMNS, SECTION
from modwatch.cli.main import main

IDENTIFICATION = "Applicability,Service,Indicator,Value"
CATEGORIES = (
    "Category label,Category description,"
    "Category of illegal content / incompatible with the terms and conditions"
)
ILLEGAL = (
    "Applicability,Service,Reporting period,Category of illegal content,"
    '"Description of the sub-category ""Other"""'
)
ORDERS = f"{ILLEGAL},Scope,Number of orders to act against illegal content received"
NOTICES = f"{ILLEGAL},Number of notices received ,Number of notices received from Trusted flaggers"
MEASURES = "Number of measures taken at the provider's own initiative ,Monetary restriction Other"
TERMS = ILLEGAL.replace(
    "of illegal content", "of incompatibility with the provider's terms and conditions"
)
SECTIONS = "Applicability,Service,Reporting period,Section,Indicator,Scope,Value,"
PERIOD = "2026-01-01/2026-12-31"
MODERATORS = "Number of internal moderators employed by the provider,Total number,5,"
RESOURCES = "Human resources dedicated to content moderation"
PARTS = {
    "part 1,": [IDENTIFICATION, "All,Forum,Name of the service provider,Forum Ltd"],
    "part 2,": [CATEGORIES, "Category 1,Animal welfare,STATEMENT_CATEGORY_ANIMAL_WELFARE"],
    "part 3,": [ORDERS, f"All,Forum,{PERIOD},TOTAL,,TOTAL,0"],
    "part 4,": [NOTICES, f"All,Forum,{PERIOD},TOTAL,,0,0"],
    "part 5,": [f"{ILLEGAL},{MEASURES}", f"All,Forum,{PERIOD},TOTAL,,0,0"],
    "part 6,": [f"{TERMS},{MEASURES}", f"All,Forum,{PERIOD},TOTAL,,0,0"],
    "part 7,": [
        f"{SECTIONS}Contextual Information",
        f"All,Forum,{PERIOD},Internal complaints mechanism,Number of complaints,Total number,3,",
    ],
    "part 9,": [
        f"{SECTIONS}Contextual information",
        f"Only for VLOPs,Forum,{PERIOD},{RESOURCES} ,{MODERATORS}",
    ],
    "part 10,": [SECTIONS[:-1], f"Only for VLOPs and VLOSEs,Forum,{PERIOD},AMAR,Number,TOTAL,9"],
}


@pytest.mark.parametrize("part", PARTS)
def test_another_part_is_named_and_not_validated(part):
    for ending, delimiter in (("\r\n", ","), ("\n", ";"), ("\n", "\t")):
        text = io.StringIO(newline="")
        rows = csv.reader(PARTS[part])
        csv.writer(text, delimiter=delimiter, lineterminator=ending).writerows(rows)
        [finding] = validate(text.getvalue().encode())
        assert (finding.rule, finding.severity, finding.row) == ("other-part", "note", None)
        assert finding.message.startswith(f"This is {part}")
        assert exit_status([finding]) == 0


def test_other_spellings_are_recognised():
    content = "\n".join(PARTS["part 9,"]).upper().replace("RESOURCES ", "RESOURCES  ")
    assert [finding.rule for finding in validate(content.encode("utf-8-sig"))] == ["other-part"]


def test_parts_8_and_11_with_a_fault_are_still_these(tables):
    tables["platform"].put(1, "Section", "AMAR")
    assert tables["platform"].rules() == ["section"]
    for row in tables["texts"].rows:
        del row[2]
    assert tables["texts"].rules() == ["header"]


NAMES = [*COLUMNS, *QUALITATIVE_COLUMNS, *OTHER_PARTS, SECTION, "", "other"]
ROWS = st.lists(st.lists(st.sampled_from(NAMES), min_size=3, max_size=8), min_size=1, max_size=4)


@given(ROWS)
def test_any_file_is_validated_or_another_part(rows):
    text = io.StringIO(newline="")
    csv.writer(text).writerows(rows)
    findings = validate(text.getvalue().encode())
    assert findings
    if any(finding.rule == "other-part" for finding in findings):
        assert [finding.severity for finding in findings] == ["note"]
        assert any(mark in cells for cells in rows for mark in OTHER_PARTS)


def test_the_command_names_the_part(tmp_path, capsys):
    file = tmp_path / "9.csv"
    file.write_text("\n".join(PARTS["part 9,"]))
    assert main(["audit", "validate-dsa", str(file)]) == 0
    assert capsys.readouterr().out == (
        "file: This is part 9, human resources; Modwatch validates parts 8 and 11 only. "
        "[note other-part]\n"
    )
