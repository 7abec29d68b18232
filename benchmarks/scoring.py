"""Comments a second of the in-process scorer, as a ratio to the plain Hugging Face pipeline.

    python benchmarks/scoring.py [--comments 4000] [--large-comments 48] [--threads 2] [--methods]
    python benchmarks/scoring.py --encoder FOLDER [--data FOLDER] [--comments 1000] [--threads 2]
    python benchmarks/scoring.py --attention [--threads 2]

Both run in the same process on the same weights, tokenizer and texts: the pipeline
`text-classification` in fp32, once at its default batch of one and once at 32 in the given order,
against `LocalScorer` in fp32 and in bf16. Two encoders: the offline default, and a randomly
initialised BERT of base size. Texts are drawn from a vocabulary of invented words with the lengths
of real comments (log-normal, median 30 words). Times are the best of three, taken in turns.

`--encoder` compares both with a pre-trained encoder, SNGP on it, and real comments of Wikipedia
Talk (`jigsaw2018`, a random sample; without the data, invented ones), at most 512 subwords of each,
and prints how much of the machine's own rate of large bfloat16 matrix products the scorer reaches,
from strings to scores. In bfloat16 also with the linear layers of PyTorch in place of packed ones,
and with batches of 4,096 subwords in place of those that fit the cache. Times are those of the
processor, medians of the repeats, taken in turns.

`--attention` compares attention in blocks with PyTorch's fused kernel, in bfloat16, 12 heads of 32,
for batches of 2,048 subwords: processor time, medians of fifteen, taken in turns.

`--methods` compares the five uncertainty methods instead, with the same encoder (six layers, 384
wide) on the same tokenised batches, as ratios to the deterministic model: at most 1.05 for SNGP, S
for S passes of Monte Carlo dropout, M for M members, of SNGP, too. Exit status 1 if one is slower.
The ratio is the median over the repeats; in each, methods take turns, and a cheap one runs as often
as gives it the time of the most expensive one, so that all are disturbed alike. The time is that of
the processor, without that of other processes; `--threads 1` counts no waiting of threads, either.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
import torch
import transformers
from transformers import AutoModelForSequenceClassification
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from modwatch.models import bfloat16
from modwatch.models.artifact import save
from modwatch.models.bfloat16 import agreement, blocked_attention
from modwatch.models.devices import BatchLimits, LastingLimits
from modwatch.models.encoder import encode
from modwatch.models.recipe import Recipe, offline_recipe
from modwatch.models.scoring.local import LocalScorer
from modwatch.models.training import TrainedModel, train

Timed = Callable[[], object]


def invented_texts(n: int, seed: int) -> list[str]:
    rng = np.random.default_rng(seed)
    syllables = ["ba", "ke", "li", "mo", "nu", "pra", "ste", "tri", "vo", "zu"]
    words = ["".join(rng.choice(syllables, rng.integers(1, 4))) for _ in range(3_000)]
    lengths = np.clip(rng.lognormal(np.log(30), 0.9, n), 1, 400).astype(int)
    return [" ".join(rng.choice(words, length)) for length in lengths]


def trained(recipe: Recipe, n: int) -> TrainedModel:
    """Return a model of the recipe's size; what it learnt is no matter here."""
    texts = invented_texts(n, seed=1)
    return train(texts, [i % 2 for i in range(len(texts))], recipe=recipe, seed=0)


def pipeline(model: TrainedModel, batch_size: int) -> Callable[[list[str]], object]:
    encoder = model.members[0].encoder
    classifier = AutoModelForSequenceClassification.from_config(encoder.config).eval()
    classifier.base_model.load_state_dict(encoder.state_dict(), strict=False)
    pipe = transformers.pipeline("text-classification", model=classifier, tokenizer=model.tokenizer)
    cut = {"truncation": True, "max_length": model.recipe.max_length}
    return lambda texts: pipe(texts, batch_size=batch_size, **cut)


def best_seconds(runs: dict[str, Timed], repeats: int) -> dict[str, float]:
    """Return the least time of each run; the runs take turns, so that all see the same load."""
    seconds = dict.fromkeys(runs, float("inf"))
    for _ in range(repeats):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            seconds[name] = min(seconds[name], time.perf_counter() - start)
    return seconds


def compare(title: str, recipe: Recipe, n: int, *, corpus: int, threads: int, repeats: int) -> None:
    texts = invented_texts(n, seed=2)
    with tempfile.TemporaryDirectory() as scratch:
        model = trained(recipe, corpus)
        save(model, Path(scratch) / "artifact")
        ours = {
            precision: LocalScorer(
                Path(scratch) / "artifact",
                model_version="0",
                threads=threads,
                precision=precision,  # type: ignore[arg-type]
            )
            for precision in ("fp32", "bf16")
        }
        one, many = pipeline(model, 1), pipeline(model, 32)
        runs: dict[str, Timed] = {
            "pipeline, batch 1": lambda: one(texts),
            "pipeline, batch 32": lambda: many(texts),
            "LocalScorer fp32": lambda: ours["fp32"].score(texts),
            "LocalScorer bf16": lambda: ours["bf16"].score(texts),
        }
        seconds = best_seconds(runs, repeats)
        exact, coarse = (ours[name].score(texts).prob for name in ("fp32", "bf16"))
    print(f"\n{title}: {n} comments, {threads} threads")
    base = seconds["pipeline, batch 1"]
    for name, taken in seconds.items():
        print(f"  {name:20} {n / taken:9.0f} comments/s  {base / taken:6.1f} × pipeline, batch 1")
    changed = np.mean((exact > model.threshold) != (coarse > model.threshold))
    print(f"  bf16 against fp32: largest |Δp| {np.abs(exact - coarse).max():.1e}, "
          f"decisions changed {changed:.2%}")  # fmt: skip


def real_texts(folder: Path, n: int) -> list[str]:
    path = folder / "jigsaw2018" / "train.parquet"
    if not path.exists():
        print(f"{path} is not there: invented comments")
        return invented_texts(n, seed=2)
    frame = pd.read_parquet(path, columns=["text"])
    return [str(text) for text in frame["text"].sample(n, random_state=0)]


def operations(config: Any, lengths: list[int]) -> float:
    """Return the floating-point operations of the matrix products of a BERT, without padding."""
    width, inner, tokens = config.hidden_size, config.intermediate_size, np.array(lengths, float)
    linear = (8 * width**2 + 4 * width * inner) * tokens
    return float(config.num_hidden_layers * (linear + 4 * width * tokens**2).sum())


def product(size: int = 1_536) -> tuple[Timed, float]:
    """Return a large matrix product in bfloat16, and its operations."""
    one, other = (torch.randn(size, size).to(torch.bfloat16) for _ in range(2))
    return (lambda: one @ other), 2.0 * size**3


def with_encoder(encoder: str, data: Path, n: int, *, threads: int, repeats: int) -> None:
    """Print rates of the pipeline and the scorer, and how close bfloat16 comes to fp32."""
    texts = real_texts(data, n)
    recipe = Recipe(encoder=encoder, max_length=512, max_steps=30, batch_size=8, held_out=0.3)
    sample = invented_texts(400, seed=1)
    model = train(sample, [int(len(text) % 2) for text in sample], recipe=recipe, seed=0)
    lengths = [len(ids) for ids in encode(model.tokenizer, texts, max_length=512)]
    multiply, per_product = product()
    with tempfile.TemporaryDirectory() as scratch:
        save(model, Path(scratch) / "artifact")
        one = {"model_version": "0", "threads": threads}
        ours = {
            precision: LocalScorer(Path(scratch) / "artifact", precision=precision, **one)  # type: ignore[arg-type]
            for precision in ("fp32", "bf16")
        }
        batched = pipeline(model, 32)
        runs: dict[str, Timed] = {
            "pipeline, batch 32": lambda: batched(texts),
            "LocalScorer fp32": lambda: ours["fp32"].score(texts),
            "LocalScorer bf16": lambda: ours["bf16"].score(texts),
            "bf16 product": multiply,
        }
        where = Path(scratch) / "artifact"
        with patch.object(bfloat16, "can_pack", lambda: False):
            plain = LocalScorer(where, precision="bf16", **one)  # type: ignore[arg-type]
        large = LocalScorer(where, precision="bf16", **one)  # type: ignore[arg-type]
        large._limits = LastingLimits(BatchLimits(batch_size=256, batch_tokens=4_096))
        runs["bf16, plain layers"] = lambda: plain.score(texts)
        runs["bf16, batches 4,096"] = lambda: large.score(texts)
        ours["bf16"].score(texts[:100])
        taken = processor_seconds(runs, dict.fromkeys(runs, 1) | {"bf16 product": 40}, repeats)
        exact, coarse = (our.score(texts).prob.astype(float) for our in ours.values())
    seconds = {name: float(np.median(item)) for name, item in taken.items()}
    total = operations(model.members[0].encoder.config, lengths)
    peak = per_product / seconds.pop("bf16 product")
    print(f"\n{encoder}: {n} comments, mean {np.mean(lengths):.0f} subwords, median "
          f"{np.median(lengths):.0f}, {threads} threads; bf16 products {peak / 1e9:.0f} GFLOP/s "
          "of processor time")  # fmt: skip
    base = seconds["pipeline, batch 32"]
    for name, item in seconds.items():
        print(f"  {name:20} {n / item:7.1f} comments/s  {base / item:6.2f} × pipeline  "
              f"{total / item / peak:6.1%} of the bf16 products")  # fmt: skip
    print(f"  bf16 against fp32: {agreement(exact, coarse, threshold=model.threshold)}")


def attention(repeats: int = 15) -> None:
    """Print the time of the fused kernel over that of attention in blocks, by length."""
    plain = torch.nn.Module()
    plain.is_causal = False  # type: ignore[assignment]
    for length in (16, 32, 64, 128, 256, 512):
        query, key, value = (
            torch.randn(2_048 // length, length, 12, 32).to(torch.bfloat16).transpose(1, 2)
            for _ in range(3)
        )
        runs: dict[str, Timed] = {
            "fused": partial(sdpa_attention_forward, plain, query, key, value, None),
            "blocks": partial(blocked_attention, plain, query, key, value, None),
        }
        with torch.inference_mode():
            taken = processor_seconds(runs, dict.fromkeys(runs, 5), repeats)
        fused, blocks = (float(np.median(taken[name])) for name in runs)
        print(f"  {length:4} subwords: fused {fused * 1e3:6.2f} ms, blocks {blocks * 1e3:6.2f} ms, "
              f"ratio {fused / blocks:.2f}")  # fmt: skip


def methods(n: int, *, members: int, passes: int, repeats: int) -> bool:
    """Print the time of each method over that of the deterministic model; return whether all hold.

    What the model learnt is no matter: it makes one step. The head is that of the default
    recipe.
    """
    limits = {
        "deterministic": 1.0,
        "sngp": 1.05,
        "mc_dropout": passes,
        "ensemble": members,
        "sngp_ensemble": members,
    }
    size = {"layers": 6, "hidden_size": 384, "attention_heads": 12, "vocab_size": 30_000}
    small = {"pooling": "mean", "max_steps": 1, "batch_size": 8, "held_out": 0.4}
    small["linear_kernel"] = Recipe().linear_kernel
    runs: dict[str, Timed] = {}
    for method in limits:
        recipe = offline_recipe(**size, **small, method=method, members=members, passes=passes)
        model = trained(recipe, 24)
        ids = encode(model.tokenizer, invented_texts(n, seed=2), max_length=128)
        predictor = model.predictor()
        runs[method] = partial(predictor.predict, ids, batch_tokens=8_192, batch_size=256)
    for run in runs.values():  # lets memory and kernels settle
        run()
    most = max(limits.values())
    seconds = {
        method: np.array(taken)
        for method, taken in processor_seconds(
            runs, {method: round(most / limit) for method, limit in limits.items()}, repeats
        ).items()
    }
    print(f"\nmethods: {n} comments, {members} members, {passes} passes, {repeats} repeats")
    held = True
    for method, limit in limits.items():
        ratios = seconds[method] / seconds["deterministic"]
        held &= bool(np.median(ratios) <= limit)
        print(f"  {method:15} {n / np.median(seconds[method]):7.1f} comments/s  "
              f"{np.median(ratios):6.3f} × deterministic ({ratios.min():.3f} to "
              f"{ratios.max():.3f}), at most {limit:g}")  # fmt: skip
    return held


def processor_seconds(
    runs: dict[str, Timed], times: dict[str, int], repeats: int
) -> dict[str, list[float]]:
    """Return the processor time of each run in each repeat; a run is made several `times` in it."""
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(repeats):
        for name, run in runs.items():
            start = time.process_time()
            for _ in range(times[name]):
                run()
            seconds[name].append((time.process_time() - start) / times[name])
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--comments", type=int, default=4_000)
    parser.add_argument("--large-comments", type=int, default=48)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--methods", action="store_true")
    parser.add_argument("--attention", action="store_true")
    parser.add_argument("--encoder", help="a pre-trained encoder")
    parser.add_argument("--data", type=Path, default=os.environ.get("MODWATCH_DATA", "."))
    parser.add_argument("--members", type=int, default=5)
    parser.add_argument("--passes", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    transformers.logging.set_verbosity_error()
    if given.methods:
        at = {"members": given.members, "passes": given.passes, "repeats": given.repeats}
        sys.exit(0 if methods(given.large_comments * 4, **at) else 1)
    if given.attention:
        attention()
        return
    if given.encoder:
        with_encoder(
            given.encoder,
            given.data,
            given.comments,
            threads=given.threads,
            repeats=given.repeats,
        )
        return
    compare(
        "offline default",
        offline_recipe(epochs=1),
        given.comments,
        corpus=300,
        threads=given.threads,
        repeats=3,
    )
    base = offline_recipe(
        layers=12,
        hidden_size=768,
        attention_heads=12,
        vocab_size=30_000,
        pooling="mean",
        max_steps=1,
        batch_size=8,
        held_out=0.4,
    )
    compare("BERT base", base, given.large_comments, corpus=24, threads=given.threads, repeats=2)


if __name__ == "__main__":
    main()
