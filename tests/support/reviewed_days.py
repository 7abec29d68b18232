"""Days with known labels, routed by the real design and labelled in part."""

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from modwatch.metrics.estimation.labelled_day import LabelledDay
from modwatch.routing.design import design_routing
from modwatch.routing.policy import RoutingPolicy


def community(rng, size, prevalence, *, over_confident=False):
    """Return probabilities and labels; the model is calibrated, or too sure of itself."""
    latent = rng.normal(0, 2, size)
    base = brentq(lambda shift: expit(shift + latent).mean() - prevalence, -20, 5)
    label = (rng.random(size) < expit(base + latent)).astype(int)
    return expit((2.5 if over_confident else 1) * (base + latent)), label


def reviewed_day(rng, prob, label, *, completion=1.0, **policy):
    """Return the day as it is known after review."""
    keys = rng.integers(0, 2**64, prob.size, dtype=np.uint64)
    routing = design_routing(prob, keys, RoutingPolicy(**({"review_fraction": 0.1} | policy)))
    stratum, labelled = np.full(prob.size, -1), np.zeros(prob.size, bool)
    stratum[routing.row] = routing.stratum
    labelled[routing.row] = rng.random(routing.row.size) < completion
    return LabelledDay(
        prob=prob,
        stratum=stratum,
        label=np.where(labelled, label, -1),
        labelled=labelled,
        population=routing.strata["population"].to_numpy(),
        sample=routing.strata["sample"].to_numpy(),
    )
