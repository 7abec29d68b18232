"""The model for MLflow: a models-from-code script that loads the artifact folder.

MLflow runs this file by its path when it logs or loads a model; nothing imports it.
"""

import warnings
from pathlib import Path
from typing import Any

import mlflow
import pandas as pd

with warnings.catch_warnings():
    # Importing mlflow.pyfunc warns of a type hint of MLflow.
    warnings.filterwarnings("ignore", ".*Any type hint is inferred as AnyType")
    from mlflow.pyfunc import PythonModel

from modwatch.models.scoring.local import LocalScorer
from modwatch.statistics.decisions import is_flagged


class ToxicityModel(PythonModel):  # type: ignore[misc]
    """Texts in; a frame of probability, uncertainty and decision out.

    The texts are a list, or a frame with one column; the signature is in `models.registry`.
    """

    def load_context(self, context: Any) -> None:
        """Load the artifact that MLflow downloaded."""
        self._scorer = LocalScorer(Path(context.artifacts["model"]), model_version="mlflow")

    def predict(self, context: Any, model_input: pd.DataFrame) -> pd.DataFrame:  # noqa: ARG002
        """Return one row for each text, in order."""
        predictions = self._scorer.score(model_input.iloc[:, 0].tolist())
        flagged = is_flagged(predictions.prob, self._scorer.threshold)
        return pd.DataFrame({**predictions.by_name, "flagged": flagged})


mlflow.models.set_model(ToxicityModel())
