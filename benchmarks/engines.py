"""Engines for the encoder: time against the Hugging Face pipeline, and what changes in decisions.

    python benchmarks/engines.py ARTIFACT [--data FOLDER] [--comments 400] [--compared 10000]

The encoder of a trained model runs in PyTorch as the scorer runs it (fp32 and bfloat16), in
OpenVINO (fp32 and bfloat16) and in ONNX Runtime (fp32 and int8: dynamic quantization, weights by
channel), as far as these are installed (`openvino`; `onnxruntime` and `onnx`); tokenizer, batches,
pooling and head stay the same. The baseline is the pipeline `text-classification` with the same
encoder in fp32, batch 32. Texts: random comments of the Jigsaw challenge with 25 to 57 subwords.
Processor time of one thread, median of five, taken in turns. Agreement with fp32 over `--compared`
comments.
"""

import argparse
import os
import tempfile
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import torch
from scoring import pipeline, processor_seconds

from modwatch.models.artifact import load
from modwatch.models.bfloat16 import agreement
from modwatch.models.classifier import Classifier, Predictor
from modwatch.models.encoder import encode

SUBWORDS = (25, 57)
BATCH = {"batch_tokens": 1_024, "batch_size": 256}


class Engine(torch.nn.Module):
    """In place of an encoder: hidden states by another engine."""

    def __init__(self, run):
        super().__init__()
        self.run = run

    def forward(self, input_ids, attention_mask):
        states = self.run(input_ids.numpy(), attention_mask.long().numpy())
        return SimpleNamespace(last_hidden_state=torch.from_numpy(states))


class _States(torch.nn.Module):
    def __init__(self, encoder):
        super().__init__()
        self.encoder = encoder

    def forward(self, input_ids, attention_mask):
        return self.encoder(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state


def openvino_engines(encoder, example):
    """Yield names and encoders."""
    import openvino

    core = openvino.Core()
    with torch.no_grad():
        converted = openvino.convert_model(_States(encoder), example_input=example)
    for precision in ("f32", "bf16"):
        options = {"INFERENCE_PRECISION_HINT": precision, "INFERENCE_NUM_THREADS": 1}
        request = core.compile_model(converted, "CPU", options).create_infer_request()

        def run(ids, mask, request=request):
            return request.infer([ids, mask], share_inputs=True)[0].copy()

        yield f"OpenVINO {precision}", Engine(run)


def onnx_engines(encoder, example, folder):
    """Yield names and encoders; a BERT has its layers fused."""
    import onnxruntime
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from onnxruntime.transformers import optimizer

    path, small = str(folder / "encoder.onnx"), str(folder / "int8.onnx")
    names = ["input_ids", "attention_mask"]
    encoder.set_attn_implementation("eager")
    torch.onnx.export(
        _States(encoder),
        tuple(example[name] for name in names),
        path,
        input_names=names,
        output_names=["states"],
        dynamic_axes={name: {0: "rows", 1: "subwords"} for name in (*names, "states")},
        dynamo=False,
    )
    if encoder.config.model_type == "bert":
        size = {
            "num_heads": encoder.config.num_attention_heads,
            "hidden_size": encoder.config.hidden_size,
        }
        optimizer.optimize_model(path, model_type="bert", **size).save_model_to_file(path)
    floats = {"DefaultTensorType": 1}
    quantize_dynamic(
        path, small, weight_type=QuantType.QInt8, per_channel=True, extra_options=floats
    )
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    for name, file in (("fp32", path), ("int8", small)):
        session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])

        def run(ids, mask, session=session):
            return session.run(None, {"input_ids": ids, "attention_mask": mask})[0]

        yield f"ONNX Runtime {name}", Engine(run)


def predictors(artifact, folder):
    """Return predictors by name."""
    model = load(artifact)
    found = {"Modwatch fp32": model.predictor(), "Modwatch bf16": model.predictor(bf16=True)}
    example = {name: torch.ones(2, 9, dtype=torch.long) for name in ("input_ids", "attention_mask")}
    for engines in (openvino_engines, partial(onnx_engines, folder=folder)):
        encoder = load(artifact).members[0].encoder  # the export changes its attention
        try:
            for name, engine in engines(encoder, example):
                member = Classifier(engine, model.members[0].head, model.recipe)
                pad_id = found["Modwatch fp32"].pad_id
                found[name] = Predictor(
                    [member], model.recipe, pad_id=pad_id, seed=0, device=torch.device("cpu")
                )
        except ImportError as exc:
            print(f"left out: {exc}")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("artifact", type=Path)
    parser.add_argument("--data", type=Path, default=os.environ.get("MODWATCH_DATA"))
    parser.add_argument("--comments", type=int, default=400)
    parser.add_argument("--compared", type=int, default=10_000)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    model = load(asked.artifact)
    frame = pd.read_parquet(Path(asked.data) / "jigsaw2018" / "train.parquet", columns=["text"])
    texts = frame["text"].sample(4 * asked.compared, random_state=0).tolist()
    tokenize = partial(encode, model.tokenizer, max_length=model.recipe.max_length)
    pairs = [
        (text, ids)
        for text, ids in zip(texts, tokenize(texts), strict=True)
        if SUBWORDS[0] <= len(ids) <= SUBWORDS[1]
    ][: asked.compared]
    short = [text for text, _ in pairs[: asked.comments]]
    with tempfile.TemporaryDirectory() as scratch:
        found = predictors(asked.artifact, Path(scratch))
        runs = {
            name: lambda engine=engine: engine.predict(tokenize(short), **BATCH)
            for name, engine in found.items()
        }
        batched = pipeline(model, 32)
        runs = {"pipeline, batch 32": lambda: batched(short), **runs}
        for run in runs.values():  # lets memory and kernels settle
            run()
        taken = processor_seconds(runs, dict.fromkeys(runs, 1), 5)
        seconds = {name: float(np.median(values)) for name, values in taken.items()}
        base = seconds["pipeline, batch 32"]
        print(f"{len(short)} comments, {np.mean([len(ids) for _, ids in pairs]):.0f} subwords")
        for name, item in seconds.items():
            print(f"{name:20} {len(short) / item:7.1f} comments/s {base / item:6.2f} × pipeline")
        ids, exact = [ids for _, ids in pairs], None
        for name, engine in found.items():
            prob = model.calibration(engine.predict(ids, **BATCH).prob())
            exact = prob if exact is None else exact
            print(name, agreement(exact, prob, threshold=model.threshold), flush=True)


if __name__ == "__main__":
    main()
