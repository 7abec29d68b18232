"""Speed and memory of fine-tuning and prediction on a device, for an encoder of BERT-base size.

    python benchmarks/training_speed.py [--device auto] [--layers 12] [--hidden 768] [--heads 12]

One epoch of an encoder with random weights and without dropout, on invented comments with the
lengths of real ones (see `scoring.py`), for the deterministic model and SNGP; then prediction of as
many comments. Printed are comments a second of the training steps (without evaluation), of the
exact Laplace precision with prediction, the ratio of SNGP to the deterministic model, and the peak
memory of the device; on a CPU also the deterministic model trained with PyTorch's fused attention.
"""

import argparse
import time

import torch
from scoring import invented_texts

from modwatch.models import optimisation
from modwatch.models.devices import device_of
from modwatch.models.encoder import encode
from modwatch.models.recipe import Recipe
from modwatch.models.training import train


class Clock:
    """Seconds between the first step of training and the last."""

    def __init__(self):
        self.first = self.last = None

    def __call__(self, state):
        if state.phase != "training" or state.plan is not None or not state.step:
            return
        self.last = state.step, time.perf_counter()
        self.first = self.first or self.last

    def steps_a_second(self):
        (begin, start), (end, stop) = self.first, self.last
        return (end - begin) / (stop - start)


def measured(method, options, device):
    """Return comments a second of training and of prediction, and the peak memory in GiB."""
    recipe = Recipe(
        method=method,
        layers=options.layers,
        hidden_size=options.hidden,
        attention_heads=options.heads,
        vocab_size=8_000,
        evaluations=1,
        held_out=0.01,
        dropout=0.0,
        batch_size=options.batch,
        batch_tokens=128 * options.batch,
    )
    texts = invented_texts(options.comments, seed=1)
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    clock = Clock()
    model = train(
        texts,
        [i % 2 for i in range(len(texts))],
        recipe=recipe,
        seed=0,
        devices=[device],
        progress=clock,
    )
    steps = model.facts.networks[0]["steps"]
    training = clock.steps_a_second() * 0.99 * len(texts) / steps
    ids = encode(model.tokenizer, texts, max_length=recipe.max_length)
    predictor = model.predictor(device, bf16=True)
    predictor.predict(ids[:256], batch_tokens=16_384, batch_size=256)
    start = time.perf_counter()
    predictor.predict(ids, batch_tokens=16_384, batch_size=256)
    prediction = len(ids) / (time.perf_counter() - start)
    peak = torch.cuda.max_memory_allocated(device) / 2**30 if device.type == "cuda" else None
    return training, prediction, peak


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="auto")
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--hidden", type=int, default=768)
    parser.add_argument("--heads", type=int, default=12)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--comments", type=int, default=20_000)
    options = parser.parse_args()
    device = device_of(options.device)
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"
    print(f"{name}, torch {torch.__version__}; comments a second")
    print(f"{'':16}{'training':>10}{'prediction':>12}{'peak GiB':>10}")
    found = {}
    for method in ("deterministic", "sngp"):
        training, prediction, peak = found[method] = measured(method, options, device)
        memory = "-" if peak is None else f"{peak:.2f}"
        print(f"{method:16}{training:10,.0f}{prediction:12,.0f}{memory:>10}", flush=True)
    if device.type == "cpu":
        optimisation._SHORT = 0
        fused, _, _ = measured("deterministic", options, device)
        ratio = found["deterministic"][0] / fused
        print(f"training: with fused attention it takes {ratio:.2f} x the time")
    for row, column in (("training", 0), ("prediction", 1)):
        ratio = found["deterministic"][column] / found["sngp"][column]
        print(f"{row}: SNGP takes {ratio:.3f} x the time of the deterministic model")


if __name__ == "__main__":
    main()
