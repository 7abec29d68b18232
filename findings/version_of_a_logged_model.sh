#!/usr/bin/env bash
# A model version can be linked to a logged model only in the store that is the process's default.
#
# Versions   mlflow 3.17.2.
# Expected   MlflowClient(uri).create_model_version(name, source, model_id=logged.model_id) finds the
#            logged model that the same client has just created: the client has its store's address.
# Seen       The registry of a SQL store asks a client without an address for the model, so that it
#            looks in the default store (here a new one in the working folder). The call fails with
#            RESOURCE_DOES_NOT_EXIST, "Logged model with ID … not found". With `run_id` as well, or
#            without `model_id`, it works; so it does through a server, whose default is its own store.
# Hurt       whoever keeps addresses with clients and out of global state, such as tests, services
#            with several stores, and jobs beside another program's MLFLOW_TRACKING_URI: a model of
#            others, which has no training run, is logged and cannot be registered.
# Instead    leave `model_id` out and give the logged model's artifact_location as the source.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q mlflow-skinny==3.17.2 sqlalchemy==2.0.51 alembic==1.18.5 pandas==2.3.3
cd "$folder"
cat >register.py <<'PYTHON'
import logging
from pathlib import Path

from mlflow import MlflowClient
from mlflow.exceptions import MlflowException

logging.disable(logging.INFO)
client = MlflowClient("sqlite:///mine.db")
experiment = client.create_experiment("e", artifact_location=Path("artifacts").absolute().as_uri())
logged = client.create_logged_model(experiment, name="m")
assert client.get_logged_model(logged.model_id).model_id == logged.model_id
client.create_registered_model("m")
try:
    client.create_model_version("m", source=logged.artifact_location, model_id=logged.model_id)
    seen = "found"
except MlflowException as error:
    seen = error.error_code
print("with model_id:", seen)
without = client.create_model_version("m", source=logged.artifact_location).version
print("without model_id: version", without)
raise SystemExit(seen != "RESOURCE_DOES_NOT_EXIST")
PYTHON
"$folder/venv/bin/python" register.py 2>/dev/null
