"""The application that serves the champion of an installation, by its settings."""

from dataclasses import dataclass

from fastapi import FastAPI

from modwatch.installation.resources import Resources
from modwatch.models.serving.app import create_app
from modwatch.models.serving.models import ServedModel
from modwatch.models.serving.telemetry import Telemetry


@dataclass(frozen=True, kw_only=True)
class ModelServer:
    """A served model, and the application that serves it."""

    model: ServedModel
    app: FastAPI


def open_server(at: Resources, telemetry: Telemetry) -> ModelServer:
    """Return the server of the model that `at` names; nothing is loaded yet."""
    model = ServedModel(
        at.settings.model_name,
        current=at.champion_version,
        open_version=at.local_scorer,
        report=telemetry.batch_scored,
    )
    telemetry.watch(lambda: model.waiting)
    token = at.settings.scorer_token
    secret = None if token is None else token.get_secret_value()
    return ModelServer(model=model, app=create_app(model, telemetry, token=secret))
