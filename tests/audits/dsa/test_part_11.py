"""Part 11 from an audit in memory."""

from dataclasses import replace

import pytest

from audits.dsa.half_year import GOLDEN, MEASURES, audited, part_11
from modwatch.audits.dsa.from_audit import automated_means, qualitative
from modwatch.audits.dsa.statement import value_text
from modwatch.audits.dsa.validation import validate
from modwatch.audits.dsa.vocabulary import TOTAL


@pytest.mark.parametrize("kind", ["ordinary", "insufficient", "no language", "one-sided"])
def test_the_validator_finds_nothing_wrong(kind: str) -> None:
    assert validate(part_11(kind)) == []


def test_it_reads_as_in_the_golden_file() -> None:
    name = "audit_qualitative.csv"
    assert part_11() == (GOLDEN / name).read_bytes(), (
        f"{name} changed; if meant, write it to {GOLDEN}"
    )


def test_a_bound_is_called_one() -> None:
    assert "only the lower bound is given" in part_11("one-sided").decode()


def test_the_words_hold_every_figure_and_whose_decision_stands() -> None:
    plan, result = audited()
    words = qualitative(plan, result, MEASURES, service="Forum")
    means = automated_means(plan, result, MEASURES, service="Forum").scopes[TOTAL]
    for rate in (means.accuracy, means.precision, means.recall):
        assert f"{value_text(rate)}. 95 % confidence interval" in words.accuracy
    assert "version 7" in words.description
    assert plan.digest in words.safeguards
    days = tuple(
        replace(day, model_origin="trained on invented comments") for day in plan.population
    )
    words = qualitative(replace(plan, population=days), result, MEASURES, service="Forum")
    assert "version 7 (trained on invented comments)" in words.description
    assert "People reviewed 105 of the 6000 comments of the period" in words.safeguards


def test_annotators_without_errors_agree() -> None:
    _, result = audited("confirmed")
    recall = next(item for item in result["uncorrected"] if item["metric"] == "recall")
    assert result["agreement"][0]["value"] == pytest.approx(1)
    # Assumed errors raise recall: some missed positives are false.
    assert all(row["recall"] > recall["value"] for row in result["sensitivity"])


def test_the_words_say_what_is_not_known() -> None:
    plan, result = audited("insufficient")
    errors = {"source": "assumed", "false_positive": 0.01, "false_negative": 0.1}
    nothing_left = errors | {"precision": 0.0, "recall": None, "cut": True}
    result = result | {"sensitivity": [nothing_left]}
    words = qualitative(plan, result, MEASURES, service="Forum").accuracy
    assert "that was flagged: unknown. 0 positive" in words
    assert "corrected" not in words  # what the labels contradict is not said
