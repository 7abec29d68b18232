"""The manifest of an artifact: what belongs to the model, with digests. Imports no torch."""

import hashlib
import json
from pathlib import Path
from typing import Any

from modwatch.common.errors import ModelError

FORMAT = 1
MANIFEST = "modwatch.json"
HEAD = "head.safetensors"
#: The remedy for an artifact that is not what was saved.
AGAIN = "download the artifact again from the registry or train the model again"
_FILES = {"config.json", "model.safetensors", "tokenizer.json", HEAD}


def write_manifest(folder: Path, content: dict[str, Any]) -> dict[str, Any]:
    """Write modwatch.json for the files of `folder`; return the manifest.

    Args:
        folder: of an artifact, complete but for the manifest.
        content: recipe, calibration, threshold, training and libraries, as plain JSON values.
    """
    files = {
        str(path.relative_to(folder)): _sha256(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    manifest = {"format": FORMAT, **content, "files": files}
    manifest["digest"] = _digest(manifest)
    text = json.dumps(manifest, indent=2, sort_keys=True)
    (folder / MANIFEST).write_text(text + "\n", "utf-8")
    return manifest


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return modwatch.json of an artifact; ModelError when it is missing or invalid.

    Its own digest protects it against accidents.
    """
    path = folder / MANIFEST
    try:
        manifest = json.loads(path.read_text("utf-8"))
        known = manifest["format"]
        complete = known != FORMAT or _is_complete(manifest)
    except OSError as exc:
        raise ModelError(f"{path} cannot be read; use the folder of a saved model") from exc
    except (ValueError, KeyError, TypeError) as exc:
        raise ModelError(f"{path} is not a manifest of a model; {AGAIN}") from exc
    if known != FORMAT:
        raise ModelError(
            f"{path} has format {known!r}, and this version of Modwatch reads format {FORMAT}; "
            "train the model again"
        )
    if not complete:
        raise ModelError(f"{path} is not complete; {AGAIN}")
    content = {key: value for key, value in manifest.items() if key != "digest"}
    if manifest.get("digest") != _digest(content):
        raise ModelError(f"{path} differs from its own digest; {AGAIN}")
    return content


def check_files(folder: Path, manifest: dict[str, Any]) -> None:
    """Raise ModelError if a file of the artifact is not that of the manifest."""
    for name, digest in manifest["files"].items():
        if _sha256(folder / name) != digest:
            raise ModelError(f"{folder / name} differs from its digest in {MANIFEST}; {AGAIN}")


def model_digest(manifest: dict[str, Any]) -> str:
    """Return the SHA-256 of everything that determines predictions."""
    kept = {key: manifest[key] for key in ("files", "recipe", "calibration", "threshold")}
    kept["seed"] = manifest["training"]["seed"]  # of the masks of Monte Carlo dropout
    return _digest(kept)


def _is_complete(manifest: dict[str, Any]) -> bool:
    parts = ("recipe", "calibration", "training")
    return (
        set(manifest["files"]) >= _FILES
        and all(isinstance(manifest[key], dict) for key in parts)
        and isinstance(manifest["threshold"], float)
        and "seed" in manifest["training"]
    )


def _digest(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as exc:
        raise ModelError(f"{path} cannot be read; {AGAIN}") from exc
