"""Parts 8 and 11 from an audit in memory: rates from its result, the rest blank with the reason."""

import re
from collections.abc import Mapping
from dataclasses import replace

import pytest
from examples import examples
from golden_numbers import assert_reads_as
from hypothesis import given
from hypothesis import strategies as st

from audits.dsa.half_year import GOLDEN, MEASURES, audited, cells, part_8, part_11
from modwatch.audits.dsa.from_audit import Measures, automated_means, qualitative
from modwatch.audits.dsa.statement import Missing, value_text
from modwatch.audits.dsa.validation import validate
from modwatch.audits.dsa.vocabulary import LANGUAGES, NAM_TOTAL, OWN_INITIATIVE, TOTAL, Indicator
from modwatch.common.errors import AuditError, DsaReportError


@pytest.mark.parametrize("kind", ["ordinary", "insufficient", "no language", "one-sided"])
def test_the_validator_finds_nothing_wrong(kind):
    assert validate(part_8(kind)) == []
    assert validate(part_8(kind, {"": MEASURES[""]})) == []
    assert validate(part_11(kind)) == []


@pytest.mark.parametrize(
    ("part", "name"),
    [(part_8, "audit_automated_means.csv"), (part_11, "audit_qualitative.csv")],
)
def test_it_reads_as_in_the_golden_file(part, name):
    assert_reads_as(part().decode(), (GOLDEN / name).read_bytes().decode(), GOLDEN / name)


def test_rates_are_the_results_own():
    plan, result = audited()
    means = automated_means(plan, result, MEASURES, service="Forum")
    found = {figure["metric"]: figure for figure in result["figures"]}
    for indicator, metric in (
        (Indicator.ACCURACY, "accuracy"),
        (Indicator.PRECISION, "precision"),
        (Indicator.RECALL, "recall"),
    ):
        for scope in (TOTAL, OWN_INITIATIVE):
            rate = means.scopes[scope].value_of(indicator)
            assert found[metric]["status"] == "ok"
            for name in ("value", "low", "high", "labels"):
                assert getattr(rate, name) == found[metric][name]
            assert rate.level == 0.95


def test_of_a_language_its_domain_is_reported_where_the_labels_suffice():
    plan, result = audited()
    rows = cells(part_8())
    found = 0
    for domain in result["domains"]:
        for figure in domain["figures"]:
            if figure["metric"] == "prevalence_unflagged":
                continue
            row = rows[domain["value"], figure["metric"].capitalize()]
            found += figure["status"] == "ok"
            if figure["status"] == "ok":
                assert float(row["Value"]) == pytest.approx(figure["value"], abs=5.1e-5)
            else:
                assert row["Value"] == ""
                assert figure["reason"] in row["Contextual Information"]
    assert found >= 3
    assert plan.digest == result["plan"]


@pytest.mark.parametrize(
    ("measures", "scope", "reason"),
    [
        (MEASURES, "bg", "no comments of the period are known to be in this language"),
        (MEASURES | {"bg": Measures(comments=49, decided=49)}, "bg", "fewer than 50 comments"),
        (MEASURES | {"bg": Measures(comments=50, decided=50)}, "bg", "the audit has no estimates"),
        (MEASURES | {"de-AT": Measures(comments=1, decided=1)}, "de", "2 different tags"),
        ({"": Measures(comments=9, decided=9)}, "de", "the language of the comments is unknown"),
        (MEASURES, NAM_TOTAL, "does not process notices"),
    ],
)
def test_a_blank_rate_says_why(measures, scope, reason):
    figures = automated_means(*audited(), measures, service="Forum").scopes[scope]
    for rate in (figures.accuracy, figures.precision, figures.recall):
        assert isinstance(rate, Missing)
        assert reason in rate.reason


def test_too_few_labels_leave_a_blank_with_the_number_that_there_were():
    row = cells(part_8("insufficient"))[TOTAL, "Recall"]
    assert row["Value"] == ""
    assert "would do. Labels: 400." in row["Contextual Information"]


def test_a_language_by_region_is_reported_as_the_language():
    plan, result = audited()
    regional = [row | {"value": "de-AT"} if row["value"] == "de" else row for row in
                result["domains"]]  # fmt: skip
    measures = {"de-AT": MEASURES["de"]}
    means = automated_means(plan, result | {"domains": regional}, measures, service="Forum")
    plain = automated_means(plan, result, {"de": MEASURES["de"]}, service="Forum")
    assert means.scopes["de"] == plain.scopes["de"]
    assert not isinstance(means.scopes["de"].precision, Missing)


def test_counts_are_zero_only_where_they_are_known():
    rows = cells(part_8())
    solely = Indicator.MEASURES_SOLELY.value
    assert rows["bg", solely]["Value"] == "0"
    assert "of unknown language in the period: 858" in rows["bg", solely]["Contextual Information"]
    assert rows[NAM_TOTAL, Indicator.NOTICES_SOLELY.value]["Value"] == ""
    unknown = cells(part_8("ordinary", {"": MEASURES[""]}))
    assert unknown["bg", solely]["Value"] == ""
    assert unknown[TOTAL, solely]["Value"] == "20"


def test_rates_of_all_decisions_are_called_so():
    rows = cells(part_8())
    recall = rows[TOTAL, "Recall"]["Contextual Information"]
    others = rows[TOTAL, Indicator.MEASURES_NOT.value]["Contextual Information"]
    assert recall.startswith("Of all decisions by automated means, including those")
    assert "accuracy, precision and recall include the preceding automated" in others


def test_a_bound_is_called_one():
    recall = cells(part_8("one-sided"))[TOTAL, "Recall"]["Contextual Information"]
    assert "90 % confidence interval" in recall
    assert "lower bound only" in recall
    assert "only the lower bound is given" in part_11("one-sided").decode()


def test_a_result_of_another_plan_is_refused():
    plan, result = audited()
    other = replace(plan, deadline_days=3)
    with pytest.raises(AuditError, match="the result belongs to another plan"):
        automated_means(other, result, MEASURES, service="Forum")
    with pytest.raises(DsaReportError, match="service"):
        automated_means(plan, result, MEASURES, service=" ")


def test_the_words_hold_every_figure_and_whose_decision_stands():
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


def test_annotators_without_errors_agree():
    _, result = audited("confirmed")
    assert result["agreement"][0]["value"] == pytest.approx(1)


def test_the_words_say_what_is_not_known():
    plan, result = audited("insufficient")
    words = qualitative(plan, result, MEASURES, service="Forum").accuracy
    assert "that was flagged: unknown. 0 positive" in words


TAGS = st.sampled_from(["", "de", "de-AT", "DE", "el", "gr", "nb", "he", "pt-BR", "xx", "ga"])


@st.composite
def measures(draw: st.DrawFn) -> Measures:
    solely, not_solely, rest = (draw(st.integers(0, 10**9)) for _ in range(3))
    return Measures(
        comments=solely + not_solely + rest,
        decided=solely + not_solely + rest,
        solely=solely,
        not_solely=not_solely,
        reviewed=not_solely,
    )


@examples(60)
@given(found=st.dictionaries(TAGS, measures()))
def test_languages_and_what_is_in_none_of_them_make_the_total(found):
    content = part_8("ordinary", found)
    assert validate(content) == []
    rows = cells(content)
    whole = sum(found.values(), Measures())
    for indicator, wanted in (
        (Indicator.MEASURES_SOLELY, whole.solely),
        (Indicator.MEASURES_NOT, whole.not_solely),
    ):
        assert int(rows[TOTAL, indicator]["Value"]) == wanted
        assert int(rows[OWN_INITIATIVE, indicator]["Value"]) == wanted
        if any(found):
            listed = sum(int(rows[code, indicator]["Value"]) for code in LANGUAGES)
            assert listed == wanted - left_in_words(rows, indicator)


def left_in_words(rows: Mapping[tuple[str, str], dict[str, str]], indicator: Indicator) -> int:
    """Return what the context of own initiative says to be in no row of a language."""
    context = rows[OWN_INITIATIVE, indicator]["Contextual Information"]
    matches = re.search(
        r"official language of the EU: (\d+) solely by automated means and (\d+)", context
    )
    return int(matches[1 if indicator is Indicator.MEASURES_SOLELY else 2]) if matches else 0
