"""The figures that labels give, each declared once.

A figure is one entry of `FIGURES`: how `Estimator` computes it, and what MLflow, the pages, alerts
and documentation say of it. Counts of a day and drift are keys of their own
(`monitoring.publishing.keys`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from modwatch.common.errors import MetricInputError

if TYPE_CHECKING:
    from modwatch.statistics.live.estimator import Estimator, MetricEstimate
    from modwatch.statistics.live.population import Review

#: Groups of figures of a window, which are the prefixes of their keys in MLflow: model and
#: moderators together, at a review strategy and fraction; the model alone; people.
TOGETHER, ALONE, PEOPLE = "collaboration_window", "model_window", "review"

#: A part of the comments.
Part = Literal["everything", "reviewed", "unreviewed"]


@dataclass(frozen=True)
class ErrorShare:
    """A share of wrong decisions: those `of` a part of the comments, over a part."""

    of: Part
    over: Part
    #: Whether the figure is what is left to 1.
    left: bool = False


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure and all that is said of it.

    It is computed in one of three ways: as a share of errors, as one of the two areas under curves
    of its group, or by a function. Those of people come with the labels' error model.

    >>> FIGURES["prevalence"].title, FIGURES["prevalence"].better
    ('Prevalence', '')
    """

    #: An identifier, in tables and alert rules; with the group, the key in MLflow.
    key: str
    #: What charts, pages and lists call it, and a short form for columns.
    title: str
    short: str = ""
    group: str
    #: What it is, as a clause: of axes and of the documentation.
    meaning: str
    #: What it is, as the subject of a sentence: of alerts; the title by default.
    words: str = ""
    #: Smallest and largest possible value.
    range: tuple[float, float] = (0.0, 1.0)
    #: `higher` or `lower`; empty: neither is better.
    better: Literal["higher", "lower", ""] = "higher"
    errors: ErrorShare | None = None
    #: Prefix of both areas, of which this is one; None: it is none.
    areas: str | None = None
    estimate: Callable[[Estimator, str, Review | None], MetricEstimate] | None = None
    #: Whether the description of a day, and of a challenger, has it.
    headline: bool = False
    #: Whether the estimate of the day alone has a key, too.
    of_day: bool = False
    #: Whether a fall of the day's own estimate opens an incident, by the metric `KEY_change`.
    alert: bool = False
    #: Whether it is drawn against the review fraction, and is an outcome of the what-if analysis.
    curve: bool = False
    outcome: bool = False

    def __post_init__(self) -> None:
        ways = [way for way in (self.errors, self.areas, self.estimate) if way is not None]
        if not self.key.isidentifier() or len(ways) != (self.group != PEOPLE):
            raise MetricInputError(
                f"the figure {self.key!r} needs an identifier as key, and one of errors, areas and "
                "estimate"
            )

    @property
    def name(self) -> str:
        """The key in MLflow."""
        return f"{self.group}/{self.key}"


def registry(figures: Iterable[Figure]) -> dict[str, Figure]:
    """Return the figures by key; MetricInputError if two have the same."""
    found = dict[str, Figure]()
    for figure in figures:
        if figure.key in found:
            raise MetricInputError(f"there are two figures {figure.key!r}; rename one")
        found[figure.key] = figure
    return found


#: By key, in the order of pages. Sources: Kivlichan et al. (2021), sections 3, 4.1 and A.2.
FIGURES = registry(
    (
        Figure(
            key="oc_accuracy",
            title="OC-Acc",
            group=TOGETHER,
            meaning="share decided correctly",
            words="Accuracy with review",
            errors=ErrorShare("unreviewed", "everything", left=True),
            headline=True,
            of_day=True,
            alert=True,
            curve=True,
            outcome=True,
        ),
        Figure(
            key="oc_auroc",
            title="OC-AUROC",
            group=TOGETHER,
            meaning="area under the ROC curve",
            areas="oc_",
            headline=True,
            curve=True,
        ),
        Figure(
            key="oc_auprc",
            title="OC-AUPRC",
            group=TOGETHER,
            meaning="area under the precision-recall curve",
            areas="oc_",
            curve=True,
        ),
        Figure(
            key="review_efficiency",
            title="Review Efficiency",
            short="RE",
            group=TOGETHER,
            meaning="model errors per reviewed comment",
            words="The share of reviewed comments that the model got wrong",
            errors=ErrorShare("reviewed", "reviewed"),
            headline=True,
            of_day=True,
            curve=True,
            outcome=True,
        ),
        Figure(
            key="review_effectiveness",
            title="Review Effectiveness",
            group=TOGETHER,
            meaning="share of model errors caught",
            estimate=lambda made, key, review: made.share(
                key, made.wrong, made.reviewed(review), "wrong decision"
            ),
            curve=True,
            outcome=True,
        ),
        Figure(
            key="remaining_cost",
            title="Remaining cost",
            group=TOGETHER,
            meaning="cost of the errors left, per comment",
            range=(0.0, float("inf")),
            better="lower",
            estimate=lambda made, key, review: made.cost(key, review),
            outcome=True,
        ),
        Figure(
            key="accuracy",
            title="Accuracy",
            short="accuracy",
            group=ALONE,
            meaning="share of correct decisions",
            words="The model's accuracy",
            errors=ErrorShare("everything", "everything", left=True),
            headline=True,
            of_day=True,
            alert=True,
        ),
        Figure(
            key="prevalence",
            title="Prevalence",
            group=ALONE,
            meaning="share of toxic comments",
            better="",
            estimate=lambda made, key, _: made.mean(key, made.toxic, made.everything),
        ),
        Figure(
            key="precision_flagged",
            title="Precision of flagged",
            group=ALONE,
            meaning="share of flagged comments that are toxic",
            estimate=lambda made, key, _: made.mean(key, made.toxic, made.flagged),
        ),
        Figure(
            key="recall_flagged",
            title="Recall of flagged",
            group=ALONE,
            meaning="share of toxic comments that are flagged",
            estimate=lambda made, key, _: made.share(
                key, made.toxic, made.flagged, "toxic comment"
            ),
        ),
        Figure(
            key="brier",
            title="Brier score",
            group=ALONE,
            meaning="mean of (y − p)²",
            better="lower",
            estimate=lambda made, key, _: made.mean(key, made.squared_error(), made.everything),
        ),
        Figure(
            key="ece",
            title="ECE",
            group=ALONE,
            meaning="distance of confidence from accuracy",
            words="The expected calibration error",
            better="lower",
            estimate=lambda made, key, _: made.calibration_error(key),
        ),
        Figure(
            key="auroc",
            title="AUROC",
            group=ALONE,
            meaning="area under the ROC curve",
            areas="",
        ),
        Figure(
            key="auprc",
            title="AUPRC",
            group=ALONE,
            meaning="area under the precision-recall curve",
            areas="",
        ),
        Figure(
            key="calibration_auroc",
            title="Calibration AUROC",
            group=ALONE,
            meaning="how often an error is more uncertain than a correct decision",
            areas="calibration_",
        ),
        Figure(
            key="calibration_auprc",
            title="Calibration AUPRC",
            group=ALONE,
            meaning="mean Review Efficiency of a review by p(1−p) that finds all errors",
            areas="calibration_",
        ),
        Figure(
            key="annotator_false_positive_rate",
            title="Moderators' false-positive rate",
            group=PEOPLE,
            meaning="how often people call a harmless comment toxic",
            better="lower",
        ),
        Figure(
            key="annotator_false_negative_rate",
            title="Moderators' false-negative rate",
            group=PEOPLE,
            meaning="how often people miss a toxic comment",
            better="lower",
        ),
        Figure(
            key="overturned",
            title="Confirmed labels overturned",
            group=PEOPLE,
            meaning="share of confirmed labels that most people contradict",
            better="lower",
        ),
    )
)

#: What pages call the figures that have no entry, where their names do not say it.
_TITLES = {
    "oc_average_precision": "OC-AUPRC",
    "mean_delta": "Mean δ",
    "recalibration_intercept": "recalibration, intercept",
    "recalibration_slope": "recalibration, slope",
    "score_psi": "Score PSI, trailing",
    "score_psi_fixed": "Score PSI, fixed",
    "uncertainty_psi": "Uncertainty PSI, trailing",
    "language_jensen_shannon": "Language Jensen–Shannon",
    "cbpe_accuracy": "CBPE accuracy",
}


def keys(figures: Iterable[Figure] = FIGURES.values(), **facts: object) -> tuple[str, ...]:
    """Return the keys of the figures of which these facts hold.

    >>> keys(alert=True)
    ('oc_accuracy', 'accuracy')
    """
    return tuple(
        figure.key
        for figure in figures
        if all(getattr(figure, name) == value for name, value in facts.items())
    )


def title_of(key: str) -> str:
    """Return the display name of a figure; of one without an entry, from its name.

    >>> title_of("oc_auroc"), title_of("score_psi"), title_of("queue_age")
    ('OC-AUROC', 'Score PSI, trailing', 'Queue age')
    """
    if key in FIGURES:
        return FIGURES[key].title
    return _TITLES.get(key, key.replace("_", " ").capitalize())
