"""What the demo says at its end: estimates beside the truth, and the model beside others."""

import datetime
from collections.abc import Sequence

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray
from sqlalchemy import Engine, func, select

from modwatch.demo.audit_summary import audit_table, markdown_table
from modwatch.demo.datasets import DemoData
from modwatch.lake.day_scores import day_scores
from modwatch.metrics.classification import auprc, auroc
from modwatch.metrics.estimate import Estimate
from modwatch.metrics.estimation.labelled_day import LabelledDay, fully_labelled
from modwatch.metrics.estimation.measure import measure_days
from modwatch.resources import Resources, open_resources
from modwatch.review.checks.agreement import agreement_report
from modwatch.review.queue import verify_log
from modwatch.review.tables import decision
from modwatch.settings import Settings

#: Heading, metric, whether it depends on α.
_COLUMNS = (
    ("RE", "review_efficiency", True),
    ("accuracy", "accuracy", False),
    ("OC-Acc", "oc_accuracy", True),
    ("OC-AUROC", "oc_auroc", True),
)


def summarise(data: DemoData, settings: Settings) -> str:
    """Return the summary of a finished demo as Markdown, and keep it in `HOME/summary.md`."""
    with open_resources(settings) as at:
        parts = [
            _days(at, data),
            _legend(at),
            _desk(at.database),
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
    """Return the cells of all days together, and without the errors that second opinions tell."""
    window = at.lake.table("window_measurements", days[-1]).to_pandas()
    truth = _measured(at, [_truth(at, day) for day in days])
    return [
        ["all days", *_counts(at, days), *_cells(window, truth, at)],
        ["… corrected", "", "", "", *_cells(window, truth, at, suffix="_corrected")],
    ]


def _counts(at: Resources, days: Sequence[datetime.date]) -> list[str]:
    """Return how many comments of these days there are, were quarantined and reviewed."""
    counted = ("comments", "quarantine", "labels")
    return [f"{sum(at.lake.count(table, day) for day in days):,}" for table in counted]


def _cells(
    measured: pd.DataFrame, truth: pd.DataFrame, at: Resources, suffix: str = ""
) -> list[str]:
    """Return the cell of every column that is a metric."""
    return [
        _cell(measured, truth, at, metric, by_alpha, suffix) for _, metric, by_alpha in _COLUMNS
    ]


def _measured(at: Resources, days: Sequence[LabelledDay]) -> pd.DataFrame:
    """Return the metrics of some days together, at the deployed strategy and α."""
    first = at.lake.days("scores")[0]
    return measure_days(
        days,
        review_fractions=[at.settings.review_fraction],
        strategies=[at.settings.strategy],
        threshold=day_scores(at.lake, first).threshold,
    )


def _truth(at: Resources, day: datetime.date) -> LabelledDay:
    """Return the day with the labels that came with its comments."""
    scores = day_scores(at.lake, day)
    return fully_labelled(_labels(at, day, scores.comment_id), scores.prob.astype(np.float64))


def _labels(at: Resources, day: datetime.date, ids: pa.ChunkedArray) -> NDArray[np.int8]:
    """Return the label (N,) that came with each of the day's scored comments."""
    rows = at.lake.table("comments", day, columns=["comment_id", "label"]).to_pandas()
    return np.asarray(rows.set_index("comment_id")["label"].loc[ids.to_pylist()], np.int8)


def _cell(
    measured: pd.DataFrame,
    truth: pd.DataFrame,
    at: Resources,
    metric: str,
    by_alpha: bool,
    suffix: str = "",
) -> str:
    """Return `estimate [low, high] (truth)`; the metric measured may have a suffix."""
    estimate = _pick(measured, at, metric + suffix, by_alpha)
    true = _pick(truth, at, metric, by_alpha)
    known = "" if true is None or pd.isna(true["value"]) else f" ({true['value']:.3f})"
    if estimate is None or pd.isna(estimate["value"]):
        return f"{'not corrected' if suffix else 'insufficient'}{known}"
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
        f"Estimates with 95 % intervals from the moderators' labels at α = "
        f"{at.settings.review_fraction:g} ({at.settings.strategy}; "
        f"{at.settings.slice_share:.0%} of it a random slice); in brackets the truth, from the "
        "labels that came with the comments. The simulated moderators err, the truth does not: the "
        f"last row is without their error rate, {_error_rate(at)}."
    )


def _error_rate(at: Resources) -> str:
    """Return in words how often moderators err, as second opinions tell."""
    window = at.lake.table("window_measurements", at.lake.days("window_measurements")[-1])
    row = _pick(window.to_pandas(), at, "moderator_error", by_alpha=False)
    if row is None or pd.isna(row["value"]):
        return "for which there are too few second opinions"
    ends = f"{row['low']:.1%} to {row['high']:.1%}"
    return f"{row['value']:.1%} ({ends}) as {row['n']} second opinions tell"


def _desk(engine: Engine) -> str:
    """Return in words what people did at the desk since yesterday, and whether the log is whole."""
    today = datetime.datetime.now(datetime.UTC).date()
    report = agreement_report(engine, today - datetime.timedelta(days=1), today)
    log = verify_log(engine)
    settled = select(func.count()).where(decision.c.action == "adjudicate")
    with engine.connect() as connection:
        escalations = connection.execute(settled).scalar_one()
    return (
        f"The desk: {log.decisions:,} decisions, {escalations} escalations settled by a lead. "
        f"Gold answered rightly: {_agreement(report.gold_accuracy)}. Second opinions like the "
        f"first: {_agreement(report.second_opinions)}. verify-log: "
        f"{'intact' if log.intact else f'{len(log.problems)} problems'}."
    )


def _agreement(found: Estimate) -> str:
    """Return `value (low to high) of n`, or why there is no figure."""
    if found.value is None:
        return f"insufficient ({found.reason})"
    return f"{found.value:.1%} ({found.low:.1%} to {found.high:.1%}) of {found.n}"


def _models(at: Resources, data: DemoData) -> str:
    """Return AUROC and average precision on the stream, beside what else could have scored it."""
    label, prob, texts = _stream(at, data)
    rows = [_quality("Modwatch, offline model", label, prob)]
    rows.append(_quality("TF-IDF + logistic regression, same training rows",
                         label, _tfidf(data, texts)))  # fmt: skip
    if data.stream is not None:
        items = data.stream().items
        known = items.column("score").to_numpy(zero_copy_only=False)
        rows.append(
            _quality("Perspective API, from the file", items.column("label").to_numpy(), known)
        )
    return markdown_table(["on the stream", "AUROC", "average precision", "n", "toxic"], rows)


def _stream(
    at: Resources, data: DemoData
) -> tuple[NDArray[np.int8], NDArray[np.float32], Sequence[str]]:
    """Return labels (N,), probabilities (N,) and texts of all scored comments."""
    labels, probs, texts = [], [], list[str]()
    for day in data.day_list():
        scores = day_scores(at.lake, day)
        rows = at.lake.table("comments", day, columns=["comment_id", "text", "label"]).to_pandas()
        rows = rows.set_index("comment_id").loc[scores.comment_id.to_pylist()]
        labels.append(rows["label"].to_numpy(np.int8))
        probs.append(scores.prob)
        texts += rows["text"].tolist()
    return np.concatenate(labels), np.concatenate(probs), texts


def _tfidf(data: DemoData, texts: Sequence[str]) -> NDArray[np.float64]:
    """Return the baseline's probabilities (N,)."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

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
