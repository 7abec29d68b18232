"""A pre-trained encoder, fine-tuned on the Jigsaw comments, against TF-IDF and Perspective.

    python benchmarks/fine_tuning.py ENCODER [--label toxic] [--longest 400] [--seeds 0 1 2] …
    python benchmarks/fine_tuning.py offline

`offline` trains the offline model in its place. The label is `any_toxic` of the corpus, any of six
labels, or with `--label toxic` that one alone, which the stream has, too; 4,431 comments of which
it is not known are left out then. `--longest 400` leaves out longer comments: the
stream has none with more than 400 characters, and a network that reads the beginning of a longer
one may not see what made it toxic.

Training: `jigsaw2018`, without exact and near duplicates of tested rows: the
Jaccard similarity of their sets of three successive words is at least 0.5
(`modwatch.models.duplicates`). Held-out training comments decide when training stops. Tested on the
stream `context_gc` (10,000 comments, 151 toxic), which nothing is chosen by, against TF-IDF (words
1–2, logistic regression) of the same rows, and the Perspective API's published scores. Intervals:
paired bootstrap over the comments of the stream (2,000 draws) of the mean over seeds.
"""

import argparse
import json
import os
import time
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from model_choice import stream
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.pipeline import make_pipeline

from modwatch.models.duplicates import near_duplicates
from modwatch.models.encoder import encode
from modwatch.models.progress import TrainingProgress
from modwatch.models.recipe import Recipe, offline_recipe
from modwatch.models.training import train

#: Prevalence of the stream, as published.
PREVALENCE = 0.015


def corpus(folder, tested, *, rows, label, longest, seed=0):
    """Return texts and labels of a random part of the training corpus, without what is tested."""
    frame = pd.read_parquet(folder / "jigsaw2018" / "train.parquet", columns=["text", label])
    frame = frame.dropna().sample(frac=1, random_state=seed)
    frame = frame[~near_duplicates(frame["text"].tolist(), tested)]
    print(f"{len(frame):,} comments without duplicates of the stream")
    if longest is not None:
        frame = frame[frame["text"].str.len() <= longest]
    frame = frame.iloc[:rows]
    return frame["text"].tolist(), frame[label].astype(int).tolist()


def tfidf(texts, labels, tested):
    model = make_pipeline(
        TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True),
        LogisticRegression(C=4, max_iter=300),
    )
    model.fit(texts, labels)
    return model.decision_function(tested)


def tuned(texts, labels, tested, recipe, seed, checkpoints):
    """Return the scores of the tested texts, the validation metrics, seconds and CPU-seconds."""
    start, busy = time.perf_counter(), time.process_time()
    with TrainingProgress(partial(print, flush=True)) as show:
        model = train(
            texts, labels, recipe=recipe, seed=seed, progress=show, checkpoints=checkpoints
        )
    seconds = time.perf_counter() - start, time.process_time() - busy
    ids = encode(model.tokenizer, tested, max_length=model.recipe.max_length)
    posterior = model.predictor().predict(ids, batch_tokens=8_192, batch_size=256)
    return posterior.moments(model.calibration).prob, model.facts, seconds


def measures(label, score):
    return np.array([roc_auc_score(label, score), average_precision_score(label, score)])


def bootstrap(label, ours, other, draws=2_000):
    """Return 95 % intervals of the mean over `ours`, and of its difference to `other`."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(draws):
        rows = rng.integers(0, label.size, label.size)
        mean = np.mean([measures(label[rows], score[rows]) for score in ours], axis=0)
        found.append([mean, mean - measures(label[rows], other[rows])])
    return np.quantile(np.array(found), [0.025, 0.975], axis=0)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("encoder")
    parser.add_argument("--data", type=Path, default=os.environ.get("MODWATCH_DATA"))
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--label", choices=("any_toxic", "toxic"), default="any_toxic")
    parser.add_argument("--longest", type=int, help="most characters of a training comment")
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2])
    parser.add_argument("--recipe", type=json.loads, default={}, help="other hyperparameters, JSON")
    parser.add_argument("--checkpoints", type=Path)
    parser.add_argument("--scores", type=Path, help="keep the scores of the stream here")
    asked = parser.parse_args()
    folder = asked.data or Path(__file__).resolve().parents[2] / "shared" / "data"
    tested, perspective = stream(folder / "wikipedia_talk")
    label = tested.labels
    texts, labels = corpus(
        folder, tested.texts, rows=asked.rows, label=asked.label, longest=asked.longest
    )
    if asked.encoder == "offline":
        recipe = offline_recipe(expected_prevalence=PREVALENCE, **asked.recipe)
    else:
        recipe = Recipe(encoder=asked.encoder, expected_prevalence=PREVALENCE, **asked.recipe)
    start = time.perf_counter()
    linear = tfidf(texts, labels, tested.texts)
    print(
        f"{len(texts):,} comments, {sum(labels):,} toxic; AUROC / average precision on the stream"
    )
    rows = {"Perspective": perspective, f"TF-IDF ({time.perf_counter() - start:.0f} s)": linear}
    for name, score in rows.items():
        print(f"{name:24} {measures(label, score).round(3)}", flush=True)
    scores = []
    for seed in asked.seeds:
        place = asked.checkpoints and asked.checkpoints / f"seed-{seed}"
        score, facts, seconds = tuned(texts, labels, tested.texts, recipe, seed, place)
        scores.append(score)
        print(
            f"seed {seed:<19} {measures(label, score).round(3)}  {seconds[0]:.0f} s, "
            f"{seconds[1]:.0f} CPU-seconds, validation "
            f"{ {name: round(value, 4) for name, value in facts.validation.items()} }",
            flush=True,
        )
        if asked.scores:
            pd.DataFrame(np.array(scores).T).to_csv(asked.scores, index=False)
    mean = np.mean([measures(label, score) for score in scores], axis=0)
    low, high = bootstrap(label, scores, linear)
    print(f"mean {mean.round(3)}, 95 % {low[0].round(3)} to {high[0].round(3)}")
    print(f"mean less TF-IDF, 95 % {low[1].round(3)} to {high[1].round(3)}")


if __name__ == "__main__":
    main()
