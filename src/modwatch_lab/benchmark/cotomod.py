"""CoToMoD from data to figures: load, run what is missing, summarise, write."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from modwatch.models.recipe import LOSSES, METHODS, Loss, Method, Recipe
from modwatch.models.training import library_versions
from modwatch_lab.benchmark import paper, summary
from modwatch_lab.benchmark.corpora import BenchmarkData, Comments
from modwatch_lab.benchmark.evaluation import DRAWS
from modwatch_lab.benchmark.runs import Bench, Result, Say, complete, planned, to_json, write_file


def run_cotomod(
    data: BenchmarkData,
    recipe: Recipe,
    output: Path,
    *,
    methods: Sequence[Method] = METHODS,
    losses: Sequence[Loss] = LOSSES,
    seeds: Sequence[int] = (0, 1, 2),
    devices: Sequence[torch.device] = (torch.device("cpu"),),
    draws: int = DRAWS,
    say: Say = lambda _: None,
) -> dict[str, Any]:
    """Run the benchmark, write its results to the folder `output`, and return them.

    Runs that lie in the folder are not repeated; an interrupted one resumes from its checkpoints.
    Written are `runs/` (scores and figures of each run), `results.json`, `table.csv`, `curves.csv`
    and `finding.csv`. Equal data, recipe and seeds give equal files on one machine.

    Args:
        recipe: hyperparameters of all runs; `method`, `loss`, calibration and threshold are set by
            the benchmark.
        devices: where to train; the members of an ensemble side by side if there are several.
        draws: bootstrap samples of the tested comments, for the finding.

    Raises:
        ModelError: a value of the recipe does not fit, a network cannot be trained, or the folder
            cannot be written to.
    """
    runs = planned(methods, losses, seeds)
    bench = Bench(data=data, recipe=recipe, folder=output, devices=devices, draws=draws)
    found = results_of(data, complete(bench, runs, say=say))
    write_file(output / "results.json", to_json(found))
    for name in ("table", "curves", "finding"):
        write_file(output / f"{name}.csv", _csv(found[name]))
    say(f"{output} has the figures")
    return found


def results_of(data: BenchmarkData, results: Sequence[Result]) -> dict[str, Any]:
    """Return the results of a benchmark as JSON values.

    `table`, `curves` and `finding` are the rows of `summary`; `sentences` says where the finding
    holds.
    """
    finding = summary.finding_rows(results)
    curves = summary.curve_rows(results)
    runs = [result.run for result in results]
    used = {name: {getattr(run, name) for run in runs} for name in ("method", "loss")}
    return {
        "benchmark": "CoToMoD (Kivlichan et al. 2021)",
        "methods": [name for name in paper.METHOD_TITLES if name in used["method"]],
        "losses": [name for name in paper.LOSS_TITLES if name in used["loss"]],
        "seeds": list(dict.fromkeys(run.seed for run in runs)),
        "draws": max(len(draws) for result in results for draws in result.draws.values()),
        "networks": _networks(results),
        "libraries": library_versions(),
        "data_sha256": data.digest,
        "data": {
            "Trained on": _described(data.train),
            "Tested on (in domain)": _described(data.in_domain),
            "Tested on (out of domain)": _described(data.out_of_domain),
        },
        "left_out_of_training": dict(data.train.left_out),
        "table": summary.table_rows(results),
        "curves": curves,
        "finding": finding,
        "sentences": [
            *summary.finding_sentences(finding),
            *summary.best_sentences(curves),
        ],
    }


def _described(comments: Comments) -> str:
    return f"{comments.title}; {len(comments.texts):,} comments, {comments.prevalence:.2%} toxic"


def _networks(results: Sequence[Result]) -> int:
    """Return the number of networks behind the results; methods of a family share theirs."""
    most: dict[tuple[str, int, bool], int] = {}
    for result in results:
        key = (result.run.loss, result.run.seed, result.run.method.startswith("sngp"))
        most[key] = max(most.get(key, 0), len(result.networks))
    return sum(most.values())


def _csv(rows: Sequence[dict[str, Any]]) -> bytes:
    table = pd.DataFrame(rows, dtype=object)
    return table.to_csv(index=False, lineterminator="\n").encode()
