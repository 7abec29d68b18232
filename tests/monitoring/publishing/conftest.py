"""A real MLflow server over HTTP, and days of made-up figures."""

import io
from datetime import date

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from modwatch.data.lake.schemas import DRIFT, ESTIMATES
from modwatch.monitoring.publishing.content import DayTables, ScoreHistogram
from modwatch.monitoring.publishing.days import Day
from modwatch.statistics.collaboration.what_if import what_if_table


@pytest.fixture
def facts():
    """A day of 2,000 comments, 40 of them routed, 38 labelled."""
    counts = {"comments": 2000, "quarantined": 12, "flagged": 31, "routed": 40, "labelled": 38}
    routed = {"model_version": "3", "strategy": "uncertainty", "review_fraction": 0.02}
    window = {"pooled_days": 12, "window_days": 14}
    return Day(day=date(2026, 1, 5), checks="warned", **counts, **routed, **window)


@pytest.fixture
def full_tables():
    """Make the tables of a day with all that there can be: `full_tables(day, shift=0.0)`."""

    def make(day: date, shift: float = 0.0) -> DayTables:
        window = made_up_estimates(day, 0.01 + shift).assign(window=True)
        return DayTables(
            estimates=made_up_estimates(day, shift),
            window=window,
            own=made_up_estimates(day, shift).assign(design=True),
            window_own=window.assign(design=True),
            drift=made_up_drift(day),
            what_if=what_if_table(
                window,
                comments_per_day=2000,
                seconds_per_decision=21.0,
                strategy="uncertainty",
                review_fraction=0.02,
            ),
        )

    return make


@pytest.fixture
def pictures():
    """Fields of `DayTables`: scores of 2,000 comments, five reliability bins."""
    prob = np.random.default_rng(7).beta(0.5, 8, 2000)
    counts, edges = np.histogram(prob, bins=50, range=(0.0, 1.0))
    observed = np.array([0.01, 0.10, 0.45, 0.60, 0.80])
    return {
        "scores": ScoreHistogram(edges=edges, counts=counts, threshold=0.5),
        "reliability": pd.DataFrame(
            {
                "mean_prob": [0.02, 0.15, 0.40, 0.65, 0.90],
                "positive_rate": observed,
                "count": [180, 40, 20, 10, 5],
                "low": np.clip(observed - 0.1, 0, 1),
                "high": np.clip(observed + 0.1, 0, 1),
            }
        ),
    }


@pytest.fixture
def measure():
    """Make the estimates of a day: `measure(day, shift=0.0)`."""
    return made_up_estimates


def made_up_estimates(day: date, shift: float = 0.0) -> pd.DataFrame:
    """Return made-up estimates; OC-AUPRC by toxicity at the smallest α is insufficient."""
    alone = {
        "accuracy": 0.95,
        "auroc": 0.82,
        "auprc": 0.3,
        "calibration_auroc": 0.7,
        "calibration_auprc": 0.2,
        "brier": 0.04,
        "ece": 0.03,
    }
    people = {
        "annotator_false_positive_rate": 0.021,
        "annotator_false_negative_rate": 0.184,
        "overturned": 0.128,
    }
    rows = [
        _row(day, metric, None, None, max(value + shift, 0.0)) for metric, value in alone.items()
    ]
    together = {
        "oc_accuracy": (0.95, 0.2),
        "oc_auroc": (0.82, 0.8),
        "oc_auprc": (0.3, 3.0),
        "review_efficiency": (0.42, -1.5),
        "review_effectiveness": (0.1, 4.0),
        "remaining_cost": (0.1, -0.3),
    }
    for metric, (start, slope) in together.items():
        for strategy, gain in (("uncertainty", 1.0), ("toxicity", 0.7)):
            for alpha in (0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2):
                value = min(max(start + gain * slope * alpha + shift, 0.0), 1.0)
                rows.append(_row(day, metric, strategy, alpha, value))
    for metric, value in people.items():
        rows.append(_row(day, metric, None, None, max(value + shift, 0.0)) | {"n": 164})
    table = pd.DataFrame(rows, columns=ESTIMATES.names)
    absent = (
        (table["metric"] == "oc_auprc")
        & (table["strategy"] == "toxicity")
        & (table["alpha"] == 0.001)
    )
    table.loc[absent, ["value", "low", "high"]] = np.nan
    table.loc[absent, ["status", "reason"]] = ["insufficient", "no labelled positive"]
    return table


def _row(
    day: date, metric: str, strategy: str | None, alpha: float | None, value: float
) -> dict[str, object]:
    return {
        "dt": day,
        "window": False,
        "design": False,
        "metric": metric,
        "strategy": strategy,
        "alpha": alpha,
        "value": value,
        "low": max(value - 0.03, 0.0),
        "high": min(value + 0.02, 1.0),
        "n": 38,
        "effective_n": 21.5,
        "status": "ok",
        "reason": "",
        "digest": "5f2c",
    }


def made_up_drift(day: date) -> pd.DataFrame:
    """Return the drift of a day: quiet, but for its scores; nothing waits."""
    rows = []
    for reference in ("fixed", "trailing"):
        rows.append(drift_row(day, "psi", "prob", reference, 0.25))
        rows.append(drift_row(day, "psi", "uncertainty", reference, 0.02))
    rows.append(drift_row(day, "volume_ratio", "comments", "trailing", 1.1))
    rows.append(drift_row(day, "cbpe_accuracy", "prob", None, 0.94))
    rows.append(drift_row(day, "queue_completion", "queue", None, 0.95))
    rows.append(drift_row(day, "queue_waiting", "queue", None, 0.0))
    rows.append(drift_row(day, "queue_age_oldest_hours", "queue", None, None))
    rows.append(drift_row(day, "queue_age_median_hours", "queue", None, None))
    return pd.DataFrame(rows, columns=DRIFT.names).astype(
        dict.fromkeys(("value", "low", "high"), "float64")
    )


def drift_row(
    dt: date,
    metric: str,
    feature: str,
    reference: str | None,
    value: float | None,
) -> dict[str, object]:
    return {
        "dt": dt,
        "metric": metric,
        "feature": feature,
        "reference": reference,
        "value": value,
        "low": None if value is None else 0.9 * value,
        "high": None if value is None else 1.1 * value,
        "n": 2000,
        "reference_n": 2000,
        "status": "insufficient" if value is None else "ok",
        "reason": "0 comments of the reference; 200 are needed" if value is None else "",
    }


@pytest.fixture
def curves():
    """Return (N, 2) of every curve with error bars of a panel, by its label."""

    def of(figure: Figure, panel: int) -> dict[str, np.ndarray]:
        bars = figure.axes[panel].containers
        return {
            bar.get_label(): np.column_stack(bar.lines[0].get_data()).astype(float) for bar in bars
        }

    return of


@pytest.fixture
def words():
    """Return all that is written in a figure, but ticks and legends."""

    def of(figure: Figure) -> str:
        texts = [text.get_text() for axes in figure.axes for text in axes.texts]
        titles = [axes.get_title(loc="left") for axes in figure.axes]
        labels = [axes.get_xlabel() for axes in figure.axes]
        return "\n".join([figure.get_suptitle(), *titles, *labels, *texts])

    return of


@pytest.fixture
def draw():
    """Draw a figure as MLflow gets it, only smaller."""

    def png(figure: Figure) -> bytes:
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=20)
        return buffer.getvalue()

    return png
