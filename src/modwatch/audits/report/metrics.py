"""The metrics of an audit: titles, meanings, and access to the estimates of a result."""

from collections.abc import Mapping
from typing import Any

Result = Mapping[str, Any]

#: Title and meaning by metric, in the order of the report.
METRICS = {
    "recall": (
        "Recall",
        "of the comments that should have been flagged, the share that was flagged",
    ),
    "precision": ("Precision", "of the flagged comments, the share that should have been flagged"),
    "prevalence_unflagged": (
        "Positives among unflagged",
        "of the comments that were not flagged, the share that should have been flagged",
    ),
    "prevalence": ("Prevalence", "of all comments, the share that should have been flagged"),
    "f1": ("F1", "the harmonic mean of precision and recall"),
    "accuracy": ("Accuracy", "of all comments, the share that the model decided correctly"),
    "specificity": (
        "Specificity",
        "of the comments that should not have been flagged, the share that was not",
    ),
    "false_positive_rate": (
        "False positive rate",
        "of the comments that should not have been flagged, the share that was flagged (fall-out)",
    ),
    "negative_predictive_value": (
        "Negative predictive value",
        "of the comments that were not flagged, the share that should not have been",
    ),
}


def of_metric(estimates: list[Result], metric: str) -> Result:
    """Return the estimate of a metric.

    >>> of_metric([{"metric": "recall", "value": 0.5}], "recall")["value"]
    0.5
    """
    return next(estimate for estimate in estimates if estimate["metric"] == metric)


def title(metric: str) -> str:
    """Return the title of a metric.

    >>> title("f1")
    'F1'
    """
    return METRICS[metric][0]


def in_order(estimates: list[Result]) -> list[Result]:
    """Return estimates in the order of the report."""
    return sorted(estimates, key=lambda estimate: [*METRICS].index(estimate["metric"]))


def by_column(result: Result) -> dict[str, list[Result]]:
    """Return the domains of a result by column, the largest first."""
    columns: dict[str, list[Result]] = {}
    for domain in sorted(
        result["domains"], key=lambda domain: (-domain["comments"], domain["value"])
    ):
        columns.setdefault(domain["column"], []).append(domain)
    return dict(sorted(columns.items()))


def history(result: Result, earlier: tuple[Result, ...]) -> list[Result]:
    """Return the results of earlier audits and this one, by the last day of their periods."""
    before = [document for document in earlier if document["audit"] != result["audit"]]
    before.sort(key=lambda document: (document["last_day"], document["audit"]))
    return [*before, result]
