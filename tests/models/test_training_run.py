"""The run of a training in a real MLflow: curves while it trains, after a kill, after an outage."""

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import mlflow
import pytest
from mlflow.entities import Run

from modwatch.common.errors import ModelError, TrackingError
from modwatch.models import training_run
from modwatch.models.progress import Progress, TrainingProgress
from modwatch.models.registration import train_and_register
from modwatch.models.registry import Registry
from modwatch.models.training_run import TrainingRun

# MLflow 3.17 uses a loader strategy that SQLAlchemy 2.1 deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")

Corpus = tuple[list[str], list[int]]


@pytest.fixture
def uri(new_store, tmp_path):
    return new_store(tmp_path)


def runs(uri: str) -> list[Run]:
    client = mlflow.MlflowClient(uri)
    experiment = client.get_experiment_by_name("training")
    return list(client.search_runs([experiment.experiment_id]))


def history(uri: str, run_id: str, key: str) -> list[tuple[int, float]]:
    points = mlflow.MlflowClient(uri).get_metric_history(run_id, key)
    return sorted((point.step, point.value) for point in points)


def test_curves_are_in_mlflow_while_the_model_is_fitted(corpus, tiny_recipe, uri, monkeypatch):
    monkeypatch.setattr(training_run, "_EVERY", 0.0)
    seen: list[int] = []

    class Look(TrainingProgress):
        def __call__(self, state: Progress) -> None:
            if state.phase == "training" and state.step % 10 == 9:
                (run,) = runs(uri)
                assert run.info.status == "RUNNING"
                seen.append(len(history(uri, run.info.run_id, "loss")))

    registry = Registry(name="live", tracking_uri=uri)
    train_and_register(*corpus, registry=registry, recipe=tiny_recipe, progress=Look())
    assert 0 < seen[0] < seen[4] < seen[-1]
    (run,) = runs(uri)
    assert run.info.status == "FINISHED"
    assert run.data.tags["method"] == "sngp"
    steps = [step for step, _ in history(uri, run.info.run_id, "loss")]
    assert steps == sorted(set(steps)), "no point twice"
    assert history(uri, run.info.run_id, "held_out_average_precision")
    assert len(history(uri, run.info.run_id, "average_precision")) == 1, "of the whole model"


def test_a_killed_training_goes_on_in_its_run_without_a_point_twice(
    corpus, tiny_recipe, uri, tmp_path
):
    child = subprocess.run(
        [sys.executable, "-c", _KILLED, uri, str(tmp_path / "checkpoints")],
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).parent)},
        check=False,
        capture_output=True,
    )
    assert child.returncode == -signal.SIGKILL, child.stderr.decode()[-2000:]
    (left,) = runs(uri)
    assert left.info.status == "RUNNING"
    before = history(uri, left.info.run_id, "loss")
    assert before
    train_and_register(
        *corpus,
        registry=Registry(name="killed", tracking_uri=uri),
        recipe=tiny_recipe,
        seed=1,
        checkpoints=tmp_path / "checkpoints",
    )
    undisturbed = train_and_register(
        *corpus, registry=Registry(name="undisturbed", tracking_uri=uri), recipe=tiny_recipe, seed=1
    )
    other = mlflow.MlflowClient(uri).get_model_version("undisturbed", undisturbed).run_id
    assert {run.info.run_id for run in runs(uri)} == {left.info.run_id, other}
    for key in ("loss", "learning_rate", "held_out_average_precision"):
        assert history(uri, left.info.run_id, key) == history(uri, other, key)


#: Trains with its curves in MLflow, and dies by a real SIGKILL after 45 steps.
_KILLED = """
import os, signal, sys
from pathlib import Path
from conftest import TINY, tiny_corpus
from modwatch.models import registration, training_run
training_run._EVERY = 0.0
train, left = registration.train, 45
def dying(*args, progress, **given):
    def count(state):
        global left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
    return train(*args, progress=count, **given)
registration.train = dying
registration.train_and_register(
    *tiny_corpus(), recipe=TINY, seed=1,
    registry=registration.Registry(name="killed", tracking_uri=sys.argv[1]),
    checkpoints=Path(sys.argv[2]),
)
"""


def test_an_outage_of_mlflow_delays_the_curves_only(uri, tmp_path, monkeypatch):
    monkeypatch.setattr(training_run, "_EVERY", 0.0)
    run = TrainingRun(uri, name="outage")
    database, away = tmp_path / "mlflow.db", tmp_path / "away.db"
    run.log(1, 1, {"step": 1.0, "loss": 0.5})
    database.rename(away)
    database.mkdir()  # a database that cannot be opened
    run.log(1, 1, {"step": 2.0, "loss": 0.4})
    with pytest.raises(TrackingError):
        run.finish([[{"step": 1.0, "loss": 0.5}, {"step": 2.0, "loss": 0.4}]])
    database.rmdir()
    away.rename(database)
    run.finish([[{"step": 1.0, "loss": 0.5}, {"step": 2.0, "loss": 0.4}]])
    assert history(uri, run.run_id, "loss") == [(1, 0.5), (2, 0.4)]


def test_a_training_that_fails_says_so_in_its_run(corpus, tiny_recipe, uri):
    recipe = replace(tiny_recipe, encoder="./no/such/folder")
    with pytest.raises(ModelError, match="could not be loaded"):
        train_and_register(
            *corpus, registry=Registry(name="failed", tracking_uri=uri), recipe=recipe
        )
    (run,) = runs(uri)
    assert run.info.status == "FAILED"
    assert "could not be loaded" in run.data.tags["modwatch.error"]


@pytest.mark.parametrize("texts", [[], ["the garden needs rain"] * 30], ids=["empty", "one class"])
def test_a_corpus_that_cannot_be_used_leaves_no_run(texts, tiny_recipe, uri):
    with pytest.raises(ModelError, match="at least ten of each"):
        train_and_register(
            texts,
            [0] * len(texts),
            registry=Registry(name="refused", tracking_uri=uri),
            recipe=tiny_recipe,
        )
    assert runs(uri) == []


def test_curves_of_an_ensemble_are_distinguished(uri):
    run = TrainingRun(uri, name="members")
    run.finish([[{"step": 1.0, "loss": 0.5}], [{"step": 1.0, "loss": 0.3}]])
    assert history(uri, run.run_id, "loss_1") == [(1, 0.5)]
    assert history(uri, run.run_id, "loss_2") == [(1, 0.3)]


def test_a_run_deleted_in_mlflow_is_replaced(uri, tmp_path):
    first = TrainingRun(uri, name="deleted", checkpoints=tmp_path / "checkpoints")
    assert TrainingRun(uri, name="deleted", checkpoints=tmp_path / "checkpoints").run_id == (
        first.run_id
    )
    mlflow.MlflowClient(uri).delete_run(first.run_id)
    after = TrainingRun(uri, name="deleted", checkpoints=tmp_path / "checkpoints")
    assert after.run_id != first.run_id
