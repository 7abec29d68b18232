"""Routing: which comments people review, and with what inclusion probability.

>>> import numpy as np
>>> from modwatch.routing import RoutingPolicy, design_routing, random_keys
>>> keys = random_keys(["a", "b"], day="2026-01-01", design_digest="d", salt="secret")
>>> design_routing([0.2, 0.6], keys, RoutingPolicy(review_fraction=1)).row.size
2

RoutingPolicy          how many comments are reviewed, and by which strategy
random_keys            permanent random numbers, one per comment
design_routing         the top by review score and a random slice of the rest: a `Routing`
allocate               sample sizes of strata
confirmation_probabilities
                       how likely the first label of a routed comment is confirmed
draw_confirmations     which first labels are confirmed by further people: a `ConfirmationDraw`

`modwatch.routing.label_plan.plan_labels` splits labels between the slice and confirmations.
"""

from modwatch.routing.confirmation_design import (
    ConfirmationDraw,
    confirmation_probabilities,
    draw_confirmations,
)
from modwatch.routing.design import Routing, RoutingPolicy, design_routing
from modwatch.statistics.sampling import allocate, random_keys

__all__ = [
    "ConfirmationDraw",
    "Routing",
    "RoutingPolicy",
    "allocate",
    "confirmation_probabilities",
    "design_routing",
    "draw_confirmations",
    "random_keys",
]
