"""What each review strategy finds, on every corpus of real comments, with intervals.

    python benchmarks/review_strategies.py [--recipe FILE] [--figure FILE] [--table FILE]
        [--methods sngp ensemble] [--seeds 0 1] [--labels 500 3000]

The recipe is a TOML file; without one the offline model is trained.

A model is trained on the Jigsaw training set, less 20,000 comments held out and all texts of the
other corpora, for a stream with the recipe's prevalence, or 1 %, which decides the threshold.
Then for each corpus: Review Efficiency by strategy and review fraction, OC-AUROC of `uncertainty`
less that of `predictive_variance`, and what the errors outside of a review of 2 % cost if a missed
toxic comment costs 5 and a false alarm 1. Means and 95 % intervals over 200 draws: of 500 random
comments whose labels recalibrate the scores, as those of a window do, and of the others, which are
reviewed; of a corpus with less than twice as many, half are labelled.
Last, in how many cells (model, seed, corpus and review fraction) each strategy is better and worse
than `uncertainty` by the interval of the paired difference: in Review Efficiency (OC-Acc differs by
the review fraction times as much), in OC-AUROC, and as a predictor of the errors (AUROC; that of
`predictive_variance` is Calibration AUROC). `--table` names a CSV file of all figures.
`--data` or MODWATCH_DATA names the folder of the corpora.
"""

import argparse
import gzip
import json
import os
import tempfile
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from wikipedia_talk import stream, test_set

from modwatch import statistics as metrics
from modwatch.common import charts
from modwatch.models.artifact import save
from modwatch.models.recipe import METHODS, read_recipe
from modwatch.models.scoring.local import LocalScorer
from modwatch.models.training import train
from modwatch.statistics.collaboration.ranking import Sweep, reviews
from modwatch.statistics.collaboration.review_strategies import available, style
from modwatch.statistics.decisions import is_flagged
from modwatch.statistics.recalibration import Recalibration, shown_by_variance, shown_off

ALPHAS, DRAWS, COSTS = (0.005, 0.01, 0.02, 0.05), 200, (5, 1)
FIGURES = ("efficiency", "oc_auroc", "remaining_cost", "error_auroc")
HELD_OUT = 20_000


def corpora(folder):
    """Return texts and labels of every corpus but Jigsaw, by name."""
    wikipedia, _ = stream(folder / "wikipedia_talk")
    balanced = test_set(folder / "wikipedia_talk")
    civil = pd.read_parquet(folder / "civil_comments_cctk" / "comments_with_ratings.parquet")
    spans = folder / "civil_comments"
    votes = pd.read_csv(spans / "annotations.csv.gz").groupby("comment_id")["not toxic"].mean()
    called = pd.read_csv(spans / "comments.csv.gz").set_index("comment_id").join(votes).dropna()
    hate = pd.read_csv(folder / "crehate" / "CREHate_final_annotations.csv.gz")
    agreement = []
    for part in ("train", "dev", "test"):
        with gzip.open(folder / "md_agreement" / f"MD-Agreement_{part}.json.gz") as file:
            agreement.extend(json.load(file).values())
    return {
        "Wikipedia Talk, stream": (wikipedia.texts, wikipedia.labels),
        "Wikipedia Talk, 17 % toxic": (balanced.texts, balanced.labels),
        "Civil Comments": (civil["text"], civil["toxic_share"] > 0.5),
        "Civil Comments called toxic": (called["comment_text"], called["not toxic"] < 0.5),
        "CREHate": (hate["Text"], hate["United_States_Hate"] == 1),
        "MD-Agreement": (
            [row["text"] for row in agreement],
            [row["hard_label"] == "1" for row in agreement],
        ),
    }


def scored(folder, recipe, seed=0):
    """Return the threshold and label, columns of the scores and weight of each corpus."""
    others = corpora(folder)
    tested = {text.strip() for texts, _ in others.values() for text in texts}
    jigsaw = pd.read_parquet(folder / "jigsaw2018" / "train.parquet", columns=["text", "any_toxic"])
    jigsaw = jigsaw[~jigsaw["text"].str.strip().isin(tested)].sample(frac=1, random_state=0)
    held, fit = jigsaw[:HELD_OUT], jigsaw[HELD_OUT:]
    label = fit["any_toxic"].astype(int).tolist()
    model = train(list(fit["text"]), label, recipe=recipe, seed=seed)
    everything = {**others, "Jigsaw, held out": (held["text"], held["any_toxic"])}
    found = {}
    with tempfile.TemporaryDirectory() as scratch:
        save(model, Path(scratch))
        scorer = LocalScorer(Path(scratch), model_version="benchmark")
        for name, (texts, labels) in everything.items():
            scores = scorer.score(list(texts))
            columns = {"prob": scores.prob.astype(float), **scores.further}
            found[name] = np.asarray(labels).astype(int), columns, np.ones(len(labels))
    label, columns, weight = found["Jigsaw, held out"]
    odds = 0.01 / 0.99 * (1 - label.mean()) / label.mean()
    found["Jigsaw, weighted to 1 %"] = (label, columns, np.where(label == 1, odds, weight))
    return scorer.threshold, found


def recalibrated(label, columns, weight, labels, rng):
    """Return the columns, with what the labels of a random sample make of the probabilities.

    Second comes which comments the rest are.
    """
    prob, variance = columns["prob"], columns.get("model_variance")
    drawn = rng.choice(len(label), min(labels, len(label) // 2), p=weight / weight.sum())
    known = label[drawn].astype(float)
    asked = Recalibration(
        by_score=shown_off(prob[drawn], known),
        by_variance=None
        if variance is None
        else shown_by_variance(prob[drawn], variance[drawn], known),
    )
    calibrated, given = asked.probabilities(prob, columns)
    calibrated = prob if calibrated is None else calibrated
    more = {"calibrated": calibrated, "given_variance": calibrated if given is None else given}
    return columns | more, ~np.isin(np.arange(len(label)), drawn)


def outcomes(label, columns, weight, threshold):
    """Return the figures (S, A, 4) of each strategy."""
    prob, known = columns["prob"], ("calibrated", "given_variance")
    flagged = is_flagged(prob, threshold)
    wrong, sweep = flagged != (label == 1), Sweep(label, prob)
    cost, found = np.where(flagged, COSTS[1], COSTS[0]) * wrong * weight, []
    for strategy in strategies(columns):
        score = metrics.review_scores(
            prob, strategy, threshold=threshold, costs=COSTS, sample_weight=weight,
            columns=columns, **{name: columns[name] for name in known},
        )  # fmt: skip
        errors = Sweep(wrong, score).curve(weight, np.zeros_like(weight)).auroc()
        for review in reviews(score, ALPHAS, weight):
            part = review.reviewed(score)
            found.append(
                [
                    part * weight @ wrong / (part @ weight),
                    sweep.curve(weight, part).auroc(),
                    (1 - part) @ cost / weight.sum(),
                    errors,
                ]
            )
    return np.array(found, float).reshape(-1, len(ALPHAS), len(FIGURES))


def strategies(columns):
    """Return the strategies to compare, `uncertainty` first."""
    return [name for name in available(list(columns)) if name != "predictive_entropy"]


def rows(found, threshold, labels):
    """Yield a row each corpus, strategy and review fraction: means over draws of the labels.

    `_more` is how much more a figure is than that of `uncertainty`.
    """
    for corpus, (label, scores, weight) in found.items():
        order = np.argsort(scores["prob"])  # later sorts only merge
        label, weight = label[order], weight[order]
        scores = {name: column[order] for name, column in scores.items()}
        rng, drawn = np.random.default_rng(0), []
        for _ in range(DRAWS):
            columns, rest = recalibrated(label, scores, weight, labels, rng)
            row = rng.choice(np.flatnonzero(rest), int(rest.sum()))
            row, times = np.unique(row, return_counts=True)
            parts = (label[row], {name: column[row] for name, column in columns.items()})
            drawn.append(outcomes(*parts, weight[row] * times, threshold))
        figures, every = {}, np.array(drawn)
        for kind, values in (("", every), ("_more", every - every[:, :1])):
            ends = (values.mean(axis=0), *np.quantile(values, [0.025, 0.975], axis=0))
            for end, at in zip(("", "_low", "_high"), ends, strict=True):
                figures |= {name + kind + end: at[..., i] for i, name in enumerate(FIGURES)}
        for (place, strategy), (column, alpha) in product(
            enumerate(strategies(scores)), enumerate(ALPHAS)
        ):
            known = {"corpus": corpus, "strategy": strategy, "alpha": alpha}
            yield known | {name: at[place, column] for name, at in figures.items()}


def verdicts(table):
    """Print in how many cells a strategy is better and worse than `uncertainty`."""
    print("| labels | strategy | figure | cells | better | worse | median more | 10 % to 90 % |")
    print("|---|---|---|---|---|---|---|---|")
    for (labels, strategy), part in table.groupby(["labels", "strategy"], sort=False):
        for figure in ("efficiency", "oc_auroc", "error_auroc"):
            cells = part[part["alpha"] == ALPHAS[0]] if figure == "error_auroc" else part
            better, worse = cells[f"{figure}_more_low"] > 0, cells[f"{figure}_more_high"] < 0
            low, median, high = cells[f"{figure}_more"].quantile([0.1, 0.5, 0.9])
            print(
                f"| {labels} | `{strategy}` | {figure} | {len(cells)} | {better.sum()} |"
                f" {worse.sum()} | {median:+.4f} | {low:+.4f} to {high:+.4f} |"
            )


def report(table):
    """Print the tables of results/review_strategies.md."""
    print("| corpus | strategy |", *(f" {100 * alpha:g} % |" for alpha in ALPHAS), "cost left |")
    print("|---|---|", *("---|" for _ in ALPHAS), "---|")
    for (corpus, strategy), part in table.groupby(["corpus", "strategy"], sort=False):
        cells = (
            f"{row.efficiency:.2f} ({row.efficiency_low:.2f}–{row.efficiency_high:.2f}) |"
            for row in part.itertuples()
        )
        cost = part.set_index("alpha").loc[0.02, "remaining_cost"]
        print(f"| {corpus} | `{strategy}` |", *cells, f"{cost:.4f} |")
    wide = table.pivot_table(index=["corpus", "alpha"], columns="strategy")
    ours, theirs = (
        wide.xs(name, axis=1, level=1) for name in ("uncertainty", "predictive_variance")
    )
    ratio = (ours["efficiency"] / theirs["efficiency"]).groupby("corpus").min()
    print(f"\nleast ratio of Review Efficiency: {ratio.round(2).to_dict()}")
    lower = (ours["oc_auroc"] - theirs["oc_auroc"]).groupby("corpus").min()
    print(f"least difference of OC-AUROC: {lower.round(4).to_dict()}")


def draw(table, threshold, file):
    """Draw Review Efficiency against the review fraction, a panel each corpus."""
    names = table["corpus"].unique()
    figure = Figure(figsize=(14, 7), layout="constrained")
    figure.suptitle(f"Review Efficiency by strategy, threshold {threshold:.2f}", fontsize=14)
    for axes, name in zip(
        figure.subplots(2, len(names) // 2, sharex=True).ravel(), names, strict=True
    ):
        axes.set_title(name, loc="left", fontsize=10)
        for strategy, part in table[table["corpus"] == name].groupby("strategy", sort=False):
            colour, line, marker = style(strategy)
            x = 100 * part["alpha"].to_numpy(float)
            low, middle, high = (
                part[f"efficiency{end}"].to_numpy() for end in ("_low", "", "_high")
            )
            charts.band(axes, x, (low, high), colour)
            axes.plot(x, middle, color=colour, linestyle=line, marker=marker, label=strategy)
        axes.set_ylim(0, 1)
        axes.set_xscale("log")
        axes.set_xticks(x, [f"{one:g}" for one in x])
        axes.minorticks_off()
    figure.supxlabel("comments reviewed, %", x=0.02, ha="left")
    figure.legend(
        *axes.get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False
    )
    figure.savefig(file)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("MODWATCH_DATA"))
    parser.add_argument("--figure", type=Path)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=["sngp"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--labels", nargs="+", type=int, default=[500])
    parser.add_argument("--recipe", type=Path)
    parser.add_argument("--table", type=Path)
    given = parser.parse_args()
    recipe = read_recipe(given.recipe)
    recipe = replace(recipe, expected_prevalence=recipe.expected_prevalence or 0.01)
    table = []
    for method, seed in product(given.methods, given.seeds):
        threshold, found = scored(given.data, replace(recipe, method=method), seed)
        for labels in given.labels:
            print(f"\n{method}, seed {seed}, {labels} labels, threshold {threshold:.3f}")
            part = pd.DataFrame(rows(found, threshold, labels))
            report(part)
            table.append(part.assign(method=method, seed=seed, labels=labels, threshold=threshold))
    verdicts(pd.concat(table))
    if given.table:
        pd.concat(table).to_csv(given.table, index=False)
    if given.figure:
        draw(table[0], table[0]["threshold"].iloc[0], given.figure)


if __name__ == "__main__":
    main()
