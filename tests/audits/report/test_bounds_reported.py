"""What an auditor reads where there is a bound, no sampling error, or no label."""

import math
from collections.abc import Callable
from dataclasses import replace

from audit_making import ALL_CONFIRMED, Auditor, label_all, make_comments, make_plan

from audits.dsa.half_year import cells
from audits.report.reading import signed, words_of
from modwatch.audits.dsa.from_audit import automated_means
from modwatch.audits.dsa.qualitative import qualitative
from modwatch.audits.dsa.vocabulary import TOTAL
from modwatch.audits.report import render_report
from modwatch.audits.report.charts import ranges
from modwatch.audits.verify import read_evidence
from modwatch.statistics.audit.plan import AuditPlan
from modwatch.statistics.audit.results import Document, computed


def reported(
    prevalence: float, labels: int, change: Callable[[AuditPlan], AuditPlan], people: object
) -> tuple[Auditor, Document, str]:
    comments = make_comments(6000, prevalence=prevalence, seed=4)
    plan = change(make_plan(comments, labels))
    auditor = Auditor(comments=comments, plan=plan, people=people)  # type: ignore[arg-type]
    auditor.begin()
    auditor.draw_and_label()
    result = computed(read_evidence(auditor.folder))
    earlier = result | {"audit": "2025-11", "last_day": "2025-11-30"}
    return auditor, result, words_of(render_report(plan, result, signed(auditor.chain), [earlier]))


def figure(result: Document, metric: str) -> Document:
    return next(item for item in result["figures"] if item["metric"] == metric)


def test_recall_is_at_least():
    auditor, result, words = reported(0.002, 60, lambda plan: plan, label_all)
    recall = figure(result, "recall")
    assert (recall["status"], recall["value"], recall["bound"]) == ("insufficient", None, "lower")
    share = f"{math.floor(1000 * recall['low']) / 10:.1f}"
    assert (
        f"Of 100 comments that should have been flagged, at least {share} were flagged "
        "(95 % confidence bound). Recall could not be estimated: "
    ) in words
    assert f"2025-11, to 2025-11-30 at least {share} %" in words  # over time
    [(_, [row])] = ranges(result, "recall", auditor.plan.rule).groups[:1]
    assert (row.value, row.high) == (None, 100)
    assert "at most" in words  # of the unflagged
    rate = cells(automated_means(auditor.plan, result, {}, service="Forum"))[TOTAL, "Recall"]
    assert rate["Value"] == ""
    assert "The rate is at least 0." in rate["Contextual Information"]
    assert b"at least 0." in qualitative(auditor.plan, result, {}, service="Forum")


def test_where_all_is_labelled_no_interval_claims_that_people_do_not_err():
    def all_flagged(plan: AuditPlan) -> AuditPlan:
        strata = (
            replace(item, labels=item.population) if item.side == "flagged" else item
            for item in plan.strata
        )
        return replace(plan, strata=tuple(strata))

    auditor, result, words = reported(0.02, 300, all_flagged, label_all)
    precision = figure(result, "precision")
    assert precision["all_labelled"]
    assert precision["low"] == precision["high"]
    assert "(all were labelled: no sampling error; errors of the annotators are not inc" in words
    assert "all labelled, no sampling error" in words
    rate = cells(automated_means(auditor.plan, result, {}, service="Forum"))[TOTAL, "Precision"]
    context = rate["Contextual Information"].partition(" Method: ")[0]
    assert rate["Value"]
    assert "confidence interval" not in context
    assert "errors of the people who labelled them are not included" in context


def test_comments_without_a_label_are_reported_first():
    def people(drawn: object, truth: object) -> list[object]:
        given = label_all(drawn, truth)  # type: ignore[arg-type]
        some = [label for number, label in enumerate(given) if number % 30][:-20]
        return [
            *some,
            *(replace(label, labeller="bob", label=1 - label.label) for label in some[::40]),
        ]

    def confirmed(plan: AuditPlan) -> AuditPlan:
        return replace(plan, confirmations=ALL_CONFIRMED)

    auditor, result, words = reported(0.05, 400, confirmed, people)
    missing = result["missing"]
    assert sum(missing.values()) == result["drawn"] - result["labelled"]
    assert all(missing.values())
    sentence = words.index(f"{result['drawn'] - result['labelled']} drawn comments of 400 have no")
    assert sentence < words.index("Model version")
    assert f"both outcomes of the {missing['passed_over']} that were passed over" in words
    recall = figure(result, "recall")
    assert recall["low"] < recall["low_if_random"] < recall["value"]
    accuracy = qualitative(auditor.plan, result, {}, service="Forum").decode()
    assert f"{missing['passed_over']} were passed over" in accuracy
    for metric in ("Specificity", "False positive rate", "Negative predictive"):
        assert metric in words  # the errors that the annex names
        assert metric in accuracy
