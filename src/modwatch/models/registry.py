"""The model registry in MLflow: register an artifact, set the champion, download it once.

MLflow is imported inside the functions, because the import takes seconds. No global state of
MLflow is changed: the tracking URI is passed with each call.
"""

import datetime
import hashlib
import importlib.util
import json
import logging
import shutil
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version as installed
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modwatch.common.errors import ModelError, NoChampionError
from modwatch.common.mlflow_client import connect, experiment_id, log_texts
from modwatch.models.manifest import MANIFEST, model_digest, read_manifest
from modwatch.models.recipe import Recipe
from modwatch.models.training_run import EXPERIMENT

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import LoggedModel
    from mlflow.entities.model_registry import ModelVersion

logger = logging.getLogger(__name__)

#: Of the model in MLflow.
MODEL_NAME = "toxicity"
CHAMPION, CHALLENGER = "champion", "challenger"
#: Aliases of versions.
ALIASES = (CHAMPION, CHALLENGER)
PREVIOUS = "previous"
_DIGEST_TAG = "modwatch.digest"
#: The tag of a version with the run that asked for it, so that none makes two.
_REQUEST_TAG = "modwatch.request"
#: The tag of a version that was registered without a run, with the run of its evaluation.
_RUN_TAG = "modwatch.run"
#: The tag of a version with the days that it scored.
_SERVED_TAG = "modwatch.served"
#: The artifact of a version's run with its `models.evaluation.Evaluation`.
_EVALUATION = "evaluation_of_version_{}.json"
#: The tag `encoder` of a model without a pre-trained one.
SCRATCH = "from scratch"
#: The tags of a version that give a model of others its threshold, and name its class of toxic
#: texts.
THRESHOLD_TAG, CLASS_TAG = "modwatch.threshold", "modwatch.positive_class"
#: The tag of a version of a model of others with the folder, or the name and commit, that it is of.
SOURCE_TAG = "modwatch.source"
_SCRIPT = "modwatch.models.scoring.pyfunc"
#: Name of the artifact's folder in the MLflow model.
_ARTIFACT = "artifact"
#: Description of a model, for its page.
_ABOUT = f"""Scores comments for toxicity, with the model's uncertainty.

The version with the alias `{CHAMPION}` scores each day; `{CHALLENGER}` scores it in shadow, for
comparison; `{PREVIOUS}` is what `modwatch model promote {PREVIOUS}` goes back to. The page of a
version has its data, metrics and limits; its tag `{_SERVED_TAG}` has the days that it scored.
"""
_NEEDS = ("mlflow", "torch", "transformers", "tokenizers", "safetensors")


@dataclass(frozen=True, kw_only=True)
class FetchedModel:
    """A registered version on this machine."""

    #: The artifact, or the whole MLflow model if Modwatch did not train it.
    folder: Path
    #: The tag `modwatch.threshold`, by which a model of others is given its threshold; None: unset.
    threshold: float | None
    #: The tag `modwatch.positive_class`, likewise.
    stated_class: str | None


@dataclass(frozen=True, kw_only=True)
class Registry:
    """The versions of one model.

    Methods raise TrackingError when MLflow cannot be reached or rejects the call.
    """

    tracking_uri: str
    #: Of the model: an installation has one.
    name: str = MODEL_NAME

    def register(
        self,
        folder: Path,
        *,
        run_id: str,
        metrics: Mapping[str, float],
        tags: Mapping[str, str],
        digest: str,
        report: Mapping[str, Any] | None = None,
        request: str = "",
    ) -> str:
        """Register the artifact in `folder` as a new version; return the version.

        The run `run_id` of the training gets the metrics, the tags and the data report, and ends.
        The version is an MLflow model from code, so that
        `mlflow.pyfunc.load_model("models:/toxicity@champion").predict(texts)` works. `digest` is
        that of `artifact.save`.
        """
        with connect(self.tracking_uri) as client, tempfile.TemporaryDirectory() as scratch:
            packed = Path(scratch) / "model"
            _pack(folder, packed)
            log_texts(client, run_id, params={}, tags=tags)
            for key, value in metrics.items():
                client.log_metric(run_id, key, value)
            if report is not None:
                client.log_dict(run_id, dict(report), "data_report.json")
            experiment = client.get_run(run_id).info.experiment_id
            logged = self._log_model(client, experiment, packed, run_id=run_id)
            client.set_terminated(run_id)
            card = folder / "README.md"
            text = card.read_text("utf-8") if card.exists() else ""
            about = text.rpartition("\n---\n")[2].strip()  # without the metadata
            created = client.create_model_version(
                self.name,
                source=logged.artifact_location,
                run_id=run_id,
                model_id=logged.model_id,
                tags={**tags, _DIGEST_TAG: digest, _REQUEST_TAG: request},
                description=about,
            )
        logger.info(
            "Model registered.",
            extra={"event": "model_registered", "model": self.name, "version": created.version},
        )
        return str(created.version)

    def register_foreign(self, folder: Path, *, tags: Mapping[str, str]) -> str:
        """Register a model of others in `folder` as a new version, as it is; return the version."""
        with connect(self.tracking_uri) as client:
            logged = self._log_model(client, experiment_id(client, EXPERIMENT), folder)
            # With `model_id`, MLflow 3.17 looks for the model in the default store.
            created = client.create_model_version(
                self.name, source=logged.artifact_location, tags=dict(tags)
            )
        return str(created.version)

    def _log_model(
        self, client: "MlflowClient", experiment: str, folder: Path, *, run_id: str | None = None
    ) -> "LoggedModel":
        """Upload the MLflow model in `folder`, and make sure that versions can be registered."""
        logged = client.create_logged_model(experiment, name=self.name, source_run_id=run_id)
        client.log_model_artifacts(logged.model_id, str(folder))
        client.finalize_logged_model(logged.model_id, "READY")
        _ensure_model(client, self.name)
        return logged

    def version_of_request(self, request: str) -> str | None:
        """Return the version that was registered for this request; None if none was."""
        quoted = request.replace("'", "")
        wanted = f"name='{self.name}' and tag.`{_REQUEST_TAG}`='{quoted}'"
        with connect(self.tracking_uri) as client:
            found = client.search_model_versions(wanted)
        return str(found[0].version) if found else None

    def log_evaluation(self, version: str, evaluation: Mapping[str, Any], *, passed: bool) -> None:
        """Keep the evaluation of a version with its run, and tag the version with the outcome.

        NoChampionError when the version is missing.
        """
        with connect(self.tracking_uri) as client:
            run_id = self._run_of(client, version)
            client.log_dict(run_id, dict(evaluation), _EVALUATION.format(version))
            outcome = "passed" if passed else "failed"
            client.set_model_version_tag(self.name, version, "modwatch.evaluation", outcome)

    def read_evaluation(self, version: str) -> dict[str, Any]:
        """Return the evaluation that `log_evaluation` kept.

        Raises:
            NoChampionError: the version is missing.
            ModelError: it was not evaluated.
        """
        with connect(self.tracking_uri) as client, tempfile.TemporaryDirectory() as scratch:
            run_id = self._run_of(client, version)
            file = _EVALUATION.format(version)
            if not any(artifact.path == file for artifact in client.list_artifacts(run_id)):
                raise ModelError(
                    f"version {version} of model {self.name} was not evaluated; evaluate it"
                )
            path = client.download_artifacts(run_id, file, scratch)
            return dict(json.loads(Path(path).read_text("utf-8")))

    def record_service(self, served: Mapping[str, Sequence[datetime.date]]) -> None:
        """Tag each version with the days that it scored as champion, in order.

        Versions that MLflow does not have are skipped.
        """
        with connect(self.tracking_uri) as client:
            versions = client.search_model_versions(f"name='{self.name}'")
            known = {str(found.version): found for found in versions}
            for version, days in served.items():
                text = (
                    f"{len(days)} days, {days[0]} to {days[-1]}" if len(days) > 1 else str(days[0])
                )
                if version in known and known[version].tags.get(_SERVED_TAG) != text:
                    client.set_model_version_tag(self.name, version, _SERVED_TAG, text)

    def record_decision(self, version: str, decision: Mapping[str, str]) -> None:
        """Tag a version with what was decided about it: decision, actor, note, time."""
        with connect(self.tracking_uri) as client:
            for key, value in decision.items():
                client.set_model_version_tag(self.name, version, f"modwatch.{key}", value)

    def _run_of(self, client: "MlflowClient", version: str) -> str:
        """Return the run of a version, made now for one that was registered without."""
        found = _version(client, self.name, version)
        tag = found.tags.get(_RUN_TAG) or found.run_id
        if tag:
            return str(tag)
        run = client.create_run(
            experiment_id(client, EXPERIMENT), run_name=f"{self.name} {version}"
        )
        client.set_terminated(run.info.run_id)
        client.set_model_version_tag(self.name, version, _RUN_TAG, run.info.run_id)
        return str(run.info.run_id)

    def set_alias(self, version: str, alias: str = CHAMPION) -> None:
        """Give `version` one of ALIASES; the champion before becomes `previous`.

        Raises:
            ModelError: there is no such alias.
            TrackingError: the version is missing, or MLflow cannot be reached.
        """
        if alias not in ALIASES:
            raise ModelError(f"the alias must be {' or '.join(ALIASES)}, got {alias!r}")
        with connect(self.tracking_uri) as client:
            before = self._aliases(client).get(CHAMPION)
            if alias == CHAMPION and before not in (None, version):
                client.set_registered_model_alias(self.name, PREVIOUS, before)
            client.set_registered_model_alias(self.name, alias, version)

    def previous_version(self) -> str:
        """Return the champion before this one; NoChampionError when there was none."""
        with connect(self.tracking_uri) as client:
            previous = self._aliases(client).get(PREVIOUS)
        if previous is None:
            raise NoChampionError(
                f"model {self.name} has no previous champion; set the alias on a version in MLflow"
            )
        return previous

    def _aliases(self, client: "MlflowClient") -> dict[str, str]:
        """Return the version of each alias; none if there is no such model."""
        from mlflow.exceptions import MlflowException

        try:
            aliases = client.get_registered_model(self.name).aliases
            return {alias: str(version) for alias, version in aliases.items()}
        except MlflowException as exc:
            if exc.error_code != "RESOURCE_DOES_NOT_EXIST":
                raise
            return {}

    def champion_version(self) -> str:
        """Return the version with the alias `champion`; NoChampionError when there is none."""
        with connect(self.tracking_uri) as client:
            champion = self._aliases(client).get(CHAMPION)
        if champion is None:
            raise NoChampionError(
                f"MLflow has no model {self.name}@{CHAMPION}; run `modwatch train`, or set the "
                "alias on a registered version in MLflow"
            )
        return champion

    def challenger_version(self) -> str | None:
        """Return the version with the alias `challenger`; None if there is none."""
        with connect(self.tracking_uri) as client:
            return self._aliases(client).get(CHALLENGER)

    def version_tags(self, version: str) -> dict[str, str]:
        """Return the tags of a version, such as `encoder`; NoChampionError when it is missing."""
        with connect(self.tracking_uri) as client:
            return dict(_version(client, self.name, version).tags)

    def trained_here(self, version: str) -> bool:
        """Return whether Modwatch trained a version; NoChampionError when it is missing."""
        return _DIGEST_TAG in self.version_tags(version)

    def fetch(self, version: str, cache_dir: Path) -> FetchedModel:
        """Return a version, downloaded at most once into `cache_dir`.

        Folders of the cache are named by version and content digest (of a model of others: by its
        creation), which MLflow is asked for each time: a new database starts again at version 1.

        Raises:
            NoChampionError: the version is missing.
            ModelError: its threshold is no number between 0 and 1, or it is not the model that was
                registered.
        """
        with connect(self.tracking_uri) as client:
            registered = _version(client, self.name, version)
            threshold = _threshold(registered)
            folder = cache_dir / _folder_name(registered)
            if not folder.exists():
                source = client.get_model_version_download_uri(self.name, version)
                _download(source, folder, self.tracking_uri)
        if _DIGEST_TAG in registered.tags:
            _check(folder, registered)
        stated = registered.tags.get(CLASS_TAG)
        return FetchedModel(folder=folder, threshold=threshold, stated_class=stated)

    def stored_reference(self, version: str, cache_dir: Path) -> Mapping[str, Any]:
        """Return the `TrainingFacts.reference` of a version, from its manifest alone.

        Empty for a model of others. Raises as `fetch`.
        """
        from mlflow.artifacts import download_artifacts

        with connect(self.tracking_uri) as client, tempfile.TemporaryDirectory() as scratch:
            registered = _version(client, self.name, version)
            if _DIGEST_TAG not in registered.tags:
                return {}
            folder = cache_dir / _folder_name(registered)
            if not folder.exists():
                source = client.get_model_version_download_uri(self.name, version)
                manifest = f"{source}/artifacts/{_ARTIFACT}/{MANIFEST}"
                download_artifacts(
                    artifact_uri=manifest, dst_path=scratch, tracking_uri=self.tracking_uri
                )
                folder = Path(scratch)
            _check(folder, registered)
            reference: Mapping[str, Any] = read_manifest(folder)["training"].get("reference", {})
        return reference


def _folder_name(registered: "ModelVersion") -> str:
    """Return the name of the folder of a version in the cache."""
    made = f"{registered.creation_timestamp} {registered.source}".encode()
    digest = registered.tags.get(_DIGEST_TAG) or hashlib.sha256(made).hexdigest()
    return f"{registered.name}-{registered.version}-{digest[:12]}"


def _check(folder: Path, registered: "ModelVersion") -> None:
    """Raise ModelError if the manifest in `folder` is not that of the model of this version."""
    if model_digest(read_manifest(folder)) != registered.tags[_DIGEST_TAG]:
        raise ModelError(
            f"{folder / MANIFEST} was changed after version {registered.version} of model "
            f"{registered.name} was registered: it differs from the tag {_DIGEST_TAG}; remove the "
            "folder, and it is downloaded again; if the message remains, set the alias on another "
            "version or train the model again"
        )


def _threshold(registered: "ModelVersion") -> float | None:
    if (given := registered.tags.get(THRESHOLD_TAG)) is None:
        return None
    try:
        value = float(given)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise ModelError(
            f"the tag {THRESHOLD_TAG} of version {registered.version} of model {registered.name} "
            f"must be a number between 0 and 1, got {given[:20]!r}"
        )
    return value


def _download(source: str, folder: Path, tracking_uri: str) -> None:
    """Download the artifact at `source` to `folder`, atomically."""
    from mlflow.artifacts import download_artifacts

    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".download-") as scratch:
        local = download_artifacts(artifact_uri=source, dst_path=scratch, tracking_uri=tracking_uri)
        manifests = sorted(Path(local).glob(f"artifacts/*/{MANIFEST}"))
        try:
            (manifests[0].parent if manifests else Path(local)).rename(folder)
        except OSError:
            if not folder.exists():  # unless another process was faster: its copy is the same
                raise


def _pack(folder: Path, target: Path) -> None:
    """Write `folder` to `target` as an MLflow model from code."""
    with warnings.catch_warnings():
        # Importing mlflow.pyfunc warns of a type hint of MLflow.
        warnings.filterwarnings("ignore", ".*Any type hint is inferred as AnyType")
        from mlflow.models import ModelSignature
        from mlflow.pyfunc import save_model
        from mlflow.types import ColSpec, Schema

    recipe = Recipe.from_json(read_manifest(folder)["recipe"], origin=folder)
    outputs = [
        *(ColSpec("float", name) for name in ("prob", "uncertainty", *recipe.columns[2:])),
        *(ColSpec("boolean", name) for name in ("cut", "flagged")),
    ]
    script = importlib.util.find_spec(_SCRIPT)
    if script is None or script.origin is None:
        raise ModelError(f"{_SCRIPT} is not installed; install Modwatch again")
    with tempfile.TemporaryDirectory() as scratch:
        # MLflow keeps the name of the folder, which should be the same for every version.
        copy = shutil.copytree(folder, Path(scratch) / _ARTIFACT)
        save_model(
            path=str(target),
            python_model=script.origin,
            artifacts={"model": str(copy)},
            # A column without a name: a list of texts is taken, too.
            signature=ModelSignature(inputs=Schema([ColSpec("string")]), outputs=Schema(outputs)),
            input_example=["Thank you for the correction.", "Nobody asked you."],
            pip_requirements=[f"{package}=={installed(package)}" for package in _NEEDS],
        )


def _version(client: "MlflowClient", name: str, version: str) -> "ModelVersion":
    """Return a version; NoChampionError when MLflow does not have it."""
    from mlflow.exceptions import MlflowException

    try:
        return client.get_model_version(name, version)
    except MlflowException as exc:
        if exc.error_code not in ("RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE"):
            raise
        raise NoChampionError(
            f"MLflow has no version {version} of model {name}; register one"
        ) from exc


def _ensure_model(client: "MlflowClient", name: str) -> None:
    from mlflow.exceptions import MlflowException

    try:
        client.create_registered_model(name, description=_ABOUT)
    except MlflowException as exc:
        if exc.error_code != "RESOURCE_ALREADY_EXISTS":
            raise
