"""Recall audits: of the comments that should have been flagged, how many were, with an interval.

People label a stratified random sample of flagged and unflagged comments; precision and recall are
estimated with confidence intervals of nominal coverage. From arrays to recall:

>>> import numpy as np
>>> from modwatch.statistics.audit import AuditEstimator, ScoreCounts, design_audit
>>> rng = np.random.default_rng(1)
>>> scores = rng.beta(0.05, 1, 50_000)
>>> toxic = rng.random(50_000) < scores  # in practice only known for the labelled sample
>>> flagged = scores > 0.4
>>> sides = {"flagged": flagged, "unflagged": ~flagged}
>>> by_side = (ScoreCounts.from_scores(scores[rows]) for rows in sides.values())
>>> audit = design_audit(*by_side, labels=600)
>>> counts = {}
>>> for name, rows in sides.items():
...     score, side = scores[rows], getattr(audit, name)
...     drawn = side.draw(score, rng)  # rows of this side to label
...     counts[name] = side.counts(score[drawn], label=toxic[rows][drawn]).weighted()
>>> sizes = (int(flagged.sum()), int((~flagged).sum()))
>>> recall = AuditEstimator(**counts, comments=sizes).estimate("recall")
>>> print(f"{recall.low:.2f} ≤ {recall.value:.2f} ≤ {recall.high:.2f}")
0.41 ≤ 0.53 ≤ 0.65

Topics:

- Design: `design_audit` with `DesignOptions` gives a `Design`, one `SideDesign` per side. Its
  parts: `Strata` by `stratify`; `neyman` allocation;
  `Calibration`, `calibrated`, `KnownLabels` and `shift_to_mean` for recalibration.
- Estimates: `StratumCounts`, `WeightedCounts` and `combine` (stages); `AuditEstimator` and
  `AuditEstimate`; `IntervalOptions` and `interval`.
- Auditable audits: `AuditPlan` frozen before the draw, `draw_sample`, `AuditLabel`,
  `compute_result`. `modwatch.audits` keeps and verifies their evidence, and writes their reports.
"""

from modwatch.statistics.audit.allocation import neyman
from modwatch.statistics.audit.draw import Drawn, DrawnComment, Scored
from modwatch.statistics.audit.draw import draw as draw_sample
from modwatch.statistics.audit.estimates import AuditEstimate, AuditEstimator
from modwatch.statistics.audit.labels import AuditLabel, final_labels
from modwatch.statistics.audit.metric_intervals import METRICS
from modwatch.statistics.audit.plan import AuditPlan, PlannedStratum, PopulationDay, planned_strata
from modwatch.statistics.audit.results import Evidence
from modwatch.statistics.audit.results import computed as compute_result
from modwatch.statistics.audit.sample_design import (
    Design,
    DesignOptions,
    ScoreCounts,
    SideDesign,
    Strata,
)
from modwatch.statistics.audit.sample_design import design as design_audit
from modwatch.statistics.audit.sample_design import strata as stratify
from modwatch.statistics.audit.share_interval import IntervalOptions, interval
from modwatch.statistics.audit.stratified import StratumCounts, WeightedCounts, combine
from modwatch.statistics.recalibration import (
    Calibration,
    KnownLabels,
    calibrated,
    shift_to_mean,
)

__all__ = [
    "METRICS",
    "AuditEstimate",
    "AuditEstimator",
    "AuditLabel",
    "AuditPlan",
    "Calibration",
    "Design",
    "DesignOptions",
    "Drawn",
    "DrawnComment",
    "Evidence",
    "IntervalOptions",
    "KnownLabels",
    "PlannedStratum",
    "PopulationDay",
    "ScoreCounts",
    "Scored",
    "SideDesign",
    "Strata",
    "StratumCounts",
    "WeightedCounts",
    "calibrated",
    "combine",
    "compute_result",
    "design_audit",
    "draw_sample",
    "final_labels",
    "interval",
    "neyman",
    "planned_strata",
    "shift_to_mean",
    "stratify",
]  # fmt: skip
