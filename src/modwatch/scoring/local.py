"""The in-process scorer: a saved model on the CPU of this machine."""

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
        threads: int | None = None,
        precision: Precision = "fp32",
    ) -> None:
        """Load the artifact in `folder`.

        `threads` is the number of torch threads of the process; None leaves it unchanged.
        `precision` is that of the encoder's matrix products; the head always uses fp32.
        """
        if precision not in ("fp32", "bf16"):
            raise ModelError(f"precision must be fp32 or bf16, got {precision!r}")
        if threads is not None:
            torch.set_num_threads(threads)
        self.model_version = model_version
        self._model = load(folder)
        self.threshold = self._model.threshold
        self.digest = self._model.digest
        self._bf16 = precision == "bf16"
        self._pad_id = padding_id(self._model.classifier.encoder, self._model.tokenizer)

    def score(self, texts: Sequence[str]) -> Predictions:
        """Return predictions for `texts`, in their order."""
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
        """Yield the rows of each batch of `texts` with their moments."""
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


def length_buckets(
    lengths: Sequence[int], *, token_budget: int, most: int
) -> Iterator[NDArray[np.intp]]:
    """Yield the rows of batches of similar length, shortest comments first; each row once.

    A batch, padded to its longest comment, has at most `token_budget` tokens and at most `most`
    comments; a comment longer than the budget is a batch of its own. The sort is stable, so the
    same lengths give the same batches.

    >>> [rows.tolist() for rows in length_buckets([5, 1, 1], token_budget=6, most=8)]
    [[1, 2], [0]]
    """
    length = np.asarray(lengths, dtype=np.int64)
    order = np.argsort(length, kind="stable")
    start = 0
    while start < len(order):
        end = _end(length[order], start, token_budget, most)
        yield order[start:end]
        start = end


def _end(sorted_length: NDArray[np.int64], start: int, token_budget: int, most: int) -> int:
    """Return the end of the batch that begins at `start`, at least `start + 1`."""
    candidates = sorted_length[start : start + most]
    padded = candidates * np.arange(1, len(candidates) + 1)  # ascending
    return start + max(1, int(np.searchsorted(padded, token_budget, side="right")))
