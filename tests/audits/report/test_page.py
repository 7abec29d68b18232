"""What an auditor reads: every figure, what limits it, and how to check it; nothing hostile."""

import base64
import hashlib
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from audit_making import Auditor, label_all, make_comments, make_plan
from golden_numbers import assert_reads_as

from audits.report.reading import parsed, signed, words_of
from modwatch.audits import evidence, files
from modwatch.audits.publication import Publication, published_files
from modwatch.audits.report import render_report
from modwatch.audits.report.charts import Ranges, Row, range_of
from modwatch.audits.report.formatting import bound_of, estimate_decimals, hundredths, score
from modwatch.audits.report.page import page_context
from modwatch.audits.report.tables import Table
from modwatch.audits.verify import read_evidence
from modwatch.common.errors import AuditError
from modwatch.statistics.audit.plan import AuditPlan
from modwatch.statistics.audit.results import computed
from modwatch.statistics.audit.share_interval import IntervalOptions

Document = dict[str, Any]
Earlier = Callable[[int], list[Document]]

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "audit" / "report.html"
TEMPLATES = Path(render_report.__code__.co_filename).parent / "templates"
HOSTILE = "<script>alert('hostile')</script>\u202e\ud800\n\"&{{ 7 * 7 }}" + "W" * 300


def report_on(auditor: Auditor, *earlier: Document) -> str:
    result = json.loads(auditor.folder[files.RESULT])
    return render_report(auditor.plan, result, auditor.chain, earlier)


def unfinished(comments: Any, plan: AuditPlan, **more: Any) -> Auditor:
    """Return an audit that is labelled and not estimated."""
    auditor = Auditor(comments=comments, plan=plan, **more)
    auditor.begin()
    auditor.draw_and_label()
    return auditor


def estimated(auditor: Auditor) -> str:
    result = computed(read_evidence(auditor.folder))
    return render_report(auditor.plan, result, signed(auditor.chain))


def test_page_of_an_audit_with_everything(adaptive, result, earlier):
    page = render_report(adaptive.plan, result, adaptive.chain, earlier(4), service="Example Forum")

    assert_reads_as(page, GOLDEN.read_text("utf-8"), GOLDEN)


def test_the_mean_score_of_a_stratum_lies_in_its_range(adaptive, result):
    """Recalibrated means need not: that of the topmost flagged comments is below its range."""
    message = words_of(report_on(adaptive))

    outside = 0
    for stratum in result["strata"]:
        lower, upper = stratum["lower"] or 0.0, stratum["upper"] or 1.0
        assert lower <= stratum["mean_score"] <= upper
        outside += not lower <= stratum["score"] <= upper
        assert f"{range_of(stratum)} {score(stratum['mean_score'])} " in message
    assert outside


def test_every_figure_of_the_result_is_reported(adaptive, result):
    message = words_of(report_on(adaptive))

    for figure in [*result["figures"], *(f for d in result["domains"] for f in d["figures"])]:
        if figure["value"] is None:
            assert bound_of(figure).replace("\u00a0", " ") in message
            continue
        places = estimate_decimals(figure, adaptive.plan.rule)
        value, low, high = (hundredths(figure[end], places) for end in ("value", "low", "high"))
        assert f"{value} %" in message
        assert f"{low} to {high} %" in message
    for figure in result["figures"]:
        assert f"{figure['labels']:,}" in message
    for stratum in result["strata"]:
        assert f"{stratum['population']:,} {stratum['drawn']} {stratum['labels']}" in message
    for number in ("comments", "flagged", "drawn", "labelled", "decisions", "random_labels"):
        assert f"{result[number]:,}" in message
    for event in adaptive.chain:
        assert event.digest in message
    for name, digest in evidence.sealed_files(adaptive.chain).items():
        assert name in message
        assert digest in message


def test_the_answer_is_the_first_line(adaptive):
    message = words_of(report_on(adaptive))

    assert (
        "should have been flagged, about 85 were flagged (95 % confidence interval: 79 to 89)"
        in message
    )
    assert "that were flagged, about 95 should have been flagged" in message
    assert "(95 % confidence interval: 85 to 99)" in message
    first, then, last = map(message.index, ("about 85 were", "Model version", "Recall and"))
    assert first < then < last


def test_what_the_plan_says_of_model_and_bounds(done):
    days = [
        replace(day, model_origin="trained on invented comments") for day in done.plan.population
    ]
    rule = IntervalOptions(level=0.9, sides="lower")
    plan = replace(done.plan, population=tuple(days), rule=rule)
    message = words_of(estimated(unfinished(done.comments, plan)))

    assert "Model version 7 (trained on invented comments)" in message
    assert re.search(r"about \d+ were flagged \(90 % confidence bound: at least \d+\)", message)
    assert "one-sided" in message


def test_who_signed_stands_there(done):
    assert "Signed off by fay on 2026-02-01 00:00:00 UTC." in report_on(done)


def test_what_the_labels_do_not_suffice_for_is_stated_in_words():
    comments = make_comments(prevalence=0.004)
    auditor = unfinished(comments, make_plan(comments, labels=40))
    result = computed(read_evidence(auditor.folder))
    lacking = next(f for f in result["figures"] if f["metric"] == "recall")
    assert lacking["status"] == "insufficient"

    message = words_of(estimated(auditor))

    assert "Recall could not be estimated:" in message
    assert f"about {lacking['labels_needed']:,} labels" in message
    assert "no estimate: too few labels or positives" in message
    assert "None" not in message
    assert "nan" not in message.split()


def test_a_period_without_a_flagged_comment():
    made = make_comments()
    parts = [replace(part, flagged=part.flagged & False) for part in made.parts]
    comments = replace(made, parts=tuple(parts), threshold=1.0)
    message = words_of(estimated(unfinished(comments, make_plan(comments))))

    assert "Precision could not be estimated: no flagged comment." in message
    assert "0 of them flagged" in message


def test_comments_without_a_label_and_a_closing_note_are_limits(done):
    def few(drawn: Any, truth: Any) -> list[Any]:
        return label_all(drawn[:-3], truth)

    auditor = unfinished(done.comments, done.plan, people=few)
    closed = replace(auditor.chain[-1], note="stopped before all were labelled")
    auditor.chain[-1] = closed

    message = words_of(estimated(auditor))

    assert "3 drawn comments of 400 have no final label" in message
    assert "“stopped before all were labelled”" in message
    assert "adaptive" not in message


@pytest.mark.parametrize("number", [0, 1, 12])
def test_each_audit_has_a_row_over_time(adaptive, earlier, number):
    page = report_on(adaptive, *earlier(number)[::-1])

    pictures = over_time(page)
    assert len(pictures) == (2 if number else 0)
    assert ("There are no earlier audits" in page) == (number == 0)
    for picture in pictures:
        days = re.findall(r", to (\d{4}-\d\d-\d\d)<", picture)
        assert days == [*(f"2025-{month:02d}-28" for month in range(1, number + 1)), "2026-01-07"]
        assert picture.count("<circle") == picture.count('class="interval"') == number + 1


def over_time(page: str) -> list[str]:
    figures = re.findall(r'<figure class="ranges">.*?</figure>', page, flags=re.DOTALL)
    return [figure for figure in figures if " over time</h3>" in figure]


def test_an_earlier_audit_without_a_figure_has_no_mark(adaptive, earlier):
    audits = earlier(3)
    audits[1]["figures"] = [
        figure | {"value": None, "low": None, "high": None, "reason": "no label"}
        for figure in audits[1]["figures"]
    ]

    picture = over_time(report_on(adaptive, *audits))[0]

    assert picture.count("<circle") == 3
    assert picture.count("no estimate: too few labels or positives") == 1


def hostile_report(adaptive: Auditor, result: Document) -> str:
    chain = [
        replace(event, actor=HOSTILE, files={HOSTILE + event.action: "00"}, note=HOSTILE)
        for event in adaptive.chain
    ]
    domains = [domain | {"column": HOSTILE, "value": HOSTILE} for domain in result["domains"]]
    before = result | {"audit": HOSTILE, "model_version": HOSTILE}
    result |= {"model_version": HOSTILE, "domains": domains}
    return render_report(adaptive.plan, result, chain, [before], service=HOSTILE)


def test_hostile_names_are_words_and_a_page_loads_and_runs_nothing(adaptive, earlier, result):
    page = hostile_report(adaptive, result)
    page.encode()
    assert "script" not in parsed(page).seen
    assert "\u202e" not in page
    assert "[U+202E][U+D800][U+000A]" in words_of(page)
    assert "{{ 7 * 7 }}" in page
    for each in (page, report_on(adaptive, *earlier(2))):
        assert re.search(r"content=\"default-src 'none'; style-src 'sha256-", each)
        assert not re.search(
            r"<script|<link|<img|<iframe|javascript:|<[^>]* (on\w+|style|href|src)=|url\(|https?:",
            each,
        )


def test_the_policy_allows_the_style_sheet_and_no_comment_is_on_the_page(adaptive):
    page = report_on(adaptive)

    (style,) = re.findall(r"<style>(.*?)</style>", page, flags=re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"style-src 'sha256-{digest}'" in page
    ids = {sample.comment_id for sample in read_evidence(adaptive.folder).samples[-1]}
    assert not ids & set(re.findall(r"\w+", page))


def test_a_result_or_chain_of_another_audit_is_refused(adaptive, done, result):
    of = Publication(version="1")
    with pytest.raises(AuditError, match="the result belongs to another plan"):
        published_files(done.plan, result, done.chain, of)
    other = [replace(event, audit="other") for event in adaptive.chain]
    with pytest.raises(AuditError, match="the chain belongs to audit 'other'"):
        published_files(adaptive.plan, result, other, of)


def unused(names: Iterable[str], of: str, template: str) -> list[str]:
    text = (TEMPLATES / template).read_text("utf-8")
    return [name for name in names if not re.search(rf"\b{of}\.{name}\b", text)]


def test_templates_use_every_field_of_their_context(adaptive, result):
    for context, name in (
        (Ranges, "picture"),
        (Row, "row"),
        (Table, "table"),
    ):
        assert unused((field.name for field in fields(context)), name, "parts.html") == []
    page = page_context(adaptive.plan, result, adaptive.chain, (), "", ())
    assert unused(page, "page", "page.html") == []
