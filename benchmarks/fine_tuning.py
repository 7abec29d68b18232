"""A pre-trained encoder, fine-tuned on the Jigsaw comments, against TF-IDF and Perspective.

    python benchmarks/fine_tuning.py [--label toxic] [--seeds 0 1 2] [--recipe FILE] …

A recipe, a TOML file, names the encoder; without one the offline model is trained in its place. The
label is `any_toxic` of the corpus, any of six labels, or with `--label toxic` that one alone, which
the stream has, too; 4,431 comments of which it is not known are left out then. With
`--label graded`, the target of a toxic comment is 4/6, and 1/6 more if it is obscene and if it is
an insult, so that the network ranks the worst ones first. `max_characters = 400` leaves out longer
comments: the stream has none with more, and a network that reads the beginning of a longer one may
not see what made it toxic.

Training: `jigsaw2018`, without exact and near duplicates of tested rows: the Jaccard similarity of
their sets of three successive words is at least 0.5 (`modwatch.data.duplicates`). 16,000 of its
comments, and near duplicates of them, are set aside: they are what recipes are chosen by. Held-out
training comments decide when training stops. Tested on the stream `context_gc` (10,000 comments,
151 toxic) and `toxicity_testset`, which nothing is chosen by, and on up to 5,000 comments of other
sources, each by the label of its authors; against TF-IDF (words 1–2, logistic regression) of the
same rows, and the Perspective API's published scores. Intervals: paired bootstrap over the comments
of the stream (2,000 draws) of the mean over seeds.
"""

import argparse
import os
import tempfile
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.pipeline import make_pipeline
from wikipedia_talk import stream, test_set

from modwatch.data.duplicates import near_duplicates
from modwatch.models.artifact import save
from modwatch.models.progress import TrainingProgress
from modwatch.models.recipe import read_recipe
from modwatch.models.scoring.local import LocalScorer
from modwatch.models.training import train
from modwatch_lab.corpora import load

#: Prevalence of the stream, as published.
PREVALENCE = 0.015
#: Other sources, with their folders; their authors mean different things by toxic.
OTHERS = {
    "civil_comments_cctk": "civil_comments_cctk",
    "civil_comments_spans": "civil_comments",
    "crehate": "crehate",
    "md_agreement": "md_agreement",
}


#: Comments of the training corpus that recipes are chosen by.
CHOICE = 16_000
#: Most comments of a source.
MOST = 5_000


def corpus(folder, tested, *, rows, label):
    """Return the comments to train on and to choose by; columns `text`, `target`, `label`."""
    columns = ["toxic", "obscene", "insult"] if label == "graded" else [label]
    frame = pd.read_parquet(folder / "jigsaw2018" / "train.parquet", columns=["text", *columns])
    frame = frame[~near_duplicates(frame["text"].tolist(), tested)]
    print(f"{len(frame):,} comments without duplicates of what is tested")
    frame = frame.sample(frac=1, random_state=7)
    choice, frame = frame.iloc[:CHOICE], frame.iloc[CHOICE:]
    frame = frame[~near_duplicates(frame["text"].tolist(), choice["text"].tolist())]
    found = []
    for part in (frame.dropna().iloc[:rows], choice.dropna()):
        grades = part[columns].astype(float)
        target = grades[columns[0]]
        if label == "graded":
            target = (4 * target + grades["obscene"] + grades["insult"]) / 6
        found.append(part.assign(target=target, label=(target > 0.5).astype(int)))
    return found


def sources(folder, choice):
    """Return texts and labels of every source but the stream, by name."""
    found = {"jigsaw2018, to choose by": (choice["text"].tolist(), choice["label"].to_numpy())}
    small = test_set(folder / "wikipedia_talk")
    found["wikipedia_talk, toxicity_testset"] = small.texts, small.labels
    for name, place in OTHERS.items():
        items = load(name, folder / place).items.select(["text", "label"]).to_pandas().dropna()
        items = items.sample(min(len(items), MOST), random_state=0)
        found[name] = items["text"].tolist(), items["label"].astype(int).to_numpy()
    return found


def tfidf(texts, labels):
    model = make_pipeline(
        TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True),
        LogisticRegression(C=4, max_iter=300),
    )
    model.fit(texts, labels)
    return model.decision_function


def tuned(train_on, recipe, seed, checkpoints, artifact):
    """Train the model, unless it is in `artifact`, and return the scorer."""
    if not artifact.exists():
        with TrainingProgress(partial(print, flush=True)) as show:
            model = train(
                train_on["text"].tolist(),
                train_on["target"].tolist(),
                recipe=recipe,
                seed=seed,
                progress=show,
                checkpoints=checkpoints,
            )
        save(model, artifact)
    return LocalScorer(artifact, model_version=str(seed))


def measures(label, score):
    return np.array([roc_auc_score(label, score), average_precision_score(label, score)])


def line(name, label, score):
    auroc, precision = measures(label, score)
    return f"{name:48} {auroc:.3f} / {precision:.3f}  ({label.mean():.1%} of {label.size:,} toxic)"


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
    parser.add_argument("--data", type=Path, default=os.environ.get("MODWATCH_DATA"))
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--label", choices=("any_toxic", "toxic", "graded"), default="any_toxic")
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2])
    parser.add_argument("--recipe", type=Path, help="TOML file of other hyperparameters")
    parser.add_argument("--checkpoints", type=Path)
    parser.add_argument("--artifacts", type=Path, help="models are kept here, and used if they are")
    parser.add_argument("--scores", type=Path, help="keep the scores of the stream here")
    asked = parser.parse_args()
    folder = asked.data or Path(__file__).resolve().parents[2] / "shared" / "data"
    tested, perspective = stream(folder / "wikipedia_talk")
    label = tested.labels
    train_on, choice = corpus(
        folder,
        tested.texts + test_set(folder / "wikipedia_talk").texts,
        rows=asked.rows,
        label=asked.label,
    )
    recipe = read_recipe(asked.recipe)
    recipe = replace(recipe, expected_prevalence=recipe.expected_prevalence or PREVALENCE)
    short = train_on[train_on["text"].str.len() <= (recipe.max_characters or np.inf)]
    others = sources(folder, choice)
    start = time.perf_counter()
    linear = tfidf(short["text"], short["label"])
    print(
        f"{len(short):,} comments, {short['label'].sum():,} toxic; AUROC / average precision on "
        "the stream and by source"
    )
    on_stream = linear(tested.texts)
    print(line("Perspective", label, perspective))
    print(line(f"TF-IDF ({time.perf_counter() - start:.0f} s)", label, on_stream), flush=True)
    for name, (texts, true) in others.items():
        print(line(f"TF-IDF, {name}", true, linear(texts)), flush=True)
    scores = []
    with tempfile.TemporaryDirectory() as scratch:
        for seed in asked.seeds:
            name = f"seed-{seed}"
            start, busy = time.perf_counter(), time.process_time()
            scorer = tuned(
                train_on,
                recipe,
                seed,
                asked.checkpoints and asked.checkpoints / name,
                (asked.artifacts or Path(scratch)) / name,
            )
            spent = time.perf_counter() - start, time.process_time() - busy
            scores.append(scorer.score(tested.texts).prob)
            print(line(name, label, scores[-1]) + "  {:.0f} s, {:.0f} CPU-seconds".format(*spent))
            for source, (texts, true) in others.items():
                print(line(f"{name}, {source}", true, scorer.score(texts).prob), flush=True)
            if asked.scores:
                pd.DataFrame(np.array(scores).T).to_csv(asked.scores, index=False)
    mean = np.mean([measures(label, score) for score in scores], axis=0)
    low, high = bootstrap(label, scores, on_stream)
    print(f"mean {mean.round(3)}, 95 % {low[0].round(3)} to {high[0].round(3)}")
    print(f"mean less TF-IDF, 95 % {low[1].round(3)} to {high[1].round(3)}")


if __name__ == "__main__":
    main()
