"""Means over the seeds with intervals, and the paper's finding about review strategies."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, Literal

import numpy as np
from scipy import stats

from modwatch.statistics.collaboration.collaborative import METRICS
from modwatch.statistics.intervals import LEVEL
from modwatch_lab.benchmark import paper
from modwatch_lab.benchmark.evaluation import FINDING_FRACTIONS, TABLE_METRICS
from modwatch_lab.benchmark.runs import Result

Verdict = Literal["uncertainty better", "toxicity better", "undecided", "equal"]

#: Differences of OC-AUROC that are rounding.
_ROUNDING = 1e-12


def mean_over_seeds(
    values: Sequence[float | None], *, limits: tuple[float, float] = (-1.0, 1.0)
) -> dict[str, Any]:
    """Return `mean`, `low`, `high` and `seeds`: the mean and its 95 % Student-t interval.

    The interval is that of another average over as many seeds on the same comments, clipped to
    `limits`; it does not cover the choice of comments. None with one seed. The mean is None if a
    value is.

    >>> mean_over_seeds([0.5]), mean_over_seeds([0.5, 0.5])["low"]
    ({'mean': 0.5, 'low': None, 'high': None, 'seeds': 1}, 0.5)
    >>> round(mean_over_seeds([0.1, 0.2, 0.3])["high"], 3)
    0.448
    """
    known = [value for value in values if value is not None]
    found: dict[str, Any] = {"mean": None, "low": None, "high": None, "seeds": len(values)}
    if not known or len(known) < len(values):
        return found
    found["mean"] = mean = float(np.mean(known))
    if len(known) > 1:
        quantile = float(stats.t.ppf((1 + LEVEL) / 2, len(known) - 1))
        half = quantile * float(np.std(known, ddof=1)) / math.sqrt(len(known))
        found |= {"low": max(mean - half, limits[0]), "high": min(mean + half, limits[1])}
    return found


def table_rows(results: Sequence[Result]) -> list[dict[str, Any]]:
    """Return a row for each environment, loss, method and metric, with the published figure.

    Columns: domain, loss, method, metric, mean, low, high, seeds, paper, source; `nothing`, the
    figure of a model that flags nothing.
    """
    rows = []
    for model, group in _groups(results):
        known, domain = paper.published(**model), model["domain"]
        for metric in TABLE_METRICS:
            values = [result.figures[domain]["table"][metric] for result in group]
            rows.append(
                {
                    **model,
                    "metric": metric,
                    **mean_over_seeds(values, limits=(0.0, 1.0)),
                    "paper": known[metric],
                    "source": paper.TABLES[domain],
                    "nothing": group[0].figures[domain]["nothing"][metric],
                }
            )
    return rows


def curve_rows(results: Sequence[Result]) -> list[dict[str, Any]]:
    """Return a row for each environment, loss, method, strategy, review fraction and metric.

    Columns: domain, loss, method, strategy, alpha, metric, mean, low, high, seeds.
    """
    rows = []
    for model, group in _groups(results):
        curves = [result.figures[model["domain"]]["curve"] for result in group]
        for place, point in enumerate(curves[0]):
            key = {**model, "strategy": point["strategy"], "alpha": point["alpha"]}
            for metric in METRICS:
                values = [curve[place][metric] for curve in curves]
                found = mean_over_seeds(values, limits=(0.0, 1.0))
                rows.append({**key, "metric": metric, **found})
    return rows


def finding_rows(results: Sequence[Result]) -> list[dict[str, Any]]:
    """Return OC-AUROC by uncertainty less that by toxicity, a row for each α of at least 0.01.

    Columns: domain, loss, method, alpha; mean, low, high, seeds of the difference, paired over the
    seeds; comments_low and comments_high, the 95 % percentile interval of the mean over the seeds
    by paired bootstrap of the tested comments; verdict.

    The verdict is in favour of a strategy if both intervals are on its side of 0 (with one seed,
    that of the comments).
    """
    rows = []
    for model, group in _groups(results):
        domain = model["domain"]
        draws = np.mean([result.draws[domain] for result in group], axis=0)  # (draws, A)
        for place, alpha in enumerate(FINDING_FRACTIONS):
            found = mean_over_seeds([_difference(result, domain, alpha) for result in group])
            known = draws[np.isfinite(draws[:, place]), place]
            ends = np.quantile(known, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]) if known.size else None
            row = {
                **model,
                "alpha": alpha,
                **found,
                "comments_low": None if ends is None else float(ends[0]),
                "comments_high": None if ends is None else float(ends[1]),
            }
            row["verdict"] = _verdict(row)
            rows.append(row)
    return rows


def _groups(results: Sequence[Result]) -> Iterator[tuple[dict[str, str], list[Result]]]:
    """Yield domain, loss and method, and the results of all seeds, in the order of the paper."""
    for domain, *model in product(paper.DOMAINS, paper.LOSS_TITLES, paper.METHOD_TITLES):
        group = [result for result in results if [result.run.loss, result.run.method] == model]
        if group:
            yield {"domain": domain, "loss": model[0], "method": model[1]}, group


def _difference(result: Result, domain: str, alpha: float) -> float | None:
    area = {
        row["strategy"]: row["oc_auroc"]
        for row in result.figures[domain]["curve"]
        if row["alpha"] == alpha
    }
    if None in area.values():
        return None
    return float(area["uncertainty"] - area["toxicity"])


def _verdict(row: dict[str, Any]) -> Verdict:
    """Return which strategy is better.

    >>> ends = {"low": 0.1, "high": 0.3, "comments_low": 0.1, "comments_high": 0.2}
    >>> _verdict({"mean": 0.2, **ends}), _verdict({"mean": 0.2, **ends, "comments_low": -0.1})
    ('uncertainty better', 'undecided')
    """
    if row["mean"] is None or row["comments_low"] is None:
        return "undecided"
    low = min(end for end in (row["low"], row["comments_low"]) if end is not None)
    high = max(end for end in (row["high"], row["comments_high"]) if end is not None)
    if max(abs(low), abs(high)) <= _ROUNDING:
        return "equal"
    if low > 0:
        return "uncertainty better"
    return "toxicity better" if high < 0 else "undecided"


def finding_sentences(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Return where the paper's finding holds, a sentence for each environment.

    The paper (section 6.2): in domain, uncertainty has a higher OC-AUROC than toxicity at all
    measured review fractions.
    """
    sentences = []
    for domain, title in paper.DOMAINS.items():
        of_domain = [row for row in rows if row["domain"] == domain]
        if not of_domain:
            continue
        count = Counter(row["verdict"] for row in of_domain)
        models = dict.fromkeys((row["loss"], row["method"]) for row in of_domain)
        fails = dict.fromkeys(
            (row["loss"], row["method"])
            for row in of_domain
            if row["verdict"] != "uncertainty better"
        )
        positive = sum((row["mean"] or 0) > 0 for row in of_domain)
        sentences.append(
            f"{title}: uncertainty has the higher OC-AUROC in {count['uncertainty better']} of "
            f"{len(of_domain)} comparisons (models and review fractions of at least 0.01), "
            f"toxicity in {count['toxicity better']}; {count['undecided']} undecided, "
            f"{count['equal']} equal. The mean difference is positive in {positive}. "
            f"{_holding(list(models), list(fails))}"
        )
    return sentences


def _holding(models: Sequence[tuple[str, str]], fails: Sequence[tuple[str, str]]) -> str:
    """Return for which models the finding holds, as a sentence.

    >>> _holding([("focal", "sngp"), ("focal", "ensemble")], [("focal", "sngp")])
    'The finding holds at all of these fractions for 1 of 2 models, not for SNGP (focal loss).'
    """
    if not fails:
        return f"The finding holds at all of these fractions for all {len(models)} models."
    if len(fails) == len(models):
        return f"The finding holds at all of these fractions for none of {len(models)} models."
    named = " and ".join(_title(*model) for model in fails)
    return (
        f"The finding holds at all of these fractions for {len(models) - len(fails)} of "
        f"{len(models)} models, not for {named}."
    )


def _title(loss: str, method: str) -> str:
    return f"{paper.METHOD_TITLES[method]} ({paper.LOSS_TITLES[loss].lower()})"


def best_sentences(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Return which model and strategy has the highest OC-AUROC, next to the paper's best."""
    sentences = []
    for domain, best in paper.BEST_OC_AUROC.items():
        areas = [
            row
            for row in rows
            if (row["domain"], row["metric"]) == (domain, "oc_auroc") and row["mean"] is not None
        ]
        alphas = dict.fromkeys(row["alpha"] for row in areas)
        winners = Counter(
            _model(
                max((row for row in areas if row["alpha"] == alpha), key=lambda row: row["mean"])
            )
            for alpha in alphas
        )
        found = ", ".join(f"{model} (at {n})" for model, n in winners.most_common())
        sentences.append(
            f"{paper.DOMAINS[domain]}: the model with the highest mean OC-AUROC at each of "
            f"{len(alphas)} review fractions is {found or 'unknown'}. In the paper: {best}."
        )
    return sentences


def _model(row: dict[str, Any]) -> str:
    return f"{_title(row['loss'], row['method'])} by {row['strategy']}"
