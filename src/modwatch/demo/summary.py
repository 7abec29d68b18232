"""The summary of the demo: estimates beside the true values, and the model beside others."""

import datetime
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sqlalchemy import Engine, func, select

from modwatch.common.markdown import markdown_table
from modwatch.data.lake.day_scores import DayScores, day_scores
from modwatch.demo.audit import AUDIT
from modwatch.demo.datasets import DemoData
from modwatch.installation.resources import Resources, open_resources
from modwatch.models.registry import SCRATCH, version_tags
from modwatch.monitoring.incidents.actions import open_incidents
from modwatch.pipeline.audit import open_audit
from modwatch.review.quality_control.agreement import agreement_report
from modwatch.review.queue import verify_log
from modwatch.review.tables import decision
from modwatch.settings import Settings
from modwatch.statistics.audit.plan import AuditPlan
from modwatch.statistics.collaboration.model_metrics import auprc, auroc
from modwatch.statistics.estimate import Estimate
from modwatch.statistics.live.labelled_day import LabelledDay, fully_labelled
from modwatch.statistics.live.measure import measure_days

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
    with open_resources(settings) as at:
        parts = [
            _days(at, data),
            _legend(at),
            _incidents(at.database),
            _queue(at.database),
            audit_table(at),
            _models(at, data),
        ]
        text = "\n\n".join(parts)
    (settings.home / "summary.md").write_text(text + "\n")
    return text


def _days(at: Resources, data: DemoData) -> str:
    heads = ["day", "comments", "quarantined", "reviewed", *(head for head, _, _ in _COLUMNS)]
    days = data.day_list()
    return markdown_table(heads, [*(_day(at, day) for day in days), *_all_days(at, days)])


def _day(at: Resources, day: datetime.date) -> list[str]:
    """Return the cells of one day."""
    measured = at.lake.table("measurements", day).to_pandas()
    truth = _measured(at, [_truth(at, day)])
    return [day.isoformat(), *_counts(at, [day]), *_cells(measured, truth, at)]


def _all_days(at: Resources, days: Sequence[datetime.date]) -> list[list[str]]:
    """Return the cells of all days together, and those that take every first label as true."""
    window = at.lake.table("window_measurements", days[-1]).to_pandas()
    errors = at.lake.table("label_errors", days[-1]).to_pandas()
    plain = errors.drop(columns=["value", "low", "high"]).rename(
        columns={f"uncorrected{end}": end.lstrip("_") or "value" for end in ("", "_low", "_high")}
    )
    truth = _measured(at, [_truth(at, day) for day in days])
    return [
        ["all days", *_counts(at, days), *_cells(window, truth, at)],
        ["… uncorrected", "", "", "", *_cells(plain, truth, at)],
    ]


def _counts(at: Resources, days: Sequence[datetime.date]) -> list[str]:
    """Return the numbers of comments, quarantined rows and reviewed comments of these days."""
    counted = ("comments", "quarantine", "labels")
    return [f"{sum(at.lake.count(table, day) for day in days):,}" for table in counted]


def _cells(measured: pd.DataFrame, truth: pd.DataFrame, at: Resources) -> list[str]:
    """Return the cells of the metrics."""
    return [_cell(measured, truth, at, metric, by_alpha) for _, metric, by_alpha in _COLUMNS]


def _measured(at: Resources, days: Sequence[LabelledDay]) -> pd.DataFrame:
    """Return the metrics of some days together, at the strategy and α in use."""
    return measure_days(
        days,
        review_fractions=[at.settings.review_fraction],
        strategies=[at.settings.strategy],
    )


def _truth(at: Resources, day: datetime.date) -> LabelledDay:
    """Return the day with the labels of the source."""
    scores, comments = _scored(at, day)
    label = comments["label"].to_numpy(np.int8)
    return fully_labelled(label, scores.prob.astype(np.float64), flagged=scores.flagged)


def _scored(
    at: Resources, day: datetime.date, columns: Sequence[str] = ("label",)
) -> tuple[DayScores, pd.DataFrame]:
    """Return the scores of a day, and these columns of its N scored comments."""
    scores = day_scores(at.lake, day)
    rows = at.lake.table("comments", day, columns=["comment_id", *columns]).to_pandas()
    return scores, rows.set_index("comment_id").loc[scores.comment_id.to_pylist()]


def _cell(
    measured: pd.DataFrame,
    truth: pd.DataFrame,
    at: Resources,
    metric: str,
    by_alpha: bool,
) -> str:
    """Return `estimate [low, high] (true value)`."""
    estimate = _pick(measured, at, metric, by_alpha)
    true = _pick(truth, at, metric, by_alpha)
    known = "" if true is None or pd.isna(true["value"]) else f" ({true['value']:.3f})"
    if estimate is None or pd.isna(estimate["value"]):
        return f"insufficient{known}"
    return f"{estimate['value']:.3f} [{estimate['low']:.3f}, {estimate['high']:.3f}]{known}"


def _pick(
    table: pd.DataFrame, at: Resources, metric: str, by_alpha: bool
) -> "pd.Series[float] | None":
    rows = table[table["metric"] == metric]
    if by_alpha:
        fraction = np.isclose(rows["alpha"].astype(float), at.settings.review_fraction)
        rows = rows[fraction & (rows["strategy"] == at.settings.strategy)]
    return None if rows.empty else rows.iloc[0]


def _legend(at: Resources) -> str:
    return (
        f"Estimates with 95 % confidence intervals from the moderators' labels at α = "
        f"{at.settings.review_fraction:g} ({at.settings.strategy}; {at.settings.slice_share:.0%} "
        "of it a random slice); in parentheses the true value, from the labels of the source. They "
        f"allow for the moderators' errors: {_error_rates(at)}. The last row takes every first "
        "label as true."
    )


def _error_rates(at: Resources) -> str:
    """Return what the confirmations tell of the moderators' errors."""
    window = at.lake.table("window_measurements", at.lake.days("window_measurements")[-1])
    rows = {row["metric"]: row for row in window.to_pylist()}
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
    """Return the incidents that people would have been told of, as a list."""
    lines = [
        f"- {each.severity}, since {each.since}: {each.headline}"
        for each in open_incidents(database)
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


def audit_table(at: Resources) -> str:
    """Return the estimates of the demo's audit beside the true values, and its verification."""
    if AUDIT not in at.audit_store.names():
        return "No audit was carried out."
    audit = open_audit(at, AUDIT)
    result, truth = audit.result, true_values(at, audit.plan)
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


def true_values(at: Resources, plan: AuditPlan) -> dict[str, float]:
    """Return the true metrics of the audit's period, from the labels of the source."""
    flagged, positive = [], []
    for day in plan.population:
        scores, comments = _scored(at, day.day)
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


def _models(at: Resources, data: DemoData) -> str:
    """Return AUROC and average precision of the model and of alternatives on the stream."""
    label, prob, texts = _stream(at, data)
    rows = [_quality(f"Modwatch, {_model_name(at)}", label, prob)]
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


def _model_name(at: Resources) -> str:
    """Return which model the champion is."""
    name, url = at.settings.model_name, at.settings.mlflow_url
    tags = version_tags(name, at.champion_version(), url)
    encoder = tags.get("encoder", SCRATCH)
    return "offline model" if encoder == SCRATCH else f"{Path(encoder).name}, fine-tuned"


def _stream(
    at: Resources, data: DemoData
) -> tuple[NDArray[np.int8], NDArray[np.float32], Sequence[str]]:
    """Return labels (N,), probabilities (N,) and texts of all scored comments."""
    labels, probs, texts = [], [], list[str]()
    for day in data.day_list():
        scores, comments = _scored(at, day, ["text", "label"])
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
