"""Scorers of models that Modwatch did not train: Hugging Face classifiers, MLflow pyfuncs.

They are deterministic, unless a pyfunc returns further columns that a review score needs.
"""

import json
import warnings
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import AutoModelForSequenceClassification

from modwatch.common.errors import ModelError
from modwatch.common.text import visible
from modwatch.models.batches import Batch, length_buckets, on_device, padded
from modwatch.models.bfloat16 import in_bf16
from modwatch.models.devices import device_of, has_bf16
from modwatch.models.encoder import encode_passages, longest_input, pretrained_tokenizer, reading
from modwatch.models.scoring.classes import positive_class
from modwatch.models.scoring.local import Precision
from modwatch.models.scoring.scorer import (
    DEFAULT_THRESHOLD,
    PLAIN,
    Ids,
    LabelsCheck,
    Predictions,
    check_finite,
    score_in_windows,
)
from modwatch.statistics.collaboration.review_strategies import score_columns

#: What a model scores when it is opened.
_PROBE = (
    "Thank you for the correction.",
    "Nobody asked you.",
    "You are a stupid idiot, and everyone here knows it.",
    "The bridge was opened in 1932 and rebuilt after the war.",
    "Shut up, you moron!",
    "I disagree: the second source says otherwise.",
    "what a load of crap",
    "Gracias por su ayuda.",
    "I hate you and hope that you die.",
    "See the talk page.",
    "This is the dumbest article that I have ever read, written by people who cannot spell.",
    "Hello",
)
#: How much bfloat16 may change their probabilities where the precision is `auto`.
_CLOSE = 0.01
#: Columns of a pyfunc's frame that hold the probability.
_COLUMNS = ("prob", "probability", "toxicity", "score", "prediction")
_MAX_LENGTH, _TOKENS, _COMMENTS = 512, 8_192, 256


class HuggingFaceScorer:
    """Scores with a `…ForSequenceClassification`; satisfies `scoring.scorer.Scorer`.

    One logit is that of toxicity. Of several it is that of `classes.positive_class`: its softmax,
    or its sigmoid where the configuration says that classes are not exclusive.
    """

    def __init__(
        self,
        folder: Path,
        *,
        model_version: str,
        threshold: float = DEFAULT_THRESHOLD,
        stated_class: str | None = None,
        device: str = "cpu",
        threads: int | None = None,
        precision: Precision = "auto",
    ) -> None:
        """Load the classifier in `folder`; no code of it runs, and nothing is unpickled.

        Arguments are those of `opening.open_scorer`. `auto` is bfloat16 where the device is faster
        with it and changes no probability of some texts by more than 0.01.

        Raises:
            ModelError: the folder has no such classifier, or it is open which class is toxicity.
        """
        if threads is not None:
            torch.set_num_threads(threads)
        self.model_version, self.threshold = model_version, threshold
        self._device = device_of(device)
        self._tokenizer = pretrained_tokenizer(folder)
        with reading(folder, "classifier"):
            model = AutoModelForSequenceClassification.from_pretrained(
                folder, trust_remote_code=False, use_safetensors=True, local_files_only=True
            )
        self._model = exact = model.float().eval().to(self._device)
        self.columns = PLAIN
        names = [name for _, name in sorted(exact.config.id2label.items())]
        several = exact.config.num_labels > 1
        self._toxic = (
            positive_class(names, stated_class, model_version=model_version) if several else 0
        )
        longest = longest_input(getattr(model, model.base_model_prefix, model)) or _MAX_LENGTH
        self._max_length = min(_MAX_LENGTH, longest)
        if precision == "bf16" or (precision == "auto" and has_bf16(self._device)):
            before, self._model = self.score(_PROBE).prob, in_bf16(exact)
            change = np.abs(self.score(_PROBE).prob - before).max()
            if precision == "auto" and not change <= _CLOSE:  # NaN is not close, either
                self._model = exact
        #: Of the scores: bf16 or fp32.
        self.precision = "fp32" if self._model is exact else "bf16"

    def score(self, texts: Sequence[str]) -> Predictions:
        """Return predictions for `texts`, in their order."""
        tokenize = partial(encode_passages, self._tokenizer, max_length=self._max_length)
        return score_in_windows(texts, tokenize=tokenize, predict=self._predict)

    @torch.inference_mode()
    def _predict(self, ids: Ids) -> Predictions:
        pad_id = int(self._tokenizer.pad_token_id or 0)
        lengths = [len(sequence) for sequence in ids]
        order = list(length_buckets(lengths, token_budget=_TOKENS, most=_COMMENTS))
        batches = (padded([ids[i] for i in rows], pad_id) for rows in order)
        parts = [self._probabilities(batch) for batch in on_device(batches, self._device)]
        prob = np.zeros(len(ids), np.float32)
        prob[np.concatenate(order)] = torch.cat(parts).cpu().numpy()  # once, not for every batch
        return Predictions.of(prob)

    def _probabilities(self, batch: Batch) -> Tensor:
        """Return the probabilities (N,) of a batch, on the device."""
        logits = self._model(input_ids=batch.ids, attention_mask=batch.mask).logits.float()
        exclusive = self._model.config.problem_type != "multi_label_classification"
        if logits.shape[1] > 1 and exclusive:
            return torch.softmax(logits, 1)[:, self._toxic]
        return torch.sigmoid(logits[:, self._toxic])


class PyfuncScorer:
    """Scores with any MLflow pyfunc; satisfies `scoring.scorer.Scorer`.

    It is given a list of texts, whole but for invisible characters, or a frame with the column
    `text` if it takes no list, and returns one probability for each: an array (N,) or (N, 1), a
    frame with one column, or one with a column prob, probability, toxicity, score or prediction.
    Of several classes, as columns of a frame or of the `predict_proba` of scikit-learn, it is that
    of `classes.positive_class`. Columns of a frame that review scores need, such as
    `model_variance`, are returned, too. Loading it runs its code.
    """

    def __init__(
        self,
        folder: Path,
        *,
        model_version: str,
        threshold: float = DEFAULT_THRESHOLD,
        stated_class: str | None = None,
    ) -> None:
        """Load the MLflow model in `folder`, and score some texts.

        Raises:
            ModelError: it cannot be loaded; a package that it requires may be missing. Or it
                returns no probabilities, as in `score`.
        """
        self.model_version, self.threshold = model_version, threshold
        self._stated = stated_class
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of MLflow and of the model's packages
                from mlflow.pyfunc import load_model

                self._model = load_model(str(folder))
        except Exception as exc:  # whatever the model's own code raises
            raise ModelError(
                f"version {model_version} could not be loaded as an MLflow pyfunc "
                f"({type(exc).__name__}); install the packages that it requires, or set the alias "
                "on another version"
            ) from exc
        self._classes = _classes(self._model)
        called = self._model.metadata.flavors.get("python_function", {}).get("predict_fn")
        if self._classes is not None and called == "predict":
            raise self._returns_labels()
        self._labels = LabelsCheck()
        #: `PLAIN`, and those of its frame that review scores need.
        self.columns: tuple[str, ...] = ()
        self.score(_PROBE)

    def score(self, texts: Sequence[str]) -> Predictions:
        """Return predictions for `texts`, in their order.

        Raises:
            ModelError: the model fails, returns no probability for each text, or returned only
                labels so far: the probabilities 0 and 1, and no other.
        """
        if not texts:
            none = np.zeros((len(self.columns), 0), np.float32)
            return Predictions(names=self.columns, values=none)
        result = self._predict([visible(text) for text in texts])
        found = self._probabilities(result)
        if found is None or found.shape != (len(texts),):
            raise ModelError(
                f"version {self.model_version} must return one probability for each text: an "
                f"array, or a frame with a column {', '.join(_COLUMNS[:-1])} or {_COLUMNS[-1]} or "
                "a column for each class, with its name"
            )
        if not (np.isfinite(found) & (found >= 0) & (found <= 1)).all():
            raise ModelError(
                f"version {self.model_version} returns values outside [0, 1]; "
                "it must return the probability that a comment is toxic"
            )
        if self._labels.only(found):
            raise self._returns_labels()
        predictions = Predictions.of(found, _further(result))
        self.columns = self.columns or predictions.names
        if predictions.names != self.columns:
            raise ModelError(f"version {self.model_version} returns other columns for some texts")
        check_finite(predictions.names, predictions.values, f"version {self.model_version}")
        return predictions

    def _returns_labels(self) -> ModelError:
        return ModelError(
            f"version {self.model_version} returns labels, which cannot order comments for review; "
            "log it so that it returns probabilities: a model of scikit-learn by "
            'mlflow.sklearn.log_model(…, pyfunc_predict_fn="predict_proba")'
        )

    def _predict(self, texts: list[str]) -> Any:
        failure: Exception | None = None
        for given in (texts, pd.DataFrame({"text": texts})):
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    return self._model.predict(given)
            except Exception as exc:  # noqa: BLE001 - whatever the model's own code raises
                failure = exc
        # Its message may quote a comment.
        raise ModelError(
            f"version {self.model_version} failed on a list of texts and on a frame with the "
            f"column text ({type(failure).__name__})"
        )

    def _probabilities(self, result: Any) -> NDArray[np.float64] | None:
        """Return the probabilities in a result; None if there are none, or not by name."""
        classes = self._classes
        if isinstance(result, pd.DataFrame) and result.shape[1] > 1:
            classes = list(result)
            column = next((name for name in _COLUMNS if name in classes), None)
            # The pipelines of transformers return a label, and the `score` of that label.
            if column is None or "label" in classes or self._stated is not None:
                column = classes[self._positive(classes)]
            result = result[column]
        try:
            values = np.asarray(result, dtype=np.float64)
        except (TypeError, ValueError):
            return None
        if values.ndim == 2 and values.shape[1] == 1:
            return values[:, 0]
        if values.ndim == 2 and classes is not None and values.shape[1] == len(classes):
            return values[:, self._positive(classes)]
        return values if values.ndim == 1 else None

    def _positive(self, classes: Sequence[Any]) -> int:
        return positive_class(classes, self._stated, model_version=self.model_version)


def _further(result: Any) -> dict[str, NDArray[np.float64]]:
    """Return the columns of a pyfunc's frame that review scores need; NaN where it is no number."""
    if not isinstance(result, pd.DataFrame):
        return {}
    there = [name for name in score_columns() if name in result]
    return {name: pd.to_numeric(result[name], errors="coerce").to_numpy(float) for name in there}


def is_classifier(folder: Path) -> bool:
    """Return whether `folder` has the configuration of a `…ForSequenceClassification`."""
    try:
        config = json.loads((folder / "config.json").read_text("utf-8"))
        return any("ForSequenceClassification" in name for name in config["architectures"])
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _classes(model: Any) -> list[Any] | None:
    """Return the classes of a pyfunc, in the order of its probabilities; None: it has none."""
    try:
        return list(np.asarray(model.get_raw_model().classes_).tolist())
    except Exception:  # noqa: BLE001 - whatever the model's own code raises
        return None
