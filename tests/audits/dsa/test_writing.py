import csv
import io
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from modwatch.audits.dsa.cells import FORMULA_SIGNS
from modwatch.audits.dsa.statement import (
    AutomatedMeans,
    Missing,
    Qualitative,
    Rate,
    ScopeValues,
    automated_means_csv,
    qualitative_csv,
)
from modwatch.audits.dsa.validation import validate
from modwatch.audits.dsa.vocabulary import (
    COLUMNS,
    LANGUAGES,
    NAM_TOTAL,
    NAM_TRUSTED_FLAGGER,
    OWN_INITIATIVE,
    TOTAL,
    Provider,
)
from modwatch.common.errors import DsaReportError

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "dsa"


def cells(content: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(content.decode(), newline="")))


def of(content: bytes, scope: str, indicator: str) -> dict[str, str]:
    return next(
        row for row in cells(content) if row["Scope"] == scope and indicator in row["Indicator"]
    )


@pytest.mark.parametrize("name", ["automated_means.csv", "qualitative.csv"])
def test_files_read_as_in_the_golden_ones(report, qualitative, name):
    content = {
        "automated_means.csv": automated_means_csv(report()),
        "qualitative.csv": qualitative_csv(qualitative),
    }[name]

    assert content == (GOLDEN / name).read_bytes(), (
        f"{name} changed; if meant, write it to {GOLDEN}"
    )


def test_shape(report):
    content = automated_means_csv(report())

    assert not content.startswith(b"\xef\xbb\xbf")
    assert content.endswith(b"\r\n")
    assert content.count(b"\n") == content.count(b"\r\n") == 21
    assert content.splitlines()[0].decode() == ",".join(COLUMNS)
    rows = [len(cells(automated_means_csv(report(provider)))) for provider in Provider]
    assert rows == [10, 15, 20, 140]
    scopes = [row["Scope"] for row in cells(automated_means_csv(report(Provider.VLOP)))]
    assert scopes[20:] == list(LANGUAGES) * 5  # by indicator, as in the template


def test_a_rate_is_rounded_and_its_interval_outwards_and_a_missing_one_says_why(report):
    row = of(automated_means_csv(report()), TOTAL, "Recall")

    assert row["Value"] == "0.8313"
    assert row["Contextual Information"] == (
        "Of all decisions by automated means, including those reviewed by a person afterwards. "
        "95 % confidence interval: 0.7000 to 0.9124. Labels: 1200. Method: two-phase sample. "
        "Audit: 2026-h1."
    )
    missing = of(automated_means_csv(report(Provider.VLOP)), "en", "Recall")
    assert missing["Value"] == ""
    assert missing["Contextual Information"] == (
        "Left blank: too few labels. Labels: 18. Audit: 2026-h1."
    )


def test_people_are_counted_apart(report):
    content = automated_means_csv(report())

    assert of(content, TOTAL, "solely taken")["Value"] == "900"
    assert of(content, TOTAL, "not taken")["Value"] == "400"
    for indicator in ("Accuracy of the automated means - Accuracy", "Precision", "Recall"):
        context = of(content, TOTAL, indicator)["Contextual Information"]
        assert context.startswith("Of all decisions by automated means, including those reviewed")
    for scope, indicator in ((TOTAL, "not taken"), (NAM_TOTAL, "not processed")):
        context = of(content, scope, indicator)["Contextual Information"]
        assert context.endswith("and recall include the preceding automated decisions.")


@pytest.mark.parametrize("sign", FORMULA_SIGNS)
def test_cells_that_begin_like_a_formula_are_neutralised(report, qualitative, sign):
    name = f"{sign}HYPERLINK(0)"
    content = qualitative_csv(replace(qualitative, purposes=name, service=name))

    assert {row["Service"] for row in cells(content)} == {f"'{name}"}
    assert cells(content)[2]["Value"] == f"'{name}"
    assert cells(automated_means_csv(report(service=name)))[0]["Service"] == f"'{name}"


def test_numbers_of_numpy_and_times_are_written_as_numbers_and_days(report):
    scopes = dict(report(Provider.INTERMEDIARY).scopes)
    share = np.float32(0.25)
    scopes[OWN_INITIATIVE] = ScopeValues(
        solely=np.int64(3),
        not_solely=np.int64(4),
        accuracy=Rate(
            value=share, low=share, high=share, labels=np.int64(8), method="m", level=0.9
        ),
        precision=Missing(reason="Unknown!"),
        recall=Missing(reason="unknown", labels=np.int64(0)),
    )
    times = {"start": datetime(2026, 1, 1, 12, tzinfo=UTC), "end": datetime.max.replace(tzinfo=UTC)}
    content = automated_means_csv(report(Provider.INTERMEDIARY, scopes=scopes, **times))
    rows = [row for row in cells(content) if row["Scope"] == OWN_INITIATIVE]

    assert [row["Value"] for row in rows] == ["3", "4", "0.2500", "", ""]
    assert (
        "90 % confidence interval: 0.2500 to 0.2500. Labels: 8."
        in rows[2]["Contextual Information"]
    )
    assert rows[3]["Contextual Information"] == "Left blank: Unknown! Audit: 2026-h1."
    assert rows[0]["Reporting period"] == "2026-01-01/9999-12-31"


#: Any text that may be stated, often one that begins like a formula.
TEXTS = st.tuples(
    st.sampled_from(["", "'", *FORMULA_SIGNS]),
    st.text(st.characters(exclude_categories=("Cc", "Cs", "Cf"), include_characters="\r\n\t")),
).map(lambda parts: "".join(parts) + ".")
COUNTS = st.integers(min_value=0, max_value=10**12)
MISSING = st.builds(Missing, reason=TEXTS, labels=st.none() | COUNTS)


@st.composite
def rates(draw) -> Rate:
    low, value, high = sorted(draw(st.lists(st.floats(0, 1), min_size=3, max_size=3)))
    labels, method = draw(st.integers(1, 10**9)), draw(TEXTS)
    return Rate(value=value, low=low, high=high, labels=labels, method=method)


@st.composite
def reports(draw) -> AutomatedMeans:
    provider = draw(st.sampled_from(Provider))
    year, half = draw(st.integers(2026, 2100)), draw(st.booleans())
    own, notices, part = draw(COUNTS), draw(COUNTS), draw(st.floats(0, 1))
    counts = {TOTAL: own + notices, OWN_INITIATIVE: own, NAM_TOTAL: notices}
    counts[NAM_TRUSTED_FLAGGER] = int(part * notices)
    figures = draw(st.lists(rates() | MISSING, min_size=3, max_size=8))
    missing = draw(st.sets(st.sampled_from(provider.scopes)))

    def count(scope: str) -> int | Missing:
        lost = Missing(reason="lost in a fire")
        return lost if scope in missing else counts.get(scope, int(part * (own + notices)))

    scopes = {
        scope: ScopeValues(
            solely=count(scope),
            not_solely=count(scope),
            **{
                name: draw(st.sampled_from(figures)) for name in ("accuracy", "precision", "recall")
            },
        )
        for scope in provider.scopes
    }
    return AutomatedMeans(
        service=draw(TEXTS),
        start=date(year, 1, 1),
        end=date(year, 6, 30) if half else date(year, 12, 31),
        provider=provider,
        audit=draw(TEXTS),
        scopes=scopes,
    )


@examples(25)
@given(reports())
def test_what_is_written_breaks_no_rule_and_reads_as_it_was_meant(report):
    content = automated_means_csv(report)

    assert validate(content) == []
    for row in cells(content):
        context = row["Contextual Information"]
        assert context.strip()
        assert (row["Value"] == "") == context.startswith("Left blank: ")
        if row["Indicator"].startswith("Accuracy") and row["Value"]:
            low, high = context.split("interval: ")[1].split(". Labels")[0].split(" to ")
            assert float(low) <= float(row["Value"]) <= float(high)


@given(st.lists(TEXTS, min_size=5, max_size=5))
def test_texts_that_are_written_break_no_rule(texts):
    fields = ("service", "description", "accuracy", "purposes", "safeguards")
    period = {"start": date(2026, 1, 1), "end": date(2026, 12, 31)}
    content = qualitative_csv(Qualitative(**period, **dict(zip(fields, texts, strict=True))))

    assert validate(content) == []
    assert [row["Value"].removeprefix("'") for row in cells(content)] == [
        text.removeprefix("'") for text in texts[1:]
    ]


def test_a_note_goes_into_the_context_of_the_counts_alone(report):
    scopes = dict(report().scopes)
    scopes[TOTAL] = replace(scopes[TOTAL], note="One day is missing")
    content = automated_means_csv(report(scopes=scopes))

    noted = [
        row for row in cells(content) if "One day is missing." in row["Contextual Information"]
    ]
    assert [(row["Scope"], row["Value"]) for row in noted] == [(TOTAL, "900"), (TOTAL, "400")]
    assert validate(content) == []
    with pytest.raises(DsaReportError, match="note: character 2"):
        replace(report().scopes[TOTAL], note="a\x00b")
