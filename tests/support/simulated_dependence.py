"""Labels by people with different error rates, on easy and hard comments, some of them copied."""

import numpy as np
import pandas as pd
from scipy import special, stats


def label_pairs(seed, m=8_000, people=5, copied=None, hard=0.0, rates=None, shift=0.0):
    """Return first and second labels of m comments, as `dependence_table` takes them.

    Rates of errors are drawn for each person unless they are given, (people, 2). `hard` is the
    standard deviation of the comments' difficulty, in probits. Half of the second labels copy the
    first one if they are `copied`: by the person 0 (`person`), of the persons 0 and 1 (`pair`), by
    anybody (`all`), or the soonest tenth (`quick`). With `shift` people form two teams, whose
    comments are that much more and less often toxic than the score says, in logits.
    """
    rng = np.random.default_rng(seed)
    if rates is None:
        rates = np.column_stack([rng.uniform(0.005, 0.1, people), rng.uniform(0.05, 0.4, people)])
    prob = np.clip(rng.beta(0.5, 2.0, m), 1e-3, 1 - 1e-3)
    team = rng.integers(0, 2, m) if shift else np.zeros(m, np.int64)
    truth = rng.random(m) < special.expit(special.logit(prob) + shift * (2 * team - 1))
    size = people // 2 if shift else people
    one = rng.integers(0, size, m)
    other = (one + rng.integers(1, size, m)) % size + team * size
    one += team * size
    rate = np.where(truth[:, None], *np.asarray(rates, np.float64).T[::-1])
    limit = stats.norm.ppf(np.clip(rate, 1e-6, 1 - 1e-6))
    difficulty = hard * rng.standard_normal(m)
    chance = stats.norm.cdf(limit * np.sqrt(1 + hard**2) + difficulty[:, None])
    given = truth[:, None] ^ (rng.random(chance.shape) < chance)
    first, second = given[np.arange(m), one], given[np.arange(m), other]
    delay = rng.random(m)
    exposed = {
        None: np.zeros(m, np.bool_),
        "person": other == 0,
        "pair": np.maximum(one, other) == 1,
        "all": np.ones(m, np.bool_),
        "quick": delay < 0.1,
    }[copied]
    second = np.where(exposed & (rng.random(m) < 0.5), first, second).astype(np.float64)
    without = rng.random(m) > np.where(first, 0.8, 0.15)
    names = pd.Series([f"m{person}" for person in other]).mask(without)
    return pd.DataFrame(
        {
            "prob": prob,
            "label_first": first.astype(np.int64),
            "moderator_first": [f"m{person}" for person in one],
            "decided_at_first": pd.Timestamp("2026-01-05", tz="UTC"),
            "label_second": np.where(without, np.nan, second),
            "moderator_second": names,
            "decided_at_second": pd.Series(
                pd.Timestamp("2026-01-05", tz="UTC") + pd.to_timedelta(delay, unit="D")
            ).mask(without),
        }
    )
