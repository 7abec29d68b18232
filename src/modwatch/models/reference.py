"""The reference of drift that a model brings: held-out comments as the model scores them.

The comments of its training would look too certain; the first days of a platform may be drifted
already. Held-out comments are neither, and are known before the first day.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from modwatch.common.errors import ModelError
from modwatch.data.lake.day_scores import ORIGIN
from modwatch.data.validation.profiles import profile_scores
from modwatch.statistics.decisions import is_flagged
from modwatch.statistics.drift.profile import (
    BINS,
    RANGES,
    Counts,
    Profile,
    length_counts,
    weighted_rows,
)

#: The origin of a model that nobody can rely on.
INVENTED = "demonstration model, trained on invented comments"


def held_out_profile(
    prob: NDArray[np.float64],
    weights: NDArray[np.float64],
    *,
    lengths: ArrayLike,
    threshold: float,
) -> Profile:
    """Return the profile of n held-out comments: scores, flags and lengths.

    Args:
        prob: (n,) calibrated probabilities, as in scoring.
        weights: (n,) that give the comments the expected prevalence. The profile has the effective
            number of comments, `profile.weighted_rows`.
        lengths: (n,) in characters.
        threshold: comments with a higher probability are flagged.

    >>> profile = held_out_profile(np.array([0.2, 0.9]), np.ones(2), lengths=[9, 90], threshold=0.5)
    >>> profile.flagged, profile.categories["length"]
    (1, {'0-49': 1, '50-199': 1})
    """
    rows = weighted_rows(prob, weights)
    scored = np.asarray(prob, np.float32)[rows]  # as scoring keeps them
    profile = profile_scores(scored, is_flagged(scored, threshold), ())
    categories = {"length": length_counts(np.asarray(lengths)[rows])}
    return replace(profile, comments=len(rows), categories=categories)


def of_origin(origin: str) -> Profile | None:
    """Return the reference of a model that says where it is from, if it does, and nothing else."""
    return Profile(categories={ORIGIN: {origin: 1}}) if origin else None


def to_json(profile: Profile) -> dict[str, Any]:
    """Return a profile of `held_out_profile` as plain JSON values.

    Scores are pairs of bin and count, of the bins that have any.
    """
    return {
        "comments": profile.comments,
        "flagged": profile.flagged,
        "length": dict(profile.categories["length"]),
        **{name: _pairs(counts) for name, counts in profile.scores.items()},
    }


def from_json(values: Mapping[str, Any], *, model_version: str) -> Profile | None:
    """Return the profile of `to_json`, with the version of the model; None if there are no values.

    Raises:
        ModelError: the values are not those of a profile.
    """
    if not values:
        return None
    try:
        made = Profile(
            comments=int(values["comments"]),
            categories={"length": {str(band): int(n) for band, n in values["length"].items()}}
            | ({ORIGIN: {str(values[ORIGIN]): 1}} if ORIGIN in values else {}),
            scores={name: _histogram(values[name]) for name in RANGES},
            flagged=int(values["flagged"]),
            model_version=model_version,
        )
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as exc:
        raise ModelError(
            f"the reference of model version {model_version} is not valid; train the model again"
        ) from exc
    return made


def _pairs(counts: Counts) -> list[list[int]]:
    return [[int(at), int(counts[at])] for at in np.flatnonzero(counts)]


def _histogram(pairs: list[list[int]]) -> Counts:
    counts = np.zeros(BINS, np.int64)
    for at, count in pairs:
        counts[at] = count
    return counts
