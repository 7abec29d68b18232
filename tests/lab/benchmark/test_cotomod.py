"""The whole benchmark: every figure, from the stored scores; kills; other configurations."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from modwatch import statistics as metrics
from modwatch.common.errors import ModelError
from modwatch.models.encoder import encode
from modwatch.models.recipe import LOSSES, METHODS
from modwatch.models.training import train
from modwatch.statistics.collaboration.collaborative import METRICS, REVIEW_FRACTIONS
from modwatch_lab.benchmark import paper
from modwatch_lab.benchmark.evaluation import FINDING_FRACTIONS, TABLE_METRICS, advantage
from modwatch_lab.benchmark.runs import Bench, Run, planned

from .conftest import DRAWS, SEEDS, Finished

RunAgain = Callable[..., tuple[dict[str, Any], list[str]]]


def scores(folder: Path, method: str, loss: str, seed: int) -> dict[str, np.ndarray]:
    [path] = (folder / "runs").glob(f"{method}-{loss}-seed{seed}-*.npz")
    with np.load(path) as arrays:
        return dict(arrays)


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def copy_runs(finished: Finished, folder: Path, methods: Sequence[str]) -> None:
    """Copy runs with the focal loss and the first seed, so that they are not trained again."""
    (folder / "runs").mkdir(parents=True)
    for method in methods:
        for path in (finished.folder / "runs").glob(f"{method}-focal-seed0-*"):
            shutil.copy(path, folder / "runs")


def test_the_table_has_every_row(finished):
    rows = finished.results["table"]
    keys = {tuple(row[name] for name in ("domain", "loss", "method", "metric")) for row in rows}
    assert keys == {
        (domain, loss, method, metric)
        for domain in paper.DOMAINS
        for loss in LOSSES
        for method in METHODS
        for metric in TABLE_METRICS
    }
    assert len(keys) == len(rows) == 2 * 2 * 5 * 7
    assert {row["seeds"] for row in rows} == {len(SEEDS)}
    assert len(finished.results["curves"]) == 2 * 10 * 2 * len(REVIEW_FRACTIONS) * len(METRICS)
    assert len(finished.results["finding"]) == 2 * 10 * len(FINDING_FRACTIONS)


@pytest.mark.parametrize("method", METHODS)
def test_figures_are_the_metrics_of_the_stored_scores(finished, method):
    for domain in paper.DOMAINS:
        values = []
        for seed in SEEDS:
            stored = scores(finished.folder, method, "focal", seed)
            label, prob, weight = (stored[f"{domain}_{n}"] for n in ("label", "prob", "weight"))
            found = {name: metric(label, prob, sample_weight=weight)
                     for name, metric in TABLE_METRICS.items()}  # fmt: skip
            found["advantage"] = advantage(label.astype(float), prob, weight)[2]
            score = metrics.review_scores(prob, "toxicity")
            found["oc_auroc"] = metrics.oc_auroc(label, prob, score, review_fraction=0.05)
            values.append(found)
        for row in finished.results["table"]:
            if (row["domain"], row["loss"], row["method"]) == (domain, "focal", method):
                means = [found[row["metric"]] for found in values]
                assert row["mean"] == pytest.approx(np.mean(means), abs=1e-12)
                half = stats.t.ppf(0.975, 1) * np.std(means, ddof=1) / np.sqrt(2)
                assert row["high"] == pytest.approx(min(np.mean(means) + half, 1), abs=1e-12)
        key = {"domain": domain, "loss": "focal", "method": method, "alpha": 0.05}
        [difference] = [r for r in finished.results["finding"] if key.items() <= r.items()]
        expected = np.mean([found["advantage"] for found in values])
        assert difference["mean"] == pytest.approx(expected, abs=1e-12)
        key |= {"strategy": "toxicity", "metric": "oc_auroc"}
        [point] = [row for row in finished.results["curves"] if key.items() <= row.items()]
        assert point["mean"] == pytest.approx(np.mean([f["oc_auroc"] for f in values]), abs=1e-9)


@pytest.mark.parametrize("method", ["deterministic", "mc_dropout", "sngp", "ensemble"])
def test_shared_networks_are_those_trained_alone(finished, data, tiny, method):
    bench = Bench(data=data, recipe=tiny, folder=finished.folder)
    recipe = bench.recipe_of(Run(method=method, loss="focal", seed=1))  # type: ignore[arg-type]
    model = train(data.train.texts, data.train.labels.tolist(), recipe=recipe, seed=1)
    ids = encode(model.tokenizer, data.in_domain.texts, max_length=model.recipe.max_length)
    size = {"batch_tokens": 4 * recipe.batch_tokens, "batch_size": 8 * recipe.batch_size}
    alone = model.predictor().predict(ids, **size).prob()
    stored = scores(finished.folder, method, "focal", 1)
    assert np.array_equal(stored["in_domain_prob"], alone)


def test_kept_runs_are_not_trained_again(finished, data, tiny, tmp_path):
    from modwatch_lab.benchmark import run_cotomod

    folder = shutil.copytree(finished.folder, tmp_path / "copy")
    before = contents(folder)
    lines: list[str] = []
    run_cotomod(data, tiny, folder, seeds=SEEDS, draws=DRAWS, say=lines.append)
    assert contents(folder) == before
    assert lines[0] == f"20 runs, 20 of them kept in {folder}"
    assert not list((folder / "checkpoints").glob("*"))


@pytest.mark.soak
def test_a_killed_benchmark_goes_on_to_the_same_files(finished, run_again, tmp_path):
    methods = ["deterministic", "mc_dropout", "ensemble", "sngp"]
    copy_runs(finished, tmp_path / "undisturbed", methods)
    _, lines = run_again(tmp_path / "undisturbed", methods=methods)
    assert lines[0].startswith("4 runs, 4 of them kept")
    for left in (20, 12):
        child = subprocess.run(
            [sys.executable, "-c", _KILLED, str(tmp_path / "killed"), str(left), *methods],
            env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).parent)},
            check=False,
            capture_output=True,
        )
        assert child.returncode == -signal.SIGKILL, child.stderr.decode()[-2000:]
    run_again(tmp_path / "killed", methods=methods)
    assert contents(tmp_path / "killed") == contents(tmp_path / "undisturbed")


#: Runs the benchmark, and dies by a real SIGKILL after so many more audited changes of files.
_KILLED = """
import os, signal, sys
from pathlib import Path
from conftest import DRAWS, TINY, small_data
from modwatch_lab.benchmark import run_cotomod
data, left, methods = small_data(), int(sys.argv[2]), sys.argv[3:]
def count(event, arguments):
    global left
    if event in ("os.rename", "os.mkdir", "os.remove"):
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(count)
run_cotomod(data, TINY, Path(sys.argv[1]), methods=methods, losses=["focal"], seeds=[0],
            draws=DRAWS)
"""


def test_another_configuration_is_kept_apart(finished, run_again, tiny, tmp_path):
    copy_runs(finished, tmp_path, ["deterministic"])
    first, _ = run_again(tmp_path)
    other, lines = run_again(tmp_path, recipe=replace(tiny, learning_rate=1e-3))
    assert lines[0].startswith("1 runs, 0 of them kept")
    assert first["table"] != other["table"]
    assert len(list((tmp_path / "runs").glob("*.json"))) == 2
    again, lines = run_again(tmp_path)
    assert lines[0].startswith("1 runs, 1 of them kept")
    assert again == first


def test_what_has_no_effect_does_not_train_again(finished, run_again, tiny, tmp_path):
    copy_runs(finished, tmp_path, ["deterministic"])
    _, lines = run_again(tmp_path, recipe=replace(tiny, members=7, passes=9))
    assert lines[0].startswith("1 runs, 1 of them kept")


def test_one_seed_has_no_intervals_over_seeds(finished, run_again, tmp_path):
    copy_runs(finished, tmp_path, ["deterministic"])
    found, _ = run_again(tmp_path)
    assert {row["low"] for row in found["table"]} == {None}
    assert all(row["comments_low"] is not None for row in found["finding"])


def test_no_text_of_a_comment_anywhere(finished, data):
    texts = [
        text
        for part in (data.train, data.in_domain, data.out_of_domain)
        for text in part.texts
        if len(text) > 25
    ]
    written = b"\n".join(contents(finished.folder).values()) + "\n".join(finished.lines).encode()
    pieces = {text[start : start + 25].encode() for text in texts for start in (0, len(text) - 25)}
    assert len(pieces) > 500
    assert not [piece for piece in pieces if piece in written]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"methods": []}, "--methods must name at least one value"),
        ({"methods": ["oracle"]}, "--methods must be of deterministic, mc_dropout"),
        ({"losses": ["hinge"]}, "--losses must be of cross_entropy, focal"),
        ({"seeds": [1, 1]}, "--seeds must name at least one value, and none twice"),
        ({"seeds": [-1]}, "--seeds must be at least 0"),
    ],
)
def test_what_cannot_be_run_is_one_sentence(given, message):
    with pytest.raises(ModelError, match=message):
        planned(**{"methods": METHODS, "losses": LOSSES, "seeds": SEEDS} | given)
