"""Parts 8 and 11 from an audit in memory: rates from its result, the rest blank with the reason."""

import csv
import io
import re
from collections.abc import Mapping
from dataclasses import replace

import pytest
from examples import examples
from golden_numbers import assert_reads_as
from hypothesis import given
from hypothesis import strategies as st

from audits.dsa.half_year import GOLDEN, MEASURES, audited, cells, part_8, part_11
from modwatch.audits.dsa.cells import FORMULA_SIGNS
from modwatch.audits.dsa.from_audit import Measures, automated_means, value_text
from modwatch.audits.dsa.qualitative import qualitative
from modwatch.audits.dsa.validation import validate
from modwatch.audits.dsa.vocabulary import (
    COLUMNS,
    LANGUAGES,
    NAM_TOTAL,
    OWN_INITIATIVE,
    TOTAL,
    Indicator,
)
from modwatch.common.errors import DsaReportError


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


def test_shape():
    content = part_8()
    assert not content.startswith(b"\xef\xbb\xbf")
    assert content.endswith(b"\r\n")
    assert content.count(b"\n") == content.count(b"\r\n") == 141
    assert content.splitlines()[0].decode() == ",".join(COLUMNS)
    scopes = [line.split(",")[5] for line in content.decode().splitlines()[21:]]
    assert scopes == list(LANGUAGES) * 5  # by indicator, as in the template


@pytest.mark.parametrize("sign", FORMULA_SIGNS)
def test_cells_that_begin_like_a_formula_are_neutralised(sign):
    name = f"{sign}HYPERLINK(0)"
    rows = csv.DictReader(io.StringIO(part_11(service=name).decode(), newline=""))
    assert {row["Service"] for row in rows} == {f"'{name}"}
    assert cells(part_8(service=name))[TOTAL, "Recall"]["Service"] == f"'{name}"


def test_rates_are_the_results_own():
    _, result = audited()
    rows = cells(part_8())
    found = {figure["metric"]: figure for figure in result["figures"]}
    for metric in ("accuracy", "precision", "recall"):
        for scope in (TOTAL, OWN_INITIATIVE):
            row, figure = rows[scope, metric.capitalize()], found[metric]
            assert figure["status"] == "ok"
            assert float(row["Value"]) == pytest.approx(figure["value"], abs=5.1e-5)
            context = row["Contextual Information"]
            [ends] = re.findall(r"95 % confidence interval: (\S+) to (\S+)\. Labels", context)
            low, high = map(float, ends)
            assert figure["low"] - 1e-4 <= low <= figure["low"]
            assert figure["high"] <= high <= figure["high"] + 1e-4
            assert f"Labels: {figure['labels']}." in context


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
    rows = cells(part_8(measures=measures))
    for rate in ("Accuracy", "Precision", "Recall"):
        row = rows[scope, rate]
        assert row["Value"] == ""
        assert row["Contextual Information"].startswith("Left blank: ")
        assert reason in row["Contextual Information"]


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
    assert means == automated_means(plan, result, {"de": MEASURES["de"]}, service="Forum")
    assert cells(means)["de", "Precision"]["Value"]


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


def test_texts_that_no_file_can_have_are_refused():
    plan, result = audited()
    for made in (automated_means, qualitative):
        for service, says in ((" ", "must not be empty"), ("a\x00b", "character 2 is a control")):
            with pytest.raises(DsaReportError, match=f"service: {says}"):
                made(plan, result, MEASURES, service=service)
    days = tuple(replace(day, model_origin="\u202eelpmas") for day in plan.population)
    with pytest.raises(DsaReportError, match="is a control character"):
        qualitative(replace(plan, population=days), result, MEASURES, service="Forum")


def test_the_words_hold_every_figure_and_whose_decision_stands():
    plan, result = audited()
    words = part_11().decode()
    for figure in result["figures"]:
        if figure["metric"] in ("accuracy", "precision", "recall"):
            assert f"{value_text(figure)}. 95 % confidence interval" in words
    assert "version 7" in words
    assert plan.digest in words
    assert "People reviewed 105 of the 6000 comments of the period" in words
    days = tuple(
        replace(day, model_origin="trained on invented comments") for day in plan.population
    )
    other = qualitative(replace(plan, population=days), result, MEASURES, service="Forum")
    assert b"version 7 (trained on invented comments)" in other


def test_annotators_without_errors_agree():
    _, result = audited("confirmed")
    assert result["agreement"][0]["value"] == pytest.approx(1)


def test_the_words_say_what_is_not_known():
    assert b"that was flagged: unknown. 0 positive" in part_11("insufficient")


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
