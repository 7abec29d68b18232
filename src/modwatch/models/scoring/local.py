"""The in-process scorer: a saved model on a device of this machine."""

import threading
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Literal, get_args

import torch
from transformers import PreTrainedModel

from modwatch.common.errors import ModelError
from modwatch.models.artifact import load
from modwatch.models.devices import BatchLimits, LastingLimits, device_of, has_bf16
from modwatch.models.encoder import encode_passages
from modwatch.models.posterior import LogitPosterior
from modwatch.models.scoring.scorer import SPREADS, Ids, Predictions, score_in_windows

Precision = Literal["auto", "fp32", "bf16"]

#: Maximum of padded subwords, and of comments, in one forward pass; bounds its memory.
_LIMITS = {
    "cpu": BatchLimits(batch_size=256, batch_tokens=4_096),
    "cuda": BatchLimits(batch_size=1_024, batch_tokens=32_768),
}
#: Hidden values of a batch for each thread of a CPU; those of a layer stay in its own cache.
_VALUES = 262_144
#: Fewest subwords of a batch on a CPU.
_LEAST_TOKENS = 256


class LocalScorer:
    """Scores comments in this process; satisfies `scoring.scorer.Scorer`.

    Comments are scored in batches of similar length, equal ones once; long ones have the score of
    their most toxic passage. The batching changes a
    probability by rounding only (≤ 1e-6 in fp32), and the same list gives exactly the same scores.
    Except for the numbers that are returned, memory does not grow with the number of texts.
    """

    #: Two threads may score: one tokenizes while the other predicts.
    overlaps = True

    def __init__(
        self,
        folder: Path,
        *,
        model_version: str,
        device: str = "cpu",
        threads: int | None = None,
        precision: Precision = "auto",
    ) -> None:
        """Load the artifact in `folder`; arguments as in `opening.open_scorer`.

        The precision is that of the encoder; the head always uses fp32. `auto` is bfloat16 where
        the device is faster with it, and where in training it agreed with fp32
        (`bfloat16.agreement`).

        Raises:
            ModelError: the artifact is not valid, or there is no such device.
        """
        if precision not in get_args(Precision):
            raise ModelError(f"precision must be auto, fp32 or bf16, got {precision!r}")
        if threads is not None:
            torch.set_num_threads(threads)
        self.model_version = model_version
        model, at = load(folder), device_of(device)
        automatic = has_bf16(at) and model.facts.bf16_is_close
        #: What `auto` has chosen.
        self.precision = (
            "bf16" if precision == "bf16" or (automatic and precision == "auto") else "fp32"
        )
        # In bfloat16 it has copies of the encoders; nothing keeps those in fp32.
        self.predictor = model.predictor(at, bf16=self.precision == "bf16")
        self._limits = LastingLimits(_limits(model.members[0].encoder, at))
        self._predicts = threading.Lock()
        #: Subwords that were scored so far.
        self.subwords = 0
        self.tokenizer, self.max_length = model.tokenizer, model.recipe.max_length
        self.calibration, self.threshold = model.calibration, model.threshold
        self.digest = model.digest
        self.columns = model.recipe.columns

    @property
    def limits(self) -> BatchLimits:
        """Of a batch; halved when memory runs out, until it has sufficed for a while."""
        return self._limits.current

    def score(self, texts: Sequence[str]) -> Predictions:
        """Return predictions for `texts`, in their order.

        Where memory runs out, batches are halved. Raises ModelError when one comment does not fit.
        """
        tokenize = partial(encode_passages, self.tokenizer, max_length=self.max_length)
        return score_in_windows(texts, tokenize=tokenize, predict=self._predict, names=self.columns)

    def _predict(self, ids: Ids) -> Predictions:
        def run(limits: BatchLimits) -> LogitPosterior:
            return self.predictor.predict(ids, **limits.sizes())

        with self._predicts:
            posterior = self._limits.run(run, work="scoring", device=self.predictor.device)
            self.subwords += sum(map(len, ids))
        moments = posterior.moments(self.calibration)
        spreads = moments.variance, moments.mutual_information
        known = dict(zip(SPREADS, spreads, strict=True))
        return Predictions.of(moments.prob, {name: known[name] for name in self.columns[2:]})


def _limits(encoder: PreTrainedModel, device: torch.device) -> BatchLimits:
    """Return the limits of a batch on `device`; smaller on a CPU for a wide encoder."""
    limits = _LIMITS[device.type]
    if device.type != "cpu":
        return limits
    fitting = torch.get_num_threads() * _VALUES // int(encoder.config.hidden_size)
    tokens = min(limits.batch_tokens, max(_LEAST_TOKENS, fitting))
    return replace(limits, batch_tokens=tokens)
