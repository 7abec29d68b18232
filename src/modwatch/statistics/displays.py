"""A plot of metrics, in the manner of scikit-learn's displays. Only it imports matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from modwatch.common.errors import MetricInputError
from modwatch.statistics import arguments
from modwatch.statistics.collaboration import collaborative

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from numpy.typing import ArrayLike


class CollaborationCurveDisplay:
    """A collaborative metric, `y`, against the review fraction, `x`.

    >>> shown = CollaborationCurveDisplay([0.01, 0.1], [0.9, 0.95], name="model").plot()
    >>> shown.line_.get_ydata().tolist()
    [0.9, 0.95]
    """

    line_: Line2D
    ax_: Axes
    figure_: Figure
    _metric = "Metric"

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
        return cls.from_predictions(np.asarray(y) == pos_label, prob, **options)

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
        made._metric = metric.replace("_", " ")
        return made.plot(ax, **(curve_kwargs or {}))

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
        self.ax_.set(xlabel="Review fraction", ylabel=self._metric)
        if options["label"] is not None:
            self.ax_.legend()
        return self
