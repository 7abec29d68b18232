import datetime
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from estimates import put_estimates
from lake_days import batch, put_comments, put_scores
from small_audits import label_everything, plan_audit

from installation import MONDAY, TUESDAY
from modwatch.audits.request import AuditRequest
from modwatch.data.lake.schemas import LABELS
from modwatch.installation.resources import Resources, open_resources
from modwatch.settings import Settings
from modwatch_lab.demo import summary
from modwatch_lab.demo.summary import audit_table, true_values

ROW = {"metric": "oc_accuracy", "strategy": "uncertainty", "alpha": 0.1, "low": 0.8, "high": 1.0}


def table(value: object, **changes: object) -> pd.DataFrame:
    return pd.DataFrame([{**ROW, "value": value, **changes}])


def cell(measured: pd.DataFrame, truth: pd.DataFrame) -> str:
    """Return the cell of OC-Acc, the third."""
    with open_resources(Settings(review_fraction=0.1)) as resources:
        return summary._cells(measured, truth, resources)[2]


def test_an_estimate_stands_with_its_interval_and_the_truth():
    assert cell(table(0.9), table(0.95)) == "0.900 [0.800, 1.000] (0.950)"


def test_an_insufficient_estimate_is_no_number():
    assert cell(table(pd.NA), table(0.95)) == "insufficient (0.950)"
    assert cell(table(np.nan), table(np.nan)) == "insufficient"
    assert cell(table(0.9).iloc[:0], table(0.95)) == "insufficient (0.950)"


def test_the_quality_of_a_perfect_ranking_is_one():
    label, prob = np.array([0, 0, 1], np.int8), np.array([0.1, 0.2, 0.9])
    assert summary._quality("perfect", label, prob) == ["perfect", "1.000", "1.000", "3", "1"]


def test_the_queue_is_summarised_in_a_line(queue_url):
    with open_resources(Settings(database_url=queue_url)) as resources:
        assert summary._queue(resources.database) == (
            "Review queue: 0 decisions, 0 escalated items adjudicated by a lead. Gold accuracy: "
            "insufficient (0 pairs of labels; 30 are needed). Agreement of first labels and "
            "confirmations: insufficient (0 pairs of labels; 30 are needed). modwatch queue "
            "verify-log: no problems."
        )


def put_day(resources: Resources, day: datetime.date, flagged: str, truth: str) -> None:
    """Put a day whose comments were flagged, and are against the rules, where there is a 1."""
    labels = [int(label) for label in truth]
    put_comments(resources.lake, day, len(truth), label=labels)
    scores = np.array([0.9 if flag == "1" else 0.1 for flag in flagged], np.float32)
    put_scores(resources.lake, day, scores + np.arange(len(scores), dtype=np.float32) / 1_000)


#: Metric, whether it depends on α, and value, low and high.
WINDOW = [
    ("review_efficiency", True, (0.6, 0.2, 0.9)),
    ("accuracy", False, (0.8, 0.7, 0.9)),
    ("oc_accuracy", True, (0.95, 0.9, 1.0)),
    ("oc_auroc", True, (None, None, None)),
]


def put_window(
    resources: Resources, day: datetime.date, **more: tuple[tuple[float, ...], int]
) -> None:
    """Put the estimates `WINDOW` of a window, and `more`: by metric, value, low and high; n."""
    ends = ("value", "low", "high")
    of_all = {"status": "ok", "effective_n": 40.0, "n": 40}
    deployed = {
        "strategy": resources.settings.strategy,
        "alpha": resources.settings.review_fraction,
    }
    rows: list[dict[str, object]] = [
        {
            **{"metric": metric, **(deployed if by_alpha else {})},
            **dict(zip(ends, values, strict=True)),
        }
        for metric, by_alpha, values in WINDOW
    ]
    for metric, (values, n) in more.items():
        rows.append({"metric": metric, "n": n, **dict(zip(ends, values, strict=True))})
    put_estimates(resources.lake, day, *(of_all | row for row in rows), window=True)


def test_all_days_stand_corrected_and_uncorrected_next_to_the_truth(small_home):
    with open_resources(small_home.but(review_fraction=0.25).settings) as resources:
        put_day(resources, MONDAY, flagged="11100000", truth="11000001")
        put_day(resources, TUESDAY, flagged="10000000", truth="10000010")
        noon = datetime.datetime(2026, 1, 5, 12, tzinfo=datetime.UTC)
        labels = {"comment_id": ["c6", "c7"], "label": [0, 1], "moderator": "m"}
        resources.lake.replace(
            "labels", MONDAY, [batch(LABELS, 2, dt=MONDAY, decided_at=noon, **labels)]
        )
        put_window(resources, TUESDAY)
        # The last two comments of either day are reviewed, one of them wrongly decided; so is a
        # third. Of 5 × 11 pairs of a toxic comment and another, three are in the wrong order.
        assert summary._all_days(resources, [MONDAY, TUESDAY]) == [
            [
                *("all days", "16", "0", "2"),
                "0.600 [0.200, 0.900] (0.500)",
                "0.800 [0.700, 0.900] (0.812)",
                "0.950 [0.900, 1.000] (0.938)",
                "insufficient (0.945)",
            ],
            [
                *("… uncorrected", "", "", ""),
                "insufficient (0.500)",
                "insufficient (0.812)",
                "insufficient (0.938)",
                "insufficient (0.945)",
            ],
        ]


def rates(n: int) -> dict[str, tuple[tuple[float, ...], int]]:
    return {
        "annotator_false_positive_rate": ((0.02, 0.01, 0.034), n),
        "annotator_false_negative_rate": ((0.2, 0.15, 0.25), n),
    }


def test_the_legend_has_the_error_rates_of_the_last_window(small):
    put_window(small, MONDAY, **rates(9), overturned=((1.0, 1.0, 1.0), 9))
    put_window(small, TUESDAY, **rates(40), overturned=((0.15, 0.15, 0.15), 40))
    assert (
        "allow for the moderators' errors: false positives 2.0% (1.0% to 3.4%), false negatives "
        "20.0% (15.0% to 25.0%), from 40 confirmed labels, 6 of them overturned. The last row "
    ) in summary._legend(small)


def planned(
    resources: Resources, last: datetime.date = TUESDAY, labels: int = 8
) -> dict[str, float]:
    """Return the truth of the days that an audit is planned for."""
    request = AuditRequest(audit="demo", first=MONDAY, last=last, labels=labels)
    plan = plan_audit(
        resources, replace(request, options=replace(request.options, bins=1)), actor="e"
    )
    return true_values(resources, plan)


def test_the_truth_is_counted_over_all_days(small):
    put_day(small, MONDAY, flagged="11100000", truth="11000001")
    put_day(small, TUESDAY, flagged="10000000", truth="10000010")
    # Four are flagged and three of them rightly; twelve are not, two of them wrongly.
    assert planned(small) == {
        "precision": 3 / 4,
        "recall": 3 / 5,
        "f1": 2 * 3 / (4 + 5),
        "accuracy": 13 / 16,
        "prevalence_unflagged": 2 / 12,
        "prevalence": 5 / 16,
    }


def figure(**changes: Any) -> dict[str, Any]:
    return {"status": "ok", "value": 0.8, "low": 0.7, "high": 0.9, "labels": 1_200, **changes}


@pytest.mark.parametrize(
    ("truth", "within"),
    [(0.7, "yes"), (0.75, "yes"), (0.9, "yes"), (0.69, "no"), (0.91, "no")],
)
def test_a_figure_of_the_audit_stands_next_to_the_truth(truth, within):
    assert summary._audit_cells(figure(), truth) == [
        "0.8000 [0.7000, 0.9000]",
        f"{truth:.4f}",
        within,
        "1,200",
    ]


def test_an_insufficient_figure_of_the_audit_has_no_interval():
    missing = figure(status="insufficient", value=None, low=None, high=None, labels=3)
    assert summary._audit_cells(missing, 0.25) == ["insufficient", "0.2500", "", "3"]


def test_without_an_audit_the_summary_says_so(small):
    assert audit_table(small) == "No audit was carried out."


def audited(resources: Resources) -> None:
    """Carry the demo's audit out up to its result, on the small lake."""
    for day in (MONDAY, TUESDAY):
        put_comments(
            resources.lake, day, 400, label=[int(n > 150 and n % 3 > 0) for n in range(400)]
        )
    request = AuditRequest(audit="demo", first=MONDAY, last=TUESDAY, labels=200)
    plan_audit(resources, request, actor="eva")
    resources.audit("demo").approve(actor="eve")
    resources.audit("demo").draw()
    label_everything(resources)
    resources.audit("demo").seal()
    resources.audit("demo").estimate()


def test_the_table_of_the_audit_says_whether_the_truth_is_within(small):
    audited(small)
    result = small.audit("demo").result
    heads, _, *rows, _, last = audit_table(small).splitlines()
    assert [cell.strip() for cell in heads.strip("|").split("|")] == [
        *("audit", "estimate [95 % CI]", "true value", "covered", "labels"),
    ]
    cells = {cell[0]: cell[1:] for cell in ([c.strip() for c in r[1:-1].split("|")] for r in rows)}
    assert [*cells] == [
        *("precision", "recall", "f1", "accuracy", "prevalence unflagged", "prevalence"),
    ]
    found = {figure["metric"].replace("_", " "): figure for figure in result["figures"]}
    truth = true_values(small, small.audit("demo").plan)
    assert {name: row[1] for name, row in cells.items()} == {
        name.replace("_", " "): f"{value:.4f}" for name, value in truth.items()
    }
    assert cells["recall"][0].startswith(f"{found['recall']['value']:.4f} [")
    assert {name: row[2] for name, row in cells.items()} == {
        name: "yes" if figure["low"] <= truth[figure["metric"]] <= figure["high"] else "no"
        for name, figure in found.items()
        if figure["metric"] in truth
    }
    assert last == (
        "Audit: 200 of 800 comments were labelled blind; a simple random sample would need "
        f"{result['random_labels']:,} labels for the same error. "
        "modwatch audit verify: no problems."
    )
