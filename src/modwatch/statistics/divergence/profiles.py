"""Profiles of annotators by their conformity deltas, and clusters of profiles."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import chdtr, chndtrinc, xlogy

from modwatch.common.errors import MetricInputError
from modwatch.statistics import arguments
from modwatch.statistics.arguments import Floats
from modwatch.statistics.divergence.conformity import Conformity
from modwatch.statistics.intervals import LEVEL

BINS = 40
#: Of k-means; with 20, one start more or less was a third of the divergence.
_STARTS = 100
#: Of divergences of the same table in another order.
_ROUNDING = 1e-12


@dataclass(frozen=True, kw_only=True)
class Profiles:
    """How the deltas of P annotators are distributed."""

    #: (P,) codes of the annotators.
    annotator: NDArray[np.intp]
    #: (P, 40) share of their deltas in each bin of [−1, 1].
    share: Floats = field(repr=False)
    #: Annotators left out, because they have too few annotations.
    left_out: int


@dataclass(frozen=True, kw_only=True)
class DemographicDivergence:
    """The divergence of the groups' shares between clusters of annotators."""

    #: In [0, log k]: 0 if all clusters have the same shares of groups.
    value: float
    #: 95 % interval for the people of whom the annotators are a sample, in the same clusters.
    low: float
    high: float
    #: Share of permutations of the groups whose divergence is as large.
    p_value: float
    #: (P,) cluster of each profile.
    cluster: NDArray[np.intp] = field(repr=False)
    #: (k, G) share of each group in each cluster, and (k,) annotators of each cluster.
    group_share: Floats = field(repr=False)
    size: NDArray[np.int64]


def annotator_profiles(conformity: Conformity, *, minimum: int = 20) -> Profiles:
    """Return the profiles of annotators with at least `minimum` annotations.

    40 bins of equal width on [−1, 1], each closed at its lower end and the last also at 1
    (Urbinati et al. 2025, Eq. 6 and 7).

    >>> from modwatch.statistics.disagreement import Annotations
    >>> annotations = Annotations.from_columns(item=[0, 0, 0], annotator=[0, 1, 2], label=[1, 1, 0])
    >>> from modwatch.statistics.divergence import conformity_delta
    >>> found = annotator_profiles(conformity_delta(annotations, [1.0]), minimum=1)
    >>> found.share.argmax(axis=1).tolist()
    [20, 20, 39]
    """
    size = int(conformity.annotator.max()) + 1 if conformity.annotator.size else 0
    # Rounded, because 0.7 − 0.3 would fall below the bound 0.4 in binary fractions.
    place = np.floor(np.round((conformity.delta.astype(np.float64) + 1) * BINS / 2, 5))
    cell = conformity.annotator.astype(np.int64) * BINS + np.minimum(place, BINS - 1).astype(int)
    counts = np.bincount(cell, minlength=size * BINS).reshape(size, BINS)
    total = counts.sum(axis=1)
    kept = np.flatnonzero(total >= max(minimum, 1))
    return Profiles(
        annotator=kept,
        share=counts[kept] / total[kept, None],
        left_out=int((total > 0).sum() - kept.size),
    )


def demographic_divergence(
    profiles: Profiles, groups: ArrayLike, *, clusters: int = 4, draws: int = 500, seed: int = 0
) -> DemographicDivergence:
    """Return the divergence of the groups' shares between clusters of profiles.

    Profiles are clustered by k-means (100 starts); the divergence is the Jensen–Shannon divergence
    of the clusters' shares of groups, weighted by their sizes: Σ π_i KL(P_i‖M) with M their
    mixture, natural logarithm (Urbinati et al. 2025, Eq. 8). Even groups that do not matter give a
    value above 0, the more the fewer annotators there are; `p_value` is that of a permutation test.
    Some profiles lie between clusters, so another seed gives a slightly different value; the order
    of the profiles does not matter.

    The interval is that of the likelihood-ratio statistic of independence, 2P times the divergence,
    whose distribution is about noncentral χ². It takes the clusters as given.

    Args:
        profiles: of P annotators.
        groups: (P,) group of each, numbers from 0; below 0: none, left out of the shares.
        clusters: k.
        draws: permutations of the groups.
        seed: of k-means and permutations.

    Raises:
        MetricInputError: fewer different profiles than clusters, or another number of groups.

    >>> share = np.repeat(np.eye(40)[[0, 39]], 5, axis=0)
    >>> profiles = Profiles(annotator=np.arange(10), share=share, left_out=0)
    >>> round(demographic_divergence(profiles, [0] * 5 + [1] * 5, clusters=2).value, 3)
    0.693
    """
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    codes = arguments.column("groups", groups).astype(np.int64)
    if codes.shape != profiles.annotator.shape:
        raise MetricInputError(
            f"groups has shape {codes.shape} for {profiles.annotator.size} profiles"
        )
    different = len(np.unique(profiles.share, axis=0))
    if profiles.annotator.size and different < clusters <= profiles.annotator.size:
        raise MetricInputError(
            f"annotators have {different} different profiles, fewer than {clusters} clusters; "
            "lower `clusters`"
        )
    if profiles.annotator.size < clusters:
        raise MetricInputError(
            f"{profiles.annotator.size} annotators have a profile, fewer than {clusters} clusters; "
            "lower `clusters` or `minimum`"
        )
    # In an order of their own, because starts and permutations are drawn by row.
    order = np.lexsort([codes, *profiles.share.T])
    cluster = np.empty(codes.size, np.intp)
    means = KMeans(clusters, n_init=_STARTS, random_state=seed)
    # Threads would wait for one another longer than they work, and their number change sums.
    with threadpool_limits(1):
        cluster[order] = means.fit_predict(profiles.share[order])
    member = order[codes[order] >= 0]
    of_members, of_groups = cluster[member], codes[member]
    shape = clusters, int(codes.max(initial=0)) + 1
    value, share = _divergence(of_members, of_groups, shape)
    rng = np.random.default_rng(seed)
    larger = sum(
        _divergence(of_members, rng.permutation(of_groups), shape)[0] >= value - _ROUNDING
        for _ in range(draws)
    )
    low, high = _interval(value, of_members, of_groups)
    return DemographicDivergence(
        value=value,
        low=low,
        high=high,
        p_value=(1 + larger) / (1 + draws),
        cluster=cluster,
        group_share=share,
        size=np.bincount(cluster, minlength=clusters),
    )


def _divergence(
    cluster: NDArray[np.intp], group: NDArray[np.intp], shape: tuple[int, int]
) -> tuple[float, Floats]:
    """Return the divergence of clusters (P,) by groups (P,), and the shares (k, G)."""
    table = np.zeros(shape)
    np.add.at(table, (cluster, group), 1)
    size = table.sum(axis=1)
    share = np.divide(table, size[:, None], out=np.zeros_like(table), where=size[:, None] > 0)
    weight = size / max(size.sum(), 1)
    mixture = weight @ share
    entropy = -xlogy(share, share).sum(axis=1)
    return max(float(-xlogy(mixture, mixture).sum() - weight @ entropy), 0.0), share


def _interval(
    value: float, cluster: NDArray[np.intp], group: NDArray[np.intp]
) -> tuple[float, float]:
    """Return the noncentralities, as divergences, under which the value is no exception.

    The upper end is at least that of the value to expect by chance: a smaller value does not say
    that there is less.

    >>> code = np.arange(60)
    >>> [round(end, 3) for end in _interval(0.1, code % 2, code // 30)]
    [0.019, 0.245]
    >>> [round(end, 3) for end in _interval(0.0, code % 2, code // 30)]
    [0.0, 0.073]
    """
    clusters, groups = (max(np.unique(code).size, 1) for code in (cluster, group))
    freedom = (clusters - 1) * (groups - 1)
    if not freedom:
        return value, value
    statistic, tail = 2 * cluster.size * value, (1 - LEVEL) / 2
    low = float(chndtrinc(statistic, freedom, 1 - tail))
    high = float(chndtrinc(max(statistic, freedom), freedom, tail))
    if chdtr(freedom, statistic) < 1 - tail:
        low = 0.0
    return low / (2 * cluster.size), min(high / (2 * cluster.size), float(np.log(clusters)))
