"""Text that people read: titles of metrics, and Markdown."""

import re
from collections.abc import Sequence

_TITLES = {
    "oc_accuracy": "OC-Acc",
    "oc_auroc": "OC-AUROC",
    "oc_auprc": "OC-AUPRC",
    "oc_average_precision": "OC-AUPRC",
    "mean_delta": "Mean δ",
    "review_efficiency": "Review Efficiency",
    "review_effectiveness": "Review Effectiveness",
    "calibration_auroc": "Calibration AUROC",
    "calibration_auprc": "Calibration AUPRC",
    "ece": "ECE",
    "brier": "Brier score",
    "auroc": "AUROC",
    "auprc": "AUPRC",
    "accuracy": "Accuracy",
    "annotator_false_positive_rate": "Moderators' false-positive rate",
    "annotator_false_negative_rate": "Moderators' false-negative rate",
    "overturned": "Confirmed labels overturned",
    "precision_flagged": "Precision of flagged",
    "recall_flagged": "Recall of flagged",
    "score_psi": "Score PSI, trailing",
    "score_psi_fixed": "Score PSI, fixed",
    "uncertainty_psi": "Uncertainty PSI, trailing",
    "language_jensen_shannon": "Language Jensen–Shannon",
    "cbpe_accuracy": "CBPE accuracy",
}


def metric_title(metric: str) -> str:
    """Return the display name of a metric.

    >>> metric_title("oc_auroc"), metric_title("queue_age")
    ('OC-AUROC', 'Queue age')
    """
    return _TITLES.get(metric, metric.replace("_", " ").capitalize())


def markdown_text(text: str) -> str:
    """Return `text` so that Markdown shows it as it is: names in it are no links and no tags.

    >>> print(markdown_text("platform=[a](b), <i>, 8.0 %"))
    platform=\\[a\\](b), \\<i\\>, 8.0 %
    """
    return re.sub(r"([\\`*_\[\]<>#|~])", r"\\\1", " ".join(text.split()))


def markdown_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table with aligned columns.

    >>> print(markdown_table(["day", "n"], [["Monday", "1"]]))
    | day    | n |
    | ------ | - |
    | Monday | 1 |
    """
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]

    def line(cells: Sequence[str]) -> str:
        padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
        return f"| {' | '.join(padded)} |"

    return "\n".join([line(heads), line(["-" * width for width in widths]), *map(line, rows)])
