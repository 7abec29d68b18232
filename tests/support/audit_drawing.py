"""Arbitrary audits, for hypothesis."""

import numpy as np
from hypothesis import strategies as st

from modwatch.statistics.audit.stratified import StratumCounts

#: Rates that are nothing, everything, or between.
RATES = st.sampled_from([0.0, 1.0]) | st.floats(0, 1)
SIZES = st.integers(1, 30) | st.integers(1, 50_000_000)


@st.composite
def strata(draw, most=60):
    """Return population, labels, positives and score of a stratum each, as columns."""
    rows = draw(st.lists(st.tuples(SIZES, RATES, RATES, RATES), min_size=1, max_size=most))
    population = np.array([size for size, *_ in rows])
    drawn, found, score = np.array([rates for _, *rates in rows]).T
    labels = np.clip(np.round(drawn * np.minimum(population, 3000)), 1, None).astype(int)
    return population, labels, np.round(found * labels).astype(int), score


@st.composite
def counts(draw, most=60):
    """Return any valid counts of a stratified sample."""
    population, labels, positives, score = draw(strata(most))
    return StratumCounts.from_arrays(
        population=population, labels=labels, positives=positives, score=score
    )
