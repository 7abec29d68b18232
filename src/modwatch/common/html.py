"""Self-contained HTML pages, which open from disk, load nothing and run no script; Markdown."""

import base64
import hashlib
import re
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup


def render_html(package: str, template: str, **context: Any) -> str:
    """Return a page from a template of `package`, with every value of `context` escaped.

    Templates may extend `layout.html` of this package, which has the style sheet of all pages, and
    a Content-Security-Policy that allows this style sheet and nothing else.

    Raises:
        jinja2.UndefinedError: the template uses a name that `context` lacks.

    >>> page = render_html("modwatch.data.validation", "index.html", lines=[])
    >>> "<title>Data validation</title>" in page
    True
    """
    # The style sheet is a file of this package; escaped, it would not match its hash.
    style = Markup(  # noqa: S704
        resources.files("modwatch.common").joinpath("templates/page.css").read_text("utf-8")
    )
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    page = _environment(package).get_template(template)
    return page.render(style=style, style_hash=f"sha256-{digest}", **context)


@cache
def _environment(package: str) -> Environment:
    """Return what reads the templates of a package, and keeps them compiled."""
    return Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader("modwatch.common")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


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
