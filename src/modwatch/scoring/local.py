"""The in-process scorer: a saved model on a device of this machine."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import torch

from modwatch.errors import ModelError
from modwatch.models.artifact import load
from modwatch.models.devices import device_of
from modwatch.models.tokenizer import encode
from modwatch.scoring.scorer import Predictions

Precision = Literal["fp32", "bf16"]

#: Texts that are tokenised and batched together; bounds the memory.
_CHUNK = 4_096
#: Maximum of padded subwords, and of comments, in one forward pass; bounds its memory.
_TOKENS = 8_192
_COMMENTS = 256


class LocalScorer:
    """Scores comments in this process; satisfies `scoring.scorer.Scorer`.

    Comments are scored in batches of similar length. The batching changes a probability by
    rounding only (≤ 1e-6 in fp32), and the same list gives exactly the same scores. Except for the
    three numbers per text that are returned, memory does not grow with the number of texts.
    """

    def __init__(
        self,
        folder: Path,
        *,
        model_version: str,
        device: str = "cpu",
        threads: int | None = None,
        precision: Precision = "fp32",
    ) -> None:
        """Load the artifact in `folder`.

        Args:
            folder: from `models.artifact.save`.
            model_version: in the registry.
            device: auto, cpu, cuda or cuda:n.
            threads: torch threads of the process; None leaves them unchanged.
            precision: of the encoder's matrix products; the head always uses fp32.

        Raises:
            ModelError: the artifact is not valid, or there is no such device.
        """
        if precision not in ("fp32", "bf16"):
            raise ModelError(f"precision must be fp32 or bf16, got {precision!r}")
        if threads is not None:
            torch.set_num_threads(threads)
        self.model_version = model_version
        self._model = load(folder)
        self._predictor = self._model.predictor(device_of(device), bf16=precision == "bf16")
        self.threshold = self._model.threshold
        self.digest = self._model.digest

    def score(self, texts: Sequence[str]) -> Predictions:
        """Return predictions for `texts`, in their order."""
        columns = np.zeros((3, len(texts)), np.float32)
        for start in range(0, len(texts), _CHUNK):
            chunk = texts[start : start + _CHUNK]
            ids = encode(self._model.tokenizer, chunk, max_length=self._model.recipe.max_length)
            posterior = self._predictor.predict(ids, batch_tokens=_TOKENS, batch_size=_COMMENTS)
            moments = posterior.moments(self._model.calibration)
            columns[:, start : start + len(chunk)] = (
                moments.prob,
                moments.variance,
                moments.mutual_information,
            )
        prob, variance, information = columns
        return Predictions(prob=prob, model_variance=variance, mutual_information=information)
