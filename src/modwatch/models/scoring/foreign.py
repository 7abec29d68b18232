"""Scorers of models that Modwatch did not train: Hugging Face classifiers, MLflow pyfuncs.

They are deterministic: the model variance is 0, and p(1−p) is the whole uncertainty.
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
from modwatch.models.devices import device_of
from modwatch.models.encoder import encode_passages, longest_input, pretrained_tokenizer, reading
from modwatch.models.scoring.scorer import DEFAULT_THRESHOLD, Ids, Predictions, score_in_windows

#: Parts of the names that classifiers give to the class of toxic texts.
_TOXIC = ("toxic", "hate", "offens", "abus", "harm", "insult", "label_1")
_NOT = ("not", "non", "no_", "no-")
#: Columns of a pyfunc's frame that hold the probability.
_COLUMNS = ("prob", "probability", "toxicity", "score", "prediction")
_MAX_LENGTH, _TOKENS, _COMMENTS = 512, 8_192, 256


class HuggingFaceScorer:
    """Scores with a `…ForSequenceClassification`; satisfies `scoring.scorer.Scorer`.

    One logit is that of toxicity. Of several, the class is taken whose name says toxic, hateful,
    offensive, abusive, harmful or insulting (or is LABEL_1): its softmax, or its sigmoid where the
    configuration says that classes are not exclusive.
    """

    def __init__(
        self,
        folder: Path,
        *,
        model_version: str,
        threshold: float = DEFAULT_THRESHOLD,
        device: str = "cpu",
        threads: int | None = None,
        bf16: bool = False,
    ) -> None:
        """Load the classifier in `folder`; no code of it runs, and nothing is unpickled.

        With `bf16`, weights and activations are in bfloat16; the other arguments are those of
        `opening.open_scorer`.

        Raises:
            ModelError: the folder has no such classifier, or none of its classes is toxicity.
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
        self._model = model.float().eval().to(self._device)
        if bf16:
            self._model = in_bf16(self._model)
        self._toxic = _toxic_class(self._model.config)
        longest = longest_input(getattr(model, model.base_model_prefix, model)) or _MAX_LENGTH
        self._max_length = min(_MAX_LENGTH, longest)

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
        return Predictions.certain(prob)

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
    `text` if it takes no list, and returns
    one probability for each: an array (N,), the last column of an array (N, 2), or a frame with a
    column prob, probability, toxicity, score or prediction. Loading it runs its code.
    """

    def __init__(
        self, folder: Path, *, model_version: str, threshold: float = DEFAULT_THRESHOLD
    ) -> None:
        """Load the MLflow model in `folder`.

        Raises:
            ModelError: it cannot be loaded; a package that it requires may be missing.
        """
        self.model_version, self.threshold = model_version, threshold
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

    def score(self, texts: Sequence[str]) -> Predictions:
        """Return predictions for `texts`, in their order.

        Raises:
            ModelError: the model fails, or returns no probability for each text.
        """
        if not texts:
            return Predictions.certain(np.zeros(0, np.float32))
        found = _probabilities(self._predict([visible(text) for text in texts]))
        if found is None or found.shape != (len(texts),):
            raise ModelError(
                f"version {self.model_version} must return one probability for each text: an "
                f"array, or a frame with a column {', '.join(_COLUMNS[:-1])} or {_COLUMNS[-1]}"
            )
        if not (np.isfinite(found) & (found >= 0) & (found <= 1)).all():
            raise ModelError(
                f"version {self.model_version} returns values outside [0, 1]; "
                "it must return the probability that a comment is toxic"
            )
        return Predictions.certain(found.astype(np.float32))

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


def is_classifier(folder: Path) -> bool:
    """Return whether `folder` has the configuration of a `…ForSequenceClassification`."""
    try:
        config = json.loads((folder / "config.json").read_text("utf-8"))
        return any("ForSequenceClassification" in name for name in config["architectures"])
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _toxic_class(config: Any) -> int:
    """Return the number of the class of toxic texts."""
    if config.num_labels == 1:
        return 0
    names = {int(number): str(name).lower() for number, name in config.id2label.items()}
    found = [
        number
        for number, name in sorted(names.items())
        if any(part in name for part in _TOXIC) and not name.startswith(_NOT)
    ]
    exact = [number for number in found if names[number] in ("toxic", "toxicity")]
    if len(exact or found) != 1:
        raise ModelError(
            f"which class of the classifier is toxicity? Its names are "
            f"{', '.join(names.values())}; set id2label in config.json so that one is `toxic`"
        )
    return (exact or found)[0]


def _probabilities(result: Any) -> NDArray[np.float64] | None:
    """Return the probabilities in a pyfunc's result; None if there are none."""
    if isinstance(result, pd.DataFrame):
        column = next((name for name in _COLUMNS if name in result), None)
        result = result.iloc[:, -1] if column is None else result[column]
    try:
        values = np.asarray(result, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    if values.ndim == 2 and values.shape[1] in (1, 2):
        values = values[:, -1]
    return values if values.ndim == 1 else None
