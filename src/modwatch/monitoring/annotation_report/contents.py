"""All figures of a set of annotations."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from modwatch.common.errors import MetricInputError
from modwatch.statistics import arguments
from modwatch.statistics.decisions import decided_class
from modwatch.statistics.disagreement import (
    Annotations,
    FlipRates,
    adjusted_metrics,
    agreement_with_people,
    estimate_flip_rates,
    fixed_flip_rate,
)
from modwatch.statistics.disagreement.annotations import distribution
from modwatch.statistics.divergence import (
    DemographicDivergence,
    Groups,
    annotator_profiles,
    conformity_delta,
    demographic_divergence,
    group_report,
    kappa_table,
    shown_together,
)
from modwatch.statistics.divergence.annotator_groups import MINIMUM_ANNOTATORS, check_minimum
from modwatch.statistics.divergence.group_divergence import DIVERGENCE
from modwatch.statistics.estimate import SIGNIFICANT, Estimate

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Clusters:
    """Annotators whose conformity is alike, and how groups are spread over them."""

    #: Its `group_share` is NaN where it could identify a few people.
    found: DemographicDivergence
    #: (k, 40) mean profile of each cluster, shares of δ on [−1, 1].
    profile: Floats = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class GroupingReport:
    """The figures of the groups of one attribute, or of several."""

    name: str
    #: None: no group is large enough.
    groups: Groups | None
    #: Why there are no groups; empty if there are.
    reason: str
    #: Annotators of each group, and those without one.
    annotators: tuple[int, ...] = ()
    without: int = 0
    #: `group_report`; None without probabilities.
    table: pd.DataFrame | None = field(default=None, repr=False)
    #: `kappa_table`.
    kappa: pd.DataFrame | None = field(default=None, repr=False)
    clusters: Clusters | None = field(default=None, repr=False)
    #: What readers must know of how the groups were made; empty: they are as they were given.
    note: str = ""

    def rounded(self, base: int) -> "GroupingReport":
        """Return the report with figures of three decimals, and multiples of `base` as numbers.

        Numbers of people, labels and shared items are rounded down. Clusters are left out: their
        shares of groups tell the numbers of people.
        """
        table, kappa = self.table, self.kappa
        if table is not None:
            exact = table[["p_value", "p_holm"]]  # multiples of 1/permutations
            numbers = table[["annotators", "annotations"]] // base * base
            table = table.round(_DECIMALS).assign(**exact, **numbers)
        if kappa is not None:
            kappa = kappa.round(_DECIMALS).assign(items=kappa["items"] // base * base)
        return replace(
            self,
            annotators=tuple(number // base * base for number in self.annotators),
            without=self.without // base * base,
            table=table,
            kappa=kappa,
            clusters=None,
        )

    def significant(self) -> pd.DataFrame:
        """Return the rows of agreement whose difference is more than chance, largest first."""
        if self.table is None:
            return pd.DataFrame()
        rows = self.table[self.table["metric"] == "agreement"]
        rows = rows[rows["p_holm"] < SIGNIFICANT]
        return rows.reindex(rows["difference"].abs().sort_values(ascending=False).index)


@dataclass(frozen=True, kw_only=True)
class AnnotationReport:
    """All figures of a set of annotations; no figure of a single item or annotator."""

    items: int
    annotators: int
    annotations: int
    retests: int
    classes: tuple[Any, ...]
    #: Flip rates; None if they cannot be estimated, then `reason` says why.
    rates: FlipRates | None
    reason: str
    #: `adjusted_metrics`; None without probabilities.
    metrics_table: pd.DataFrame | None = field(repr=False)
    #: `agreement_with_people` of the `model`, if there is one, and of the `majority` of the others:
    #: with all labels (`raw`), and with primary labels (`adjusted`).
    agreement: Mapping[tuple[str, str], Estimate] = field(repr=False)
    #: Share of the labels that equal the majority which they make; no decision equals more.
    most: float
    groupings: tuple[GroupingReport, ...]

    @property
    def at_most(self) -> bool:
        """Whether only the high bounds of the flip rates are known."""
        return self.rates is not None and self.rates.method == "svd"

    def slips(self) -> str:
        """Return the share of labels that are slips as text."""
        if self.rates is None:
            return "an unknown share"
        low, value, high = (float(self.rates.rates(of).mean()) for of in ("low", None, "high"))
        if self.at_most:
            return f"at most {high:.1%}"
        return f"about {value:.1%} (90 % bounds {low:.1%} to {high:.1%})"

    def share(self, who: str, kind: str) -> str:
        """Return an agreement as text."""
        found = self.agreement[who, kind]
        if found.value is None:
            return f"an unknown share ({found.reason})"
        if kind == "adjusted" and self.rates is None:
            return "an unknown share"
        value, low, high = found.known
        if kind == "adjusted" and self.at_most:
            return f"{low:.1%} to {high:.1%}"
        return f"{value:.1%} (95 % interval {low:.1%} to {high:.1%})"

    def metrics(self) -> dict[str, float]:
        """Return the main figures by key, at most 60; without names of groups.

        Keys: `disagreement/…` and `groups_GROUPING/…`.
        """
        found = {
            "disagreement/annotations": float(self.annotations),
            "disagreement/annotators": float(self.annotators),
            "disagreement/items": float(self.items),
            "disagreement/retests": float(self.retests),
        }
        if self.rates is not None:
            bounds = {"_high": "high"} if self.at_most else _BOUNDS
            for name, bound in bounds.items():
                rate = float(self.rates.rates(bound).mean())  # type: ignore[arg-type]
                found[f"disagreement/flip_rate{name}"] = rate
        for (who, kind), agreement in self.agreement.items():
            ends = agreement.known if agreement.value is not None else (np.nan,) * 3
            for end, value in zip(_BOUNDS, ends, strict=True):
                found[f"disagreement/{who}_{kind}{end}"] = value
        if self.metrics_table is not None:
            for metric, kind in product(_SHOWN, ("raw", "adjusted")):
                found[f"disagreement/{metric}_{kind}"] = self.metrics_table[kind][metric]
        if self.at_most or self.rates is None:
            found = {name: value for name, value in found.items() if not name.endswith("_adjusted")}
        for grouping in self.groupings[:_MOST_GROUPINGS]:
            prefix = f"groups_{_key(grouping.name)}"
            if grouping.groups is not None:
                found[f"{prefix}/groups"] = float(len(grouping.groups.names))
            if grouping.table is not None:
                rows = grouping.table[grouping.table["metric"] == "agreement"]
                found[f"{prefix}/largest_difference"] = float(rows["difference"].abs().max())
                found[f"{prefix}/significant"] = float(len(grouping.significant()))
                rows = grouping.table[grouping.table["metric"] == DIVERGENCE]
                found[f"{prefix}/largest_uncertainty_divergence"] = float(rows["value"].max())
            if grouping.clusters is not None:
                found[f"{prefix}/demographic_divergence"] = grouping.clusters.found.value
        return {name: value for name, value in found.items() if not np.isnan(value)}

    def tables(self) -> dict[str, pd.DataFrame]:
        """Return the tables by name."""
        found = {}
        if self.metrics_table is not None:
            found["metrics"] = self.metrics_table.rename_axis("metric").reset_index()
        if self.rates is not None:
            found["flip_rates"] = self.rates.table
        for grouping in self.groupings:
            name = _key(grouping.name)
            if grouping.table is not None:
                found[f"groups_{name}"] = grouping.table[grouping.table["metric"].notna()]
            if grouping.kappa is not None:
                found[f"kappa_{name}"] = grouping.kappa
        return found


_DECIMALS = 3
_BOUNDS = {"": None, "_low": "low", "_high": "high"}
_SHOWN = ("auroc", "f1")
_MOST_GROUPINGS = 7


def _key(name: str) -> str:
    return "".join(letter if letter.isalnum() else "_" for letter in name)


def annotation_report(
    annotations: Annotations,
    *,
    y_prob: ArrayLike | None = None,
    groups: Mapping[str, Mapping[Any, str] | pd.Series] | None = None,
    threshold: float = 0.5,
    minimum: int = MINIMUM_ANNOTATORS,
    sample_weight: ArrayLike | None = None,
    seed: int = 0,
    progress: Callable[[int, int], None] = lambda *_: None,
    released: Mapping[str, Collection[str]] | None = None,
) -> AnnotationReport:
    """Return how people disagree, whom a model agrees with, and how groups differ.

    What the data do not allow is left out, and the report says why.

    Args:
        annotations: of two classes or more.
        y_prob: (I,) probability of the last of two classes, or (I, K) of all, in the order of
            `annotations.items`.
        groups: group of each annotator, by the name of the grouping.
        threshold: of two classes, decisions are positive above.
        minimum: annotators of a group; smaller ones are suppressed.
        sample_weight: (I,) ≥ 0 of the metrics, such as 1/inclusion probability.
        seed: of permutations and clusters.
        progress: called with the number of fits of a factorisation that are done, and of all.
        released: groups that an earlier report of these annotations shows, by grouping; `groups`
            has these groupings too.

    Raises:
        MetricInputError: probabilities outside [0, 1] or NaN, or not of each class; a threshold
            outside [0, 1], a minimum below 1, or two groupings whose files would have one name.

    >>> rng = np.random.default_rng(1)
    >>> annotations = Annotations.from_columns(
    ...     item=np.repeat(np.arange(60), 6), annotator=np.tile(np.arange(6), 60),
    ...     label=(rng.random(360) < np.repeat(rng.beta(0.3, 0.3, 60), 6)).astype(int),
    ... )
    >>> report = annotation_report(annotations, y_prob=rng.random(60))
    >>> report.items, report.rates, sorted(report.tables())
    (60, None, ['metrics'])
    """
    threshold = arguments.fraction("threshold", threshold)
    check_minimum(minimum)
    _check_names(groups or {})
    prob = None if y_prob is None else np.asarray(y_prob, dtype=np.float64)
    rates, reason = _rates(annotations, prob, seed, progress)
    used = rates or fixed_flip_rate(annotations, 0.0)
    table = None
    decisions: dict[str, Floats | None] = {"majority": None}
    if prob is not None:
        table = adjusted_metrics(
            annotations, prob, used, threshold=threshold, sample_weight=sample_weight
        )
        decisions["model"] = _decided(annotations, prob, threshold)
    kinds = {"raw": fixed_flip_rate(annotations, 0.0), "adjusted": used}
    counts = annotations.counts()
    weight = arguments.weights(sample_weight, len(counts))
    return AnnotationReport(
        items=len(annotations.items),
        annotators=len(annotations.annotators),
        annotations=int(annotations.first.sum()),
        retests=annotations.retests.item.size,
        classes=tuple(annotations.classes),
        rates=rates,
        reason=reason,
        metrics_table=table,
        agreement={
            (who, kind): agreement_with_people(
                annotations, kinds[kind], decision=decisions[who], sample_weight=weight
            )
            for who, kind in product(decisions, kinds)
        },
        most=float(weight @ (counts.max(axis=1) / counts.sum(axis=1)) / weight.sum()),
        groupings=_groupings(
            groups or {}, annotations, prob, threshold, minimum, seed, released or {}
        ),
    )


def _decided(annotations: Annotations, prob: Floats, threshold: float) -> Floats:
    """Return 1 for the class (I, K) that the model decides."""
    share = distribution(prob, annotations, np.float64)
    return np.asarray(np.eye(annotations.n_classes)[decided_class(share, threshold)])


def _check_names(groupings: Iterable[str]) -> None:
    """Raise MetricInputError if the files of two groupings would have one name."""
    known: dict[str, str] = {}
    for name in groupings:
        other = known.setdefault(_key(name), name)
        if other != name:
            raise MetricInputError(
                f"the groupings {other} and {name} would have the same files; rename a column"
            )


def _rates(
    annotations: Annotations,
    prob: Floats | None,
    seed: int,
    progress: Callable[[int, int], None],
) -> tuple[FlipRates | None, str]:
    by = prob.max(axis=1) if prob is not None and prob.ndim == 2 else prob
    try:
        rates = estimate_flip_rates(annotations, by=by, seed=seed, progress=progress)
    except MetricInputError as exc:
        return None, str(exc)
    return rates, rates.reason


def _groupings(
    groups: Mapping[str, Mapping[Any, str] | pd.Series],
    annotations: Annotations,
    prob: Floats | None,
    threshold: float,
    minimum: int,
    seed: int,
    released: Mapping[str, Collection[str]],
) -> tuple[GroupingReport, ...]:
    """Return the report of each grouping; together they identify no few people."""
    reasons, known = {}, {}
    # The released ones first, with the groups that were shown.
    for name, given in sorted(groups.items(), key=lambda one: one[0] not in released):
        of = pd.Series(given)
        of = of[of.isin(released.get(name, of))]
        try:
            known[name] = Groups.from_annotations(annotations, of, minimum=minimum)
        except MetricInputError as exc:
            reasons[name] = str(exc)
    earlier = len(known.keys() & released.keys())
    shown = shown_together([*known.values()], annotations, minimum=minimum, released=earlier)
    found = {}
    for name, shown_groups in zip(known, shown, strict=True):
        if not shown_groups.names:
            reasons[name] = "few people would follow from it and another grouping"
            continue
        table, clusters = None, None
        if prob is not None:
            table = group_report(annotations, prob, shown_groups, threshold=threshold, seed=seed)
            clusters = _clusters(annotations, prob, shown_groups, minimum, seed)
        found[name] = GroupingReport(
            name=name,
            groups=shown_groups,
            reason="",
            annotators=tuple(shown_groups.sizes().tolist()),
            without=shown_groups.without,
            table=table,
            kappa=kappa_table(annotations, shown_groups),
            clusters=clusters,
        )
    for name, reason in reasons.items():
        found[name] = GroupingReport(name=name, groups=None, reason=reason)
    return tuple(found[name] for name in groups)


def _clusters(
    annotations: Annotations, prob: Floats, groups: Groups, minimum: int, seed: int
) -> Clusters | None:
    """Return the clusters of annotators; None if they could identify a few people."""
    profiles = annotator_profiles(conformity_delta(annotations, prob))
    try:
        found = demographic_divergence(profiles, groups.code[profiles.annotator], seed=seed)
    except MetricInputError:
        return None
    if found.size.min() < minimum:  # a mean profile of few people is theirs
        return None
    shares = _shown_shares(found, profiles.annotator, groups, annotations, minimum)
    profile = np.stack(
        [profiles.share[found.cluster == number].mean(axis=0) for number in range(len(found.size))]
    )
    return Clusters(found=replace(found, group_share=shares), profile=profile)


def _shown_shares(
    found: DemographicDivergence,
    people: NDArray[np.intp],
    groups: Groups,
    annotations: Annotations,
    minimum: int,
) -> Floats:
    """Return the shares of groups (k, G) in clusters of `people` (P,), NaN for some groups.

    They are those with few people in a cluster and, where the people without a shown group are few
    in one, the smallest of the others: `shown_together`.
    """
    member = np.zeros(len(groups.code), bool)
    member[people] = True
    cluster = np.full_like(groups.code, -1)
    cluster[people] = found.cluster
    names = tuple(map(str, range(len(found.size))))
    given = [
        Groups(names=names, code=cluster, suppressed={}, without=0),
        replace(groups, code=np.where(member, groups.code, -1)),
    ]
    of = annotations.of_annotators(member)
    _, shown = shown_together(given, of, minimum=minimum, released=1)
    share = found.group_share.copy()
    share[:, [name not in shown.names for name in groups.names]] = np.nan
    return share
