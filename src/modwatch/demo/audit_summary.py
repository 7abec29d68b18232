"""What the demo says of its audit: estimates beside the planted truth."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from modwatch.audit.plan import AuditPlan
from modwatch.demo.audit import AUDIT
from modwatch.lake.day_scores import day_scores
from modwatch.pipeline.audit import open_audit
from modwatch.resources import Resources

_TOLD = ("precision", "recall", "f1", "accuracy", "prevalence_unflagged", "prevalence")


def audit_table(at: Resources) -> str:
    """Return the figures of the demo's audit, the truth beside them, and whether it verifies."""
    if AUDIT not in at.audit_store.names():
        return "There is no audit."
    audit = open_audit(at, AUDIT)
    result, truth = audit.result, true_figures(at, audit.plan)
    figures = {figure["metric"]: figure for figure in result["figures"]}
    rows = [[name.replace("_", " "), *_cells(figures[name], truth[name])] for name in _TOLD]
    problems = audit.verify()
    needed = result["random_labels"]
    heads = ["audit", "estimate [95 % interval]", "truth", "within", "labels"]
    return (
        f"{markdown_table(heads, rows)}\n\n"
        f"The audit: {result['labelled']:,} of {result['comments']:,} comments labelled blind; a "
        f"random sample would need {f'{needed:,}' if needed else 'more than can be told'} for the "
        f"same error. modwatch audit verify: {problems[0] if problems else 'nothing is wrong'}."
    )


def true_figures(at: Resources, plan: AuditPlan) -> dict[str, float]:
    """Return every figure of the audit's period, from the labels that came with the comments."""
    flagged, positive = [], []
    for day in plan.population:
        scores = day_scores(at.lake, day.day)
        rows = at.lake.table("comments", day.day, columns=["comment_id", "label"]).to_pandas()
        known = rows.set_index("comment_id")["label"].loc[scores.comment_id.to_pylist()]
        flagged.append(scores.flagged)
        positive.append(np.asarray(known, bool))
    said, true = np.concatenate(flagged), np.concatenate(positive)
    found, missed = int((said & true).sum()), int((~said & true).sum())
    return {
        "precision": found / max(int(said.sum()), 1),
        "recall": found / max(found + missed, 1),
        "f1": 2 * found / max(int(said.sum()) + found + missed, 1),
        "accuracy": float((said == true).mean()),
        "prevalence_unflagged": missed / max(int((~said).sum()), 1),
        "prevalence": float(true.mean()),
    }


def _cells(figure: Mapping[str, Any], truth: float) -> list[str]:
    labels = f"{figure['labels']:,}"
    if figure["status"] != "ok":
        return ["insufficient", f"{truth:.4f}", "", labels]
    within = "yes" if figure["low"] <= truth <= figure["high"] else "no"
    ends = f"[{figure['low']:.4f}, {figure['high']:.4f}]"
    return [f"{figure['value']:.4f} {ends}", f"{truth:.4f}", within, labels]


def markdown_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table whose columns line up in a terminal, too."""
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]

    def line(cells: Sequence[str]) -> str:
        padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
        return f"| {' | '.join(padded)} |"

    return "\n".join([line(heads), line(["-" * width for width in widths]), *map(line, rows)])
