"""The in-process scorer: a saved model on this machine's CPU."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray

from modwatch.errors import ModelError
from modwatch.models.artifact import load
from modwatch.models.classifier import padded, padding_id
from modwatch.models.heads import PredictiveMoments
from modwatch.models.tokenizer import encode
from modwatch.scoring.batching import length_buckets
from modwatch.scoring.scorer import Predictions

Precision = Literal["fp32", "bf16"]

#: Texts that are tokenised, batched and scored together; bounds the memory.
_CHUNK = 4_096
#: Padded subwords, and comments, in one forward pass; they bound its memory.
_TOKENS = 8_192
_COMMENTS = 256


class LocalScorer:
    """Scores comments in this process; satisfies `scoring.scorer.Scorer`.

    Comments are scored in batches of about one length. Which comments share a batch moves a
    probability by rounding only (≤ 1e-6 in fp32); scoring the same list twice gives the same
    bits. Memory does not grow with the number of texts, but for the three numbers returned each.
    """

    def __init__(
        self,
        folder: Path,
        *,
        model_version: str,
        threads: int | None = None,
        precision: Precision = "fp32",
    ) -> None:
        """Load the artifact in `folder`.

        `threads` is torch's thread count, for the whole process; None leaves it. `precision` is
        that of the encoder's matrix products; the head always works in fp32.
        """
        if precision not in ("fp32", "bf16"):
            raise ModelError(f"precision is {precision!r}; it may be fp32 or bf16")
        if threads is not None:
            torch.set_num_threads(threads)
        self.model_version = model_version
        self._model = load(folder)
        self.threshold = self._model.threshold
        self.digest = self._model.digest
        self._bf16 = precision == "bf16"
        self._pad_id = padding_id(self._model.classifier.encoder, self._model.tokenizer)

    def score(self, texts: Sequence[str]) -> Predictions:
        """Return predictions for `texts`, in their order, whatever their lengths."""
        columns = np.zeros((3, len(texts)), np.float32)
        for start in range(0, len(texts), _CHUNK):
            chunk = texts[start : start + _CHUNK]
            for rows, moments in self._moments(chunk):
                columns[:, start + rows] = (
                    moments.prob,
                    moments.variance,
                    moments.mutual_information,
                )
        prob, variance, information = columns
        return Predictions(prob=prob, model_variance=variance, mutual_information=information)

    def _moments(
        self, texts: Sequence[str]
    ) -> Iterator[tuple[NDArray[np.intp], PredictiveMoments]]:
        """Yield rows of `texts` with their moments, a batch at a time."""
        model = self._model
        ids = encode(model.tokenizer, texts, max_length=model.recipe.max_length)
        lengths = [len(sequence) for sequence in ids]
        for rows in length_buckets(lengths, token_budget=_TOKENS, most=_COMMENTS):
            batch = padded([ids[i] for i in rows], self._pad_id)
            with torch.inference_mode():
                with torch.autocast("cpu", torch.bfloat16, enabled=self._bf16):
                    features = model.classifier.features(batch)
                posterior = model.classifier.head.posterior(features)
            yield rows, model.calibration(posterior).moments()
