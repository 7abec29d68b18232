"""What the plan froze, in the words of the report."""

from dataclasses import asdict, replace

from audit_making import Auditor

from modwatch.audits.report.tables import of_plan
from modwatch.statistics.audit.sample_design import DesignOptions


def settings(done: Auditor, options: dict[str, object]) -> list[tuple[str, str]]:
    """Return the settings of the design, as the page has them."""
    rows = of_plan(replace(done.plan, options=options)).rows
    return [(str(title), str(value).replace("\u00a0", " ")) for title, value in rows][8:]


def test_no_setting_of_the_design_has_the_name_of_a_variable(done):
    assert settings(done, asdict(DesignOptions())) == [
        ("Maximum strata of unflagged comments", "8"),
        ("Variance over that of a random sample, at most", "1.1"),
        ("Share of labels for flagged comments", "optimal for recall"),
        ("Expected share of positives among unflagged", "from the scores"),
    ]


def test_what_was_chosen_stands_there(done):
    chosen = DesignOptions(flagged_share=0.25, expected_prevalence=0.005)
    result = dict(settings(done, asdict(chosen)))
    assert result["Share of labels for flagged comments"] == "25 %"
    assert result["Expected share of positives among unflagged"] == "0.5 %"


def test_a_setting_of_another_version_comes_last(done):
    for value, expected in ((None, "none"), ("a\u202eb", "a[U+202E]b")):
        assert settings(done, {"a_new_one": value, "bins": 3}) == [
            ("Maximum strata of unflagged comments", "3"),
            ("Design: a_new_one", expected),
        ]
