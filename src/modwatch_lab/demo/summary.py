"""The summary of the demo: estimates next to the true values, and a comparison of models."""

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sqlalchemy import Engine, func, select

from modwatch.common.text import markdown_table
from modwatch.data.lake.day_scores import DayScores, day_scores
from modwatch.installation.resources import Resources, open_resources
from modwatch.models.registry import SCRATCH
from modwatch.monitoring.incidents.actions import open_incidents
from modwatch.monitoring.measurements.tables import labelled_day
from modwatch.review.log.verification import verify_log
from modwatch.review.quality_control.agreement import agreement_report
from modwatch.review.tables import decision
from modwatch.settings import Settings
from modwatch.statistics.audit.plan import AuditPlan
from modwatch.statistics.collaboration.model_metrics import auprc, auroc
from modwatch.statistics.estimate import Estimate
from modwatch.statistics.live.labelled_day import LabelledDay, fully_labelled
from modwatch.statistics.live.measure import measure_days
from modwatch_lab.demo.datasets import AUDIT, DemoData

_AUDIT_METRICS = ("precision", "recall", "f1", "accuracy", "prevalence_unflagged", "prevalence")

#: Heading, metric, whether it depends on α.
_COLUMNS = (
    ("RE", "review_efficiency", True),
    ("accuracy", "accuracy", False),
    ("OC-Acc", "oc_accuracy", True),
    ("OC-AUROC", "oc_auroc", True),
)


def summarise(data: DemoData, settings: Settings) -> str:
    """Return the summary of a finished demo as Markdown, and write it to `HOME/summary.md`."""
    with open_resources(settings) as resources:
        parts = [
            _days(resources, data),
            _legend(resources),
            _incidents(resources.database),
            _queue(resources.database),
            audit_table(resources),
            _models(resources, data),
        ]
        text = "\n\n".join(parts)
    (settings.home / "summary.md").write_text(text + "\n")
    return text


def _days(resources: Resources, data: DemoData) -> str:
    heads = ["day", "comments", "quarantined", "reviewed", *(head for head, _, _ in _COLUMNS)]
    days = data.day_list()
    return markdown_table(
        heads, [*(_day(resources, day) for day in days), *_all_days(resources, days)]
    )


def _day(resources: Resources, day: datetime.date) -> list[str]:
    measured = _estimates(resources, day, window=False)
    truth = _measured(resources, [_truth(resources, day)])
    return [day.isoformat(), *_counts(resources, [day]), *_cells(measured, truth, resources)]


def _all_days(resources: Resources, days: Sequence[datetime.date]) -> list[list[str]]:
    """Return the cells of all days together, and those that take every first label as true."""
    window = _estimates(resources, days[-1], window=True)
    lake, policy = resources.lake, resources.policy
    routed = (day for day in days if lake.count("routing_design", day))
    labelled = (labelled_day(lake, day, day_scores(lake, day), policy) for day in routed)
    plain = _measured(resources, [replace(day, confirmations=None) for day in labelled])
    truth = _measured(resources, [_truth(resources, day) for day in days])
    return [
        ["all days", *_counts(resources, days), *_cells(window, truth, resources)],
        ["… uncorrected", "", "", "", *_cells(plain, truth, resources)],
    ]


def _estimates(resources: Resources, day: datetime.date, *, window: bool) -> pd.DataFrame:
    rows = resources.lake.table("estimates", day, window=window, design=False)
    return pd.DataFrame(rows.to_pandas())


def _counts(resources: Resources, days: Sequence[datetime.date]) -> list[str]:
    """Return the numbers of comments, quarantined rows and reviewed comments of these days."""
    counted = ("comments", "quarantine", "labels")
    return [f"{sum(resources.lake.count(table, day) for day in days):,}" for table in counted]


def _cells(measured: pd.DataFrame, truth: pd.DataFrame, resources: Resources) -> list[str]:
    """Return `estimate [low, high] (true value)` of each of `_COLUMNS`."""
    cells = []
    for _, metric, by_alpha in _COLUMNS:
        row, true = (_pick(table, resources, metric, by_alpha) for table in (measured, truth))
        known = "" if true is None or pd.isna(true["value"]) else f" ({true['value']:.3f})"
        estimate = "insufficient"
        if row is not None and not pd.isna(row["value"]):
            estimate = f"{row['value']:.3f} [{row['low']:.3f}, {row['high']:.3f}]"
        cells.append(f"{estimate}{known}")
    return cells


def _measured(resources: Resources, days: Sequence[LabelledDay]) -> pd.DataFrame:
    """Return the metrics of some days together, at the strategy and α in use."""
    return measure_days(
        days,
        review_fractions=[resources.settings.review_fraction],
        strategies=[resources.settings.strategy],
    )


def _truth(resources: Resources, day: datetime.date) -> LabelledDay:
    """Return the day with the labels of the source."""
    scores, comments = _scored(resources, day)
    label = comments["label"].to_numpy(np.int8)
    return fully_labelled(label, scores.prob.astype(np.float64), flagged=scores.flagged)


def _scored(
    resources: Resources, day: datetime.date, columns: Sequence[str] = ("label",)
) -> tuple[DayScores, pd.DataFrame]:
    """Return the scores of a day, and these columns of its N scored comments."""
    scores = day_scores(resources.lake, day)
    rows = resources.lake.table("comments", day, columns=["comment_id", *columns]).to_pandas()
    return scores, rows.set_index("comment_id").loc[scores.comment_id.to_pylist()]


def _pick(
    table: pd.DataFrame, resources: Resources, metric: str, by_alpha: bool
) -> "pd.Series[float] | None":
    rows = table[table["metric"] == metric]
    if by_alpha:
        fraction = np.isclose(rows["alpha"].astype(float), resources.settings.review_fraction)
        rows = rows[fraction & (rows["strategy"] == resources.settings.strategy)]
    return None if rows.empty else rows.iloc[0]


def _legend(resources: Resources) -> str:
    settings = resources.settings
    return (
        f"Estimates with 95 % confidence intervals from the moderators' labels at α = "
        f"{settings.review_fraction:g} ({settings.strategy}; {settings.slice_share:.0%} of it a "
        "random slice); in parentheses the true value, from the labels of the source. They allow "
        f"for the moderators' errors: {_error_rates(resources)}. The last row takes every first "
        "label as true."
    )


def _error_rates(resources: Resources) -> str:
    """Return the moderators' error rates as estimated from the confirmations."""
    window = _estimates(resources, resources.lake.days("estimates")[-1], window=True)
    rows = {row["metric"]: row for row in window.to_dict("records")}
    names = {"false positives": "annotator_false_positive_rate"}
    names["false negatives"] = "annotator_false_negative_rate"
    if not all(metric in rows for metric in names.values()):
        return "not known, no comment was labelled"
    rates = [
        f"{name} {rows[metric]['value']:.1%} ({rows[metric]['low']:.1%} to "
        f"{rows[metric]['high']:.1%})"
        for name, metric in names.items()
    ]
    confirmed = rows[names["false positives"]]["n"]
    overturned = round(confirmed * rows["overturned"]["value"]) if "overturned" in rows else 0
    return f"{', '.join(rates)}, from {confirmed} confirmed labels, {overturned} of them overturned"


def _incidents(database: Engine) -> str:
    """Return the active incidents as a list."""
    lines = [
        f"- {incident.severity}, since {incident.since}: {incident.headline}"
        for incident in open_incidents(database)
    ]
    return "\n".join(["Incidents:", "", *lines]) if lines else "No incident is active."


def _queue(engine: Engine) -> str:
    """Return a sentence on the decisions since yesterday, and the verification of their log."""
    today = datetime.datetime.now(datetime.UTC).date()
    report = agreement_report(engine, today - datetime.timedelta(days=1), today)
    log = verify_log(engine)
    adjudicated = select(func.count()).where(decision.c.action == "adjudicate")
    with engine.connect() as connection:
        escalations = connection.execute(adjudicated).scalar_one()
    return (
        f"Review queue: {log.decisions:,} decisions, {escalations} escalated items adjudicated by "
        f"a lead. Gold accuracy: {_agreement(report.gold_accuracy)}. Agreement of first labels and "
        f"confirmations: {_agreement(report.confirmations)}. modwatch queue verify-log: "
        f"{'no problems' if log.intact else f'{len(log.problems)} problems'}."
    )


def _agreement(agreement: Estimate) -> str:
    """Return `value (low to high), n = n`, or why there is no estimate."""
    if agreement.value is None:
        return f"insufficient ({agreement.reason})"
    ends = f"{agreement.low:.1%} to {agreement.high:.1%}"
    return f"{agreement.value:.1%} ({ends}), n = {agreement.n}"


def audit_table(resources: Resources) -> str:
    """Return the estimates of the demo's audit next to the true values, and its verification."""
    if AUDIT not in resources.audit_store.names():
        return "No audit was carried out."
    audit = resources.audit(AUDIT)
    result, truth = audit.result, true_values(resources, audit.plan)
    estimates = {estimate["metric"]: estimate for estimate in result["figures"]}
    rows = [
        [name.replace("_", " "), *_audit_cells(estimates[name], truth[name])]
        for name in _AUDIT_METRICS
    ]
    problems = audit.verify()
    needed = result["random_labels"]
    heads = ["audit", "estimate [95 % CI]", "true value", "covered", "labels"]
    return (
        f"{markdown_table(heads, rows)}\n\n"
        f"Audit: {result['labelled']:,} of {result['comments']:,} comments were labelled blind; a "
        f"simple random sample would need {f'{needed:,}' if needed else 'an unknown number of'} "
        "labels for the same error. modwatch audit verify: "
        f"{problems[0] if problems else 'no problems'}."
    )


def true_values(resources: Resources, plan: AuditPlan) -> dict[str, float]:
    """Return the true metrics of the audit's period, from the labels of the source."""
    flagged, positive = [], []
    for day in plan.population:
        scores, comments = _scored(resources, day.day)
        flagged.append(scores.flagged)
        positive.append(comments["label"].to_numpy(bool))
    predicted, true = np.concatenate(flagged), np.concatenate(positive)
    hits, missed = int((predicted & true).sum()), int((~predicted & true).sum())
    return {
        "precision": hits / max(int(predicted.sum()), 1),
        "recall": hits / max(hits + missed, 1),
        "f1": 2 * hits / max(int(predicted.sum()) + hits + missed, 1),
        "accuracy": float((predicted == true).mean()),
        "prevalence_unflagged": missed / max(int((~predicted).sum()), 1),
        "prevalence": float(true.mean()),
    }


def _audit_cells(estimate: Mapping[str, Any], truth: float) -> list[str]:
    labels = f"{estimate['labels']:,}"
    if estimate["status"] != "ok":
        return ["insufficient", f"{truth:.4f}", "", labels]
    within = "yes" if estimate["low"] <= truth <= estimate["high"] else "no"
    ends = f"[{estimate['low']:.4f}, {estimate['high']:.4f}]"
    return [f"{estimate['value']:.4f} {ends}", f"{truth:.4f}", within, labels]


def _models(resources: Resources, data: DemoData) -> str:
    """Return AUROC and average precision of the model and of alternatives on the stream."""
    label, prob, texts = _stream(resources, data)
    rows = [_quality(f"Modwatch, {_model_name(resources)}", label, prob)]
    baseline = "TF-IDF + logistic regression, same training rows"
    rows.append(_quality(baseline, label, _tfidf(data, texts)))
    if data.stream is not None:
        items = data.stream().items
        known = items.column("score").to_numpy(zero_copy_only=False)
        rows.append(
            _quality(
                "Perspective API, from the published file", items.column("label").to_numpy(), known
            )
        )
    return markdown_table(["on the stream", "AUROC", "average precision", "n", "toxic"], rows)


def _model_name(resources: Resources) -> str:
    tags = resources.registry.version_tags(resources.registry.champion_version())
    encoder = tags.get("encoder", SCRATCH)
    return "offline model" if encoder == SCRATCH else f"{Path(encoder).name}, fine-tuned"


def _stream(
    resources: Resources, data: DemoData
) -> tuple[NDArray[np.int8], NDArray[np.float32], Sequence[str]]:
    """Return labels (N,), probabilities (N,) and texts of all scored comments."""
    labels, probs, texts = [], [], list[str]()
    for day in data.day_list():
        scores, comments = _scored(resources, day, ["text", "label"])
        labels.append(comments["label"].to_numpy(np.int8))
        probs.append(scores.prob)
        texts += comments["text"].tolist()
    return np.concatenate(labels), np.concatenate(probs), texts


def _tfidf(data: DemoData, texts: Sequence[str]) -> NDArray[np.float64]:
    """Return the baseline's probabilities (N,)."""
    corpus = data.training()
    baseline = make_pipeline(
        TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2), min_df=2),
        LogisticRegression(max_iter=1000),
    )
    baseline.fit(corpus.texts, corpus.labels)
    return np.asarray(baseline.predict_proba(texts)[:, 1])


def _quality(name: str, label: NDArray[np.int8], prob: NDArray[np.floating]) -> list[str]:
    area, precision = auroc(label, prob), auprc(label, prob, interpolation="step")
    return [
        name,
        f"{area:.3f}" if area is not None else "insufficient",
        f"{precision:.3f}" if precision is not None else "insufficient",
        f"{len(label):,}",
        f"{int(label.sum()):,}",
    ]
