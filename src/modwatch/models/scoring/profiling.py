"""How fast a scorer is, where its time goes, and how near it comes to what the device can do."""

import math
import resource
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode, sdpa_flop_count

from modwatch.common.errors import ModelError
from modwatch.models.batches import Batch, length_buckets, padded
from modwatch.models.packing import PackedLinear
from modwatch.models.scoring.local import LocalScorer
from modwatch.models.tokenizer import encode

#: Measurements, of which the median counts.
_REPEATS = 3
#: Rows of the square matrices, and bytes of the vector, by which the device is measured.
_SIZE = {"cpu": 1_536, "cuda": 8_192}
_BYTES = {"cpu": 256_000_000, "cuda": 2_000_000_000}

STAGES = ("tokenisation", "padding", "encoder", "head", "moments")


@dataclass(frozen=True, kw_only=True)
class ScorerProfile:
    """Measurements of a scorer on N comments."""

    model_version: str
    device: str
    precision: str
    threads: int
    comments: int
    subwords: int
    #: Of `score` on all comments.
    seconds: float
    #: Seconds by stage, one after another; `score` tokenises meanwhile.
    stages: dict[str, float]
    #: Floating-point operations of the matrix products, with padding, and the bytes that the linear
    #: layers read and write.
    operations: float
    bytes: float
    #: Of large matrix products in the same precision, a second; and bytes a second of a copy.
    peak: float
    bandwidth: float
    #: Most memory of the process, or of the device.
    memory: int

    @property
    def share_of_peak(self) -> float:
        """Share of the measured rate of matrix products that `score` reaches, from strings."""
        return self.operations / self.seconds / self.peak

    @property
    def intensity(self) -> float:
        """Operations a byte of the encoder."""
        return self.operations / self.bytes

    @property
    def roof(self) -> float:
        """Operations a second that the roofline allows the encoder."""
        return min(self.peak, self.intensity * self.bandwidth)

    def lines(self) -> list[str]:
        """Return the profile as text."""
        total = sum(self.stages.values())
        stages = ", ".join(f"{name} {self.stages[name] / total:.1%}" for name in STAGES)
        encoder = self.operations / self.stages["encoder"]
        return [
            f"version {self.model_version} on {self.device} in {self.precision}, {self.threads} "
            f"thread{'s' * (self.threads > 1)}: {self.comments:,} comments, "
            f"{self.subwords:,} subwords",
            f"speed: {self.comments / self.seconds:,.1f} comments/s, "
            f"{self.subwords / self.seconds:,.0f} subwords/s",
            f"matrix products: {self.operations / self.seconds / 1e9:,.1f} GFLOP/s, "
            f"{self.share_of_peak:.1%} of {self.peak / 1e9:,.1f} GFLOP/s of large ones; "
            f"the encoder alone {encoder / self.peak:.1%}",
            f"time by stage: {stages}",
            f"memory: {self.memory / 2**20:,.0f} MiB at most",
        ]


def profile(scorer: LocalScorer, texts: Sequence[str]) -> ScorerProfile:
    """Return the profile of `scorer` on comments.

    Raises:
        ModelError: there are no comments.
    """
    if not texts:
        raise ModelError("there are no comments to profile the scorer with; choose another day")
    scorer.score(texts[:64])  # lets memory and kernels settle
    seconds = [_seconds(scorer, lambda: scorer.score(texts)) for _ in range(_REPEATS)]
    stages, batches = _stages(scorer, texts)
    operations, moved = _work(scorer, batches)
    device = scorer.predictor.device
    kind = torch.bfloat16 if scorer.precision == "bf16" else torch.float32
    return ScorerProfile(
        model_version=scorer.model_version,
        device=str(device),
        precision=scorer.precision,
        threads=torch.get_num_threads(),
        comments=len(texts),
        subwords=int(sum(batch.mask.sum() for batch in batches)),
        seconds=float(np.median(seconds)),
        stages=stages,
        operations=operations,
        bytes=moved,
        peak=_peak(scorer, kind),
        bandwidth=_bandwidth(scorer),
        memory=_memory(device),
    )


def _stages(scorer: LocalScorer, texts: Sequence[str]) -> tuple[dict[str, float], list[Batch]]:
    """Return the seconds of each stage, and the batches."""
    predictor = scorer.predictor
    seconds, parts, batches = dict.fromkeys(STAGES, 0.0), list[torch.Tensor](), list[Batch]()

    @contextmanager
    def timed(stage: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        _synchronize(predictor.device)
        seconds[stage] += time.perf_counter() - start

    with timed("tokenisation"):
        ids = encode(scorer.tokenizer, texts, max_length=scorer.max_length)
    with timed("padding"):
        for rows in length_buckets([len(each) for each in ids], **_budget(scorer)):
            batch = padded([ids[row] for row in rows], predictor.pad_id)
            batches.append(batch.to(predictor.device))
    with _timed_encoders(scorer, seconds), timed("head"):
        parts = [predictor.logit_moments(batch) for batch in batches]
    seconds["head"] -= seconds["encoder"]
    with timed("moments"):
        predictor.posterior(torch.cat(parts, 2)).moments(scorer.calibration)
    return seconds, batches


def _budget(scorer: LocalScorer) -> dict[str, int]:
    return {"token_budget": scorer.limits.batch_tokens, "most": scorer.limits.batch_size}


@contextmanager
def _timed_encoders(scorer: LocalScorer, seconds: dict[str, float]) -> Iterator[None]:
    """Add the seconds of the encoders' calls to `seconds` within the block."""
    device, started = scorer.predictor.device, [0.0]

    def begin(*_: object) -> None:
        _synchronize(device)
        started[0] = time.perf_counter()

    def end(*_: object) -> None:
        _synchronize(device)
        seconds["encoder"] += time.perf_counter() - started[0]

    with ExitStack() as hooks:
        for member in scorer.predictor.members:
            hooks.enter_context(member.encoder.register_forward_pre_hook(begin))
            hooks.enter_context(member.encoder.register_forward_hook(end))
        yield


def _work(scorer: LocalScorer, batches: Sequence[Batch]) -> tuple[float, float]:
    """Return the operations of the matrix products, and the bytes of the linear layers."""
    moved = 0.0

    def count(module: Any, given: tuple[torch.Tensor, ...], returned: Any) -> None:
        nonlocal moved
        own = [module.weight] if module.bias is None else [module.weight, module.bias]
        tensors = [given[0], returned, *own]
        moved += sum(each.numel() * each.element_size() for each in tensors)

    layers = [
        each
        for member in scorer.predictor.members
        for each in member.encoder.modules()
        if isinstance(each, nn.Linear | PackedLinear)
    ]
    with ExitStack() as hooks, FlopCounterMode(display=False, custom_mapping=_ON_CPU) as counter:
        for each in layers:
            hooks.enter_context(each.register_forward_hook(count))
        for batch in batches:
            scorer.predictor.logit_moments(batch)
    return float(counter.get_total_flops()), max(moved, 1.0)


def _attention(query: Any, key: Any, value: Any, *_: object, **__: object) -> int:
    """Return the operations of attention, from the shapes of its tensors."""
    return int(sdpa_flop_count(query, key, value))  # type: ignore[no-untyped-call]


def _packed(values: Any, weight: Any, *_: object, **__: object) -> int:
    """Return the operations of a packed linear layer, from the shapes of its tensors."""
    return int(2 * math.prod(values) * weight[0])


#: Operations of the CPU that PyTorch's counter does not know.
_ON_CPU = {
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: _attention,
    torch.ops.mkldnn._linear_pointwise: _packed,
}


def _peak(scorer: LocalScorer, kind: torch.dtype) -> float:
    """Return the operations a second of large matrix products."""
    device = scorer.predictor.device
    size = _SIZE[device.type]
    one, other = (torch.randn(size, size, device=device).to(kind) for _ in range(2))

    def multiply() -> None:
        for _ in range(8):
            one @ other

    multiply()
    return 16.0 * size**3 / min(_seconds(scorer, multiply) for _ in range(_REPEATS))


def _bandwidth(scorer: LocalScorer) -> float:
    """Return the bytes a second that a copy reads and writes."""
    device = scorer.predictor.device
    source = torch.zeros(_BYTES[device.type], dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    target.copy_(source)
    seconds = [_seconds(scorer, lambda: target.copy_(source)) for _ in range(_REPEATS)]
    return 2.0 * source.numel() / min(seconds)


def _seconds(scorer: LocalScorer, run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    _synchronize(scorer.predictor.device)
    return time.perf_counter() - start


def _synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _memory(device: torch.device) -> int:
    if device.type == "cuda":
        return int(torch.cuda.max_memory_allocated(device))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1_024
