"""Plots of metrics, in the manner of scikit-learn's displays. Only they import matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from modwatch.common.errors import MetricInputError
from modwatch.statistics import arguments
from modwatch.statistics.collaboration import collaborative
from modwatch.statistics.collaboration.model_metrics import reliability_curve

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from numpy.typing import ArrayLike


class _Display:
    """A curve of `x` and `y`, which `plot` draws."""

    line_: Line2D
    ax_: Axes
    figure_: Figure
    #: Of the axes.
    _labels: tuple[str, str]

    def __init__(self, x: ArrayLike, y: ArrayLike, *, name: str | None = None) -> None:
        """Keep the coordinates (k,), NaN where undefined, and the name in the legend."""
        self.x, self.y, self.name = arguments.column("x", x), arguments.numbers("y", y), name
        arguments.same_length(x=self.x, y=self.y)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: ArrayLike, *, pos_label: Any = 1, **options: Any
    ) -> Self:
        """Plot the predictions (n,) of a fitted classifier for `X`, with classes `y` (n,).

        `pos_label` is the class whose probability is `y_prob`; `options` are further arguments of
        `from_predictions`. Raises as that, and MetricInputError for an unknown `pos_label`.
        """
        found = np.flatnonzero(np.asarray(estimator.classes_) == pos_label)
        if len(found) != 1:
            raise MetricInputError(f"{pos_label!r} is no class of the estimator; set pos_label")
        prob = np.asarray(estimator.predict_proba(X))[:, found[0]]
        options.setdefault("name", type(estimator).__name__)
        made: Self = cls.from_predictions(np.asarray(y) == pos_label, prob, **options)  # type: ignore[attr-defined]
        return made

    def plot(self, ax: Axes | None = None, *, name: str | None = None, **curve_kwargs: Any) -> Self:
        """Plot on `ax`, or a new figure; `curve_kwargs` are those of matplotlib's `plot`.

        Sets `line_`, `ax_` and `figure_`. Raises ImportError without matplotlib.
        """
        try:
            import matplotlib.pyplot as plt  # noqa: PLC0415
        except ImportError as exc:
            raise ImportError(
                f"{type(self).__name__}.plot requires matplotlib. You can install matplotlib with "
                "`pip install matplotlib`"
            ) from exc
        self.ax_ = plt.subplots()[1] if ax is None else ax
        self.figure_ = self.ax_.figure  # type: ignore[assignment]
        options = {"marker": "o", "label": name or self.name} | curve_kwargs
        (self.line_,) = self.ax_.plot(self.x, self.y, **options)
        self.ax_.set(xlabel=self._labels[0], ylabel=self._labels[1])
        if options["label"] is not None:
            self.ax_.legend()
        return self


class CollaborationCurveDisplay(_Display):
    """A collaborative metric, `y`, against the review fraction, `x`.

    >>> shown = CollaborationCurveDisplay([0.01, 0.1], [0.9, 0.95], name="model").plot()
    >>> shown.line_.get_ydata().tolist()
    [0.9, 0.95]
    """

    _labels = "Review fraction", "Metric"

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_prob: ArrayLike,
        y_score: ArrayLike | None = None,
        *,
        metric: str = collaborative.METRICS[0],
        review_fractions: Sequence[float] = collaborative.REVIEW_FRACTIONS,
        name: str | None = None,
        ax: Axes | None = None,
        curve_kwargs: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Self:
        """Plot one of `METRICS` of predictions at review fractions (k,).

        `y_score` is the default review score if None; `options` are further arguments of the
        metric, such as `threshold` and `sample_weight`; the others are those of `plot`.

        Raises:
            ImportError: matplotlib is not installed.
            MetricInputError: an argument is invalid.
        """
        if metric not in collaborative.METRICS:
            raise MetricInputError(f"metric must be one of {collaborative.METRICS}, got {metric!r}")
        rows, of = (y_true, y_prob, y_score), getattr(collaborative, metric)
        values = [of(*rows, review_fraction=alpha, **options) for alpha in review_fractions]
        made = cls(review_fractions, values, name=name)
        made._labels = made._labels[0], metric.replace("_", " ")
        return made.plot(ax, **(curve_kwargs or {}))


class ReliabilityDisplay(_Display):
    """The share of positives, `y`, against the mean probability, `x`, of each bin.

    >>> shown = ReliabilityDisplay.from_predictions([1, 0, 1], [0.75, 0.75, 1.0], n_bins=4)
    >>> shown.x.tolist(), shown.y.tolist()
    ([0.75, 1.0], [0.5, 1.0])
    """

    _labels = "Mean probability", "Share of positives"

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_prob: ArrayLike,
        *,
        ref_line: bool = True,
        name: str | None = None,
        ax: Axes | None = None,
        curve_kwargs: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Self:
        """Plot the bins with weight, and with `ref_line` the diagonal, which is perfect.

        `options` are further arguments of `reliability_curve`, such as `n_bins`; the others are
        those of `plot`. Raises as `CollaborationCurveDisplay.from_predictions`.
        """
        bins = reliability_curve(y_true, y_prob, **options).dropna()
        made = cls(bins["mean_prob"], bins["positive_rate"], name=name)
        made.plot(ax, **(curve_kwargs or {}))
        if ref_line:
            made.ax_.plot([0, 1], [0, 1], ":", color="gray", zorder=1)
        return made
