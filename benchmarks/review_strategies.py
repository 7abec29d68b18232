"""What each review strategy finds, on every corpus of real comments, with intervals.

    python benchmarks/review_strategies.py [--prevalence 0.01] [--threshold 0.2] [--encoder FOLDER]
        [--figure FILE]

A model is trained on the Jigsaw training set, less 20,000 comments held out and all texts of the
other corpora, for a stream with the `--prevalence`, which decides its threshold if none is given.
Then for each corpus: Review Efficiency by strategy and review fraction, OC-AUROC of `uncertainty`
less that of `predictive_variance`, and what the errors outside of a review of 2 % cost if a missed
toxic comment costs 5 and a false alarm 1. Means and 95 % intervals over 200 draws: of 500 random
comments whose labels recalibrate the scores, as those of a window do, and of the others, which are
reviewed.
`--data` or MODWATCH_DATA names the folder of the corpora.
"""

import argparse
import gzip
import json
import os
import tempfile
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from wikipedia_talk import stream, test_set

from modwatch import statistics as metrics
from modwatch.common import charts
from modwatch.models.artifact import save
from modwatch.models.recipe import Recipe, offline_recipe
from modwatch.models.scoring.local import LocalScorer
from modwatch.models.training import train
from modwatch.statistics.collaboration.review_strategies import style
from modwatch.statistics.recalibration import Calibration, shown_off

ALPHAS, DRAWS, LABELLED, COSTS = (0.005, 0.01, 0.02, 0.05), 200, 500, (5, 1)
STRATEGIES = ("uncertainty", "predictive_variance", "toxicity", "hybrid", "cost")
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


def scored(folder, recipe):
    """Return the threshold and label, probability and weight of each corpus."""
    others = corpora(folder)
    tested = {text.strip() for texts, _ in others.values() for text in texts}
    jigsaw = pd.read_parquet(folder / "jigsaw2018" / "train.parquet", columns=["text", "any_toxic"])
    jigsaw = jigsaw[~jigsaw["text"].str.strip().isin(tested)].sample(frac=1, random_state=0)
    held, fit = jigsaw[:HELD_OUT], jigsaw[HELD_OUT:]
    model = train(list(fit["text"]), fit["any_toxic"].astype(int).tolist(), recipe=recipe, seed=0)
    with tempfile.TemporaryDirectory() as scratch:
        save(model, Path(scratch))
        scorer = LocalScorer(Path(scratch), model_version="benchmark")
        found = {
            name: (
                np.asarray(label).astype(int),
                scorer.score(list(texts)).prob,
                np.ones(len(label)),
            )
            for name, (texts, label) in {
                **others,
                "Jigsaw, held out": (held["text"], held["any_toxic"]),
            }.items()
        }
    label, prob, weight = found["Jigsaw, held out"]
    odds = 0.01 / 0.99 * (1 - label.mean()) / label.mean()
    found["Jigsaw, weighted to 1 %"] = (label, prob, np.where(label == 1, odds, weight))
    return scorer.threshold, found


def recalibrated(label, prob, weight, rng):
    """Return the probabilities by which `LABELLED` labels of a random sample order the rest.

    Second comes which comments the rest are.
    """
    drawn = rng.choice(len(label), LABELLED, p=weight / weight.sum())
    line = shown_off(prob[drawn], label[drawn].astype(float)) or Calibration()
    return line.probability(prob), ~np.isin(np.arange(len(label)), drawn)


def outcomes(label, prob, calibrated, weight, threshold):
    """Return Review Efficiency, OC-AUROC and remaining cost by strategy, each (S, A)."""
    options = {"sample_weight": weight, "threshold": threshold}
    found = []
    for strategy in STRATEGIES:
        score = metrics.review_scores(
            prob, strategy, calibrated=calibrated, threshold=threshold, costs=COSTS,
            sample_weight=weight,
        )  # fmt: skip
        for alpha in ALPHAS:
            at = (label, prob, score)
            found.append(
                [
                    metrics.review_efficiency(*at, review_fraction=alpha, **options),
                    metrics.oc_auroc(*at, review_fraction=alpha, **options),
                    metrics.remaining_cost(*at, review_fraction=alpha, costs=COSTS, **options),
                ]
            )
    return np.array(found, float).T.reshape(3, len(STRATEGIES), -1)


def rows(found, threshold):
    """Yield a row each corpus, strategy and review fraction: means over draws of the labels."""
    for corpus, (label, prob, weight) in found.items():
        rng, drawn = np.random.default_rng(0), []
        for _ in range(DRAWS):
            calibrated, rest = recalibrated(label, prob.astype(float), weight, rng)
            row = rng.choice(np.flatnonzero(rest), int(rest.sum()))
            parts = (part[row] for part in (label, prob.astype(float), calibrated, weight))
            drawn.append(outcomes(*parts, threshold))
        mean = np.nanmean(drawn, axis=0)
        low, high = np.nanquantile(drawn, [0.025, 0.975], axis=0)[:, 0]
        for (at, strategy), (place, alpha) in product(enumerate(STRATEGIES), enumerate(ALPHAS)):
            yield {
                "corpus": corpus,
                "strategy": strategy,
                "alpha": alpha,
                "value": mean[0, at, place],
                "low": low[at, place],
                "high": high[at, place],
                "oc_auroc": mean[1, at, place],
                "remaining_cost": mean[2, at, place],
            }


def report(table):
    """Print the tables of docs/benchmarks.md."""
    print("| corpus | strategy |", *(f" {100 * alpha:g} % |" for alpha in ALPHAS), "cost left |")
    print("|---|---|", *("---|" for _ in ALPHAS), "---|")
    for (corpus, strategy), part in table.groupby(["corpus", "strategy"], sort=False):
        cells = (f" {row.value:.2f} ({row.low:.2f}–{row.high:.2f}) |" for row in part.itertuples())
        cost = part.set_index("alpha").loc[0.02, "remaining_cost"]
        print(f"| {corpus} | `{strategy}` |", *cells, f"{cost:.4f} |")
    wide = table.pivot_table(index=["corpus", "alpha"], columns="strategy")
    ours, theirs = (wide.xs(name, axis=1, level=1) for name in STRATEGIES[:2])
    ratio = (ours["value"] / theirs["value"]).groupby("corpus").min()
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
            charts.band(axes, x, (part["low"].to_numpy(), part["high"].to_numpy()), colour)
            axes.plot(x, part["value"], color=colour, linestyle=line, marker=marker, label=strategy)
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
    parser.add_argument("--prevalence", type=float, default=0.01)
    parser.add_argument("--threshold", type=float)
    parser.add_argument("--encoder")
    parser.add_argument("--figure", type=Path)
    given = parser.parse_args()
    options = {"expected_prevalence": given.prevalence, "threshold": given.threshold}
    recipe = (
        Recipe(encoder=given.encoder, max_examples=20_000, **options)
        if given.encoder
        else offline_recipe(**options)
    )
    threshold, found = scored(given.data, recipe)
    print(f"threshold {threshold:.3f}")
    table = pd.DataFrame(rows(found, threshold))
    report(table)
    if given.figure:
        draw(table, threshold, given.figure)


if __name__ == "__main__":
    main()
