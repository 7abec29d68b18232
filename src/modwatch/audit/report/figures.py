"""The figures of an audit: what they are called, and what they mean."""

from collections.abc import Mapping
from typing import Any

Result = Mapping[str, Any]

#: Name and meaning by metric, in the order in which a reader asks.
METRICS = {
    "recall": ("Recall", "of the comments that should have been flagged, the share that was"),
    "precision": ("Precision", "of the flagged comments, the share that should have been"),
    "prevalence_unflagged": (
        "Positives among the unflagged",
        "of the comments that were not flagged, the share that should have been",
    ),
    "prevalence": ("Prevalence", "of all comments, the share that should have been flagged"),
    "f1": ("F1", "the harmonic mean of precision and recall"),
    "accuracy": ("Accuracy", "of all comments, the share that was decided right"),
}


def of_metric(figures: list[Result], metric: str) -> Result:
    """Return the figure of a metric among those of a result.

    >>> of_metric([{"metric": "recall", "value": 0.5}], "recall")["value"]
    0.5
    """
    return next(figure for figure in figures if figure["metric"] == metric)


def title(metric: str) -> str:
    """Return the name of a metric for people.

    >>> title("f1"), title("new_metric")
    ('F1', 'New metric')
    """
    return METRICS[metric][0] if metric in METRICS else metric.replace("_", " ").capitalize()


def in_order(figures: list[Result]) -> list[Result]:
    """Return figures in the order in which a reader asks; unknown ones last."""
    order = list(METRICS)
    return sorted(figures, key=lambda each: (*order, each["metric"]).index(each["metric"]))


def by_column(result: Result) -> dict[str, list[Result]]:
    """Return the domains of a result by column, those with most comments first."""
    columns: dict[str, list[Result]] = {}
    for domain in sorted(result["domains"], key=lambda each: (-each["comments"], each["value"])):
        columns.setdefault(domain["column"], []).append(domain)
    return dict(sorted(columns.items()))


def history(result: Result, earlier: tuple[Result, ...]) -> list[Result]:
    """Return the results of earlier audits and this one, by the last day of their periods."""
    others = [each for each in earlier if each["audit"] != result["audit"]]
    before = sorted(others, key=lambda each: (each["last_day"], each["audit"]))
    return [*before, result]
