"""The registry against a real MLflow: SQLite, and one real server."""

import datetime
import shutil
from contextlib import suppress
from pathlib import Path

import mlflow
import numpy as np
import pandas as pd
import pytest

from modwatch.common.errors import ModelError, NoChampionError, TrackingError
from modwatch.models.artifact import load
from modwatch.models.manifest import read_manifest, write_manifest
from modwatch.models.registry import Registry
from modwatch.models.scoring.local import LocalScorer
from modwatch.models.training_run import TrainingRun

# MLflow 3.17 uses a loader strategy that SQLAlchemy 2.1 deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")

TEXTS = ["the garden needs rain", "you fizzlewit", ""]


@pytest.fixture(scope="module")
def sqlite(new_store, tmp_path_factory):
    return new_store(tmp_path_factory.mktemp("mlflow"))


def registered(folder: Path, uri: str, name: str) -> str:
    return Registry(name=name, tracking_uri=uri).register(
        folder,
        run_id=TrainingRun(uri, name=name).run_id,
        metrics={"auroc": 0.9},
        tags={"corpus": "tiny"},
        digest=load(folder).digest,
    )


def test_no_champion_says_what_to_do(sqlite):
    with pytest.raises(NoChampionError, match=r"nobody@champion.*modwatch train"):
        Registry(name="nobody", tracking_uri=sqlite).champion_version()


def test_the_page_of_a_version_has_its_card_and_the_days_that_it_scored(tiny_artifact, sqlite):
    version = registered(tiny_artifact, sqlite, "with-page")
    days = [datetime.date(2026, 1, day) for day in (5, 6, 7)]
    for served in (days[:1], days, days):
        others = {"of-the-source": days, "99": days}
        Registry(name="with-page", tracking_uri=sqlite).record_service({version: served, **others})
    client = mlflow.MlflowClient(sqlite)
    page = client.get_model_version("with-page", version)
    assert page.description.startswith("# Toxicity model")
    for part in ("Training data", "## Validation", "## Use and limits"):
        assert part in page.description
    assert page.tags["modwatch.served"] == "3 days, 2026-01-05 to 2026-01-07"
    assert "modwatch model promote previous" in client.get_registered_model("with-page").description


def test_the_reference_is_read_without_the_weights(tiny_artifact, sqlite, tmp_path):
    version = registered(tiny_artifact, sqlite, "with-reference")
    registry = Registry(name="with-reference", tracking_uri=sqlite)
    stored = registry.stored_reference(version, tmp_path)
    assert stored == read_manifest(tiny_artifact)["training"]["reference"]
    assert not list(tmp_path.iterdir())
    registry.fetch(version, tmp_path)
    assert registry.stored_reference(version, tmp_path) == stored


def test_a_model_of_others_and_a_missing_version_have_no_reference(sqlite, tmp_path):
    client = mlflow.MlflowClient(sqlite)
    client.create_registered_model("of-others")
    version = client.create_model_version("of-others", source=tmp_path.as_uri()).version
    registry = Registry(name="of-others", tracking_uri=sqlite)
    assert registry.stored_reference(str(version), tmp_path) == {}
    with pytest.raises(NoChampionError):
        registry.stored_reference("99", tmp_path)


def test_version_without_alias_is_no_champion(tiny_artifact, sqlite):
    registered(tiny_artifact, sqlite, "unnamed")
    with pytest.raises(NoChampionError):
        Registry(name="unnamed", tracking_uri=sqlite).champion_version()


def test_register_alias_fetch(tiny_artifact, sqlite, tmp_path):
    assert registered(tiny_artifact, sqlite, "toxicity") == "1"
    version = registered(tiny_artifact, sqlite, "toxicity")
    Registry(name="toxicity", tracking_uri=sqlite).set_alias(version)
    assert Registry(name="toxicity", tracking_uri=sqlite).champion_version() == version == "2"
    folder = Registry(name="toxicity", tracking_uri=sqlite).fetch(version, tmp_path).folder
    assert load(folder).digest == load(tiny_artifact).digest
    before = (folder / "model.safetensors").stat().st_mtime_ns
    assert Registry(name="toxicity", tracking_uri=sqlite).fetch(version, tmp_path).folder == folder
    assert (folder / "model.safetensors").stat().st_mtime_ns == before
    assert [path.name for path in tmp_path.iterdir()] == [folder.name]


def test_cache_of_another_database_is_not_mistaken(tiny_artifact, sqlite, tmp_path):
    """Version 1 of a model made anew is another model than the cached version 1."""
    version = registered(tiny_artifact, sqlite, "renewed")
    (tmp_path / f"renewed-{version}-{'0' * 12}").mkdir()
    folder = Registry(name="renewed", tracking_uri=sqlite).fetch(version, tmp_path).folder
    assert (folder / "modwatch.json").exists()


def test_a_manifest_edited_with_its_digest_is_refused(tiny_artifact, sqlite, tmp_path):
    """Whoever edits the manifest can compute its digest, too, but not that of the registry."""
    version = registered(tiny_artifact, sqlite, "edited")
    folder = Registry(name="edited", tracking_uri=sqlite).fetch(version, tmp_path).folder
    manifest = read_manifest(folder) | {"threshold": 0.999}
    (folder / "modwatch.json").unlink()
    (folder / "README.md").unlink()  # written after the manifest
    write_manifest(folder, manifest)
    assert load(folder).threshold == 0.999
    with pytest.raises(
        ModelError, match=rf"{folder}/modwatch\.json was changed.*remove the folder"
    ):
        Registry(name="edited", tracking_uri=sqlite).fetch(version, tmp_path)
    shutil.rmtree(folder)
    folder = Registry(name="edited", tracking_uri=sqlite).fetch(version, tmp_path).folder
    assert load(folder).digest == load(tiny_artifact).digest


def test_unknown_version_is_named(sqlite, tmp_path):
    with pytest.raises(NoChampionError, match="no version 99 of model toxicity"):
        Registry(name="toxicity", tracking_uri=sqlite).fetch("99", tmp_path)


def test_a_rollback_exchanges_champion_and_previous(tiny_artifact, sqlite):
    one, other = (registered(tiny_artifact, sqlite, "rolled") for _ in range(2))
    registry = Registry(name="rolled", tracking_uri=sqlite)
    registry.set_alias(one)
    with pytest.raises(NoChampionError, match="no previous champion"):
        registry.previous_version()
    registry.set_alias(other)
    registry.set_alias(other)  # again: the previous one stays
    registry.set_alias(other, "challenger")
    for expected in (one, other, one):
        registry.set_alias(registry.previous_version())
        assert registry.champion_version() == expected
    with pytest.raises(ModelError, match="champion or challenger, got 'best'"):
        registry.set_alias(one, "best")
    with pytest.raises(NoChampionError):
        Registry(name="nobody", tracking_uri=sqlite).previous_version()


def test_a_foreign_model_is_fetched_whole(sqlite, tmp_path):
    version = foreign(sqlite, tmp_path / "source")
    found = Registry(name="foreign", tracking_uri=sqlite).fetch(version, tmp_path / "cache")
    assert (found.folder / "weights.bin").read_bytes() == b"?"
    assert found.threshold is None
    assert found.stated_class is None
    mlflow.MlflowClient(sqlite).set_model_version_tag(
        "foreign", version, "modwatch.positive_class", "rude"
    )
    found = Registry(name="foreign", tracking_uri=sqlite).fetch(version, tmp_path / "cache")
    assert found.stated_class == "rude"


@pytest.mark.parametrize("value", ["high", "1.5", "-1", "nan"])
def test_a_foreign_threshold_is_a_probability(sqlite, tmp_path, value):
    version = foreign(sqlite, tmp_path / "source")
    client = mlflow.MlflowClient(sqlite)
    client.set_model_version_tag("foreign", version, "modwatch.threshold", "0.25")
    found = Registry(name="foreign", tracking_uri=sqlite).fetch(version, tmp_path / "cache")
    assert found.threshold == 0.25
    client.set_model_version_tag("foreign", version, "modwatch.threshold", value)
    with pytest.raises(ModelError, match=r"modwatch\.threshold of version .* between 0 and 1"):
        Registry(name="foreign", tracking_uri=sqlite).fetch(version, tmp_path / "cache")


def foreign(uri: str, source: Path) -> str:
    """Register a folder that Modwatch did not write; return its version."""
    client = mlflow.MlflowClient(uri)
    source.mkdir()
    (source / "weights.bin").write_bytes(b"?")
    with suppress(mlflow.exceptions.MlflowException):
        client.create_registered_model("foreign")
    return str(client.create_model_version("foreign", source.as_uri()).version)


def test_server_that_is_down_is_a_tracking_error_soon(monkeypatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    with pytest.raises(TrackingError, match=r"127\.0\.0\.1:9 .*MODWATCH_MLFLOW_URL"):
        Registry(name="toxicity", tracking_uri="http://127.0.0.1:9").champion_version()


def test_through_a_server_mlflow_itself_loads_the_champion(
    tiny_artifact, mlflow_url, tmp_path, monkeypatch
):
    version = registered(tiny_artifact, mlflow_url, "toxicity")
    registry = Registry(name="toxicity", tracking_uri=mlflow_url)
    registry.set_alias(version)
    folder = registry.fetch(registry.champion_version(), tmp_path).folder
    ours = LocalScorer(folder, model_version=version).score(TEXTS)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", mlflow_url)
    loaded = mlflow.pyfunc.load_model("models:/toxicity@champion")
    frame = loaded.predict(TEXTS)
    assert np.array_equal(frame["prob"], ours.prob)
    assert np.array_equal(loaded.predict(pd.DataFrame({"text": TEXTS}))["prob"], ours.prob)
    assert loaded.metadata.signature.outputs.input_names() == list(frame)
    example = loaded.input_example
    assert len(loaded.predict(example)) == 2
    assert list(frame) == [
        "prob",
        "uncertainty",
        "model_variance",
        "mutual_information",
        "cut",
        "flagged",
    ]
