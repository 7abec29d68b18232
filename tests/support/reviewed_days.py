"""Days with known labels, routed by the real design and labelled in part."""

from dataclasses import replace

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from modwatch.routing.confirmation_design import confirmation_probabilities
from modwatch.routing.design import RoutingPolicy, design_routing
from modwatch.statistics.live.labelled_day import Confirmations, LabelledDay


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


def labelled_by_people(rng, day, share, *, rates, people=3):
    """Return the day as `people` who err at the `rates` labelled it.

    A `share` of confirmations is drawn as routing does. Two people give no third label; one gives
    first labels alone.
    """
    rows = np.flatnonzero(day.labelled)
    toxic = day.label[rows] == 1
    rate = np.where(toxic, rates[1], rates[0])
    labels = (toxic[:, None] ^ (rng.random((rows.size, 3)) < rate[:, None])).astype(int)
    probability = confirmation_probabilities(
        day.prob[rows], day.stratum[rows], threshold=0.5, share=share
    )
    second = rng.random(rows.size) < probability[np.arange(rows.size), labels[:, 0]]
    second &= people > 1
    third = second & (labels[:, 0] != labels[:, 1]) & (people > 2)
    label = day.label.copy()
    label[rows] = labels[:, 0]
    further = Confirmations(
        row=np.concatenate([rows[second], rows[third]]),
        label=np.concatenate([labels[second, 1], labels[third, 2]]),
    )
    return replace(day, label=label, confirmations=further)
