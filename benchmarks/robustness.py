"""What disguises of the text do to a model: shares flagged, AUROC and uncertainty.

    python benchmarks/robustness.py MODEL TEXTS [--comments 1000] [--seed 0] [--output FILE.csv]
    python benchmarks/robustness.py --demo wikipedia_talk [--keep FOLDER]
    python benchmarks/robustness.py --long

MODEL is the folder of a model: Modwatch's own, a Hugging Face classifier or an MLflow pyfunc. TEXTS
has labelled comments, with the columns `text` and `label`, in any format of `modwatch train`. With
`--demo` the offline model is trained as that demo trains it, and tested on the demo's evaluation
data.

As many toxic as harmless comments are drawn, at most `--comments` of each. Both are disguised in
the same way, so that a disguise that merely looks toxic to the model shows in the harmless ones.
The words of a long prefix or suffix are those of harmless comments that are not tested. The same
seed gives the same table.

Columns: the share of toxic and of harmless comments that are flagged; the AUROC between them; the
mean uncertainty of the toxic ones, 0.25 where the model did not read to the end; the share of toxic
comments that nobody may see: not flagged, and less uncertain than 90 % of the harmless comments as
they were.

`--long` compares ways to read comments of the Jigsaw challenge that are longer than what the model
reads at once, with the model of the demo `wikipedia_talk`: the beginning alone, and the most toxic
of overlapping passages of several lengths. Near duplicates of training comments are left out.
"""

import argparse
import csv
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.metrics import average_precision_score, roc_auc_score

from modwatch.data.duplicates import near_duplicates
from modwatch.data.sources.labelled import LabelledTexts, read_labelled
from modwatch.models.artifact import save
from modwatch.models.encoder import _encodings
from modwatch.models.recipe import offline_recipe
from modwatch.models.scoring.local import LocalScorer
from modwatch.models.scoring.opening import open_scorer
from modwatch.models.scoring.scorer import Passages, Predictions, score_in_windows
from modwatch.models.training import train
from modwatch_lab.demo.datasets import demo_data, published_file

Disguise = Callable[[str, np.random.Generator], str]

CYRILLIC = str.maketrans("aceiopsxyABCEHIKMOPTX", "асеіорѕхуАВСЕНІКМОРТХ")
GREEK = str.maketrans("aeiknoptuvxABEZHIKMNOPTX", "αεικηορτυνχΑΒΕΖΗΙΚΜΝΟΡΤΧ")
LEET = str.maketrans("aeiostAEIOST", "431057431057")
ZERO_WIDTH = "\u200b\u200c\u200d\u2060\ufeff"
LONG_COLUMNS = ("toxic flagged", "harmless flagged", "precision", "F1", "AUROC", "AP")
COLUMNS = ("disguise", "toxic_flagged", "harmless_flagged", "auroc", "uncertainty", "unseen")


def translated(text: str, _: np.random.Generator, *, table: dict[int, int]) -> str:
    return text.translate(table)


def one_letter_a_word(text: str, rng: np.random.Generator, *, table: dict[int, int]) -> str:
    """Replace one letter of each word, if it has one that can be replaced."""
    words = text.split(" ")
    for at, word in enumerate(words):
        places = [place for place, sign in enumerate(word) if ord(sign) in table]
        if places:
            place = int(rng.choice(places))
            words[at] = word[:place] + word[place].translate(table) + word[place + 1 :]
    return " ".join(words)


def hidden(text: str, rng: np.random.Generator, *, signs: str) -> str:
    """Put an invisible character behind every character."""
    return "".join(sign + signs[rng.integers(len(signs))] for sign in text)


def repeated(text: str, rng: np.random.Generator) -> str:
    """Write one letter of each word three to five times."""
    words = text.split(" ")
    for at, word in enumerate(words):
        places = [place for place, sign in enumerate(word) if sign.isalpha()]
        if places:
            place = int(rng.choice(places))
            words[at] = word[:place] + word[place] * int(rng.integers(3, 6)) + word[place + 1 :]
    return " ".join(words)


def spaced(text: str, _: np.random.Generator) -> str:
    return " ".join(text)


def lengthened(
    text: str, rng: np.random.Generator, *, words: Sequence[str], count: int, before: bool
) -> str:
    start = int(rng.integers(len(words) - count))
    more = " ".join(words[start : start + count])
    return f"{more} {text}" if before else f"{text} {more}"


def disguises(words: Sequence[str]) -> dict[str, Disguise]:
    made: dict[str, Disguise] = {
        "none": lambda text, _: text,
        "homoglyphs, Cyrillic, one letter a word": partial(one_letter_a_word, table=CYRILLIC),
        "homoglyphs, Cyrillic, all letters": partial(translated, table=CYRILLIC),
        "homoglyphs, Greek, all letters": partial(translated, table=GREEK),
        "leetspeak, one letter a word": partial(one_letter_a_word, table=LEET),
        "leetspeak, all letters": partial(translated, table=LEET),
        "zero-width characters": partial(hidden, signs=ZERO_WIDTH),
        "soft hyphens": partial(hidden, signs="\xad"),
        "repeated letters": repeated,
        "spaces between letters": spaced,
    }
    for count in (100, 300, 1_500):
        for name, before in (("prefix", True), ("suffix", False)):
            make = partial(lengthened, words=words, count=count, before=before)
            made[f"harmless {name} of {count:,} words"] = make
    return made


def drawn(
    texts: Sequence[str], labels: np.ndarray, most: int, seed: int
) -> tuple[list[str], list[str], list[str]]:
    """Return toxic texts, as many harmless ones, and the words of other harmless ones."""
    order = np.random.default_rng(seed).permutation(len(texts))
    toxic, harmless = (
        [texts[i] for i in order if (labels[i] > 0.5) == way] for way in (True, False)
    )
    size = min(most, len(toxic), len(harmless) // 2)
    return toxic[:size], harmless[:size], " ".join(harmless[size:]).split()


def row(
    name: str, toxic: Predictions, harmless: Predictions, *, threshold: float, unsure: float
) -> dict[str, Any]:
    prob = np.concatenate([toxic.prob, harmless.prob])
    label = np.repeat([1, 0], [toxic.prob.size, harmless.prob.size])
    flagged = toxic.prob > threshold
    return {
        "disguise": name,
        "toxic_flagged": flagged.mean(),
        "harmless_flagged": (harmless.prob > threshold).mean(),
        "auroc": roc_auc_score(label, prob),
        "uncertainty": toxic.uncertainty.mean(),
        "unseen": (~flagged & (toxic.uncertainty < unsure)).mean(),
    }


def table(
    folder: Path, texts: Sequence[str], labels: np.ndarray, *, most: int, seed: int
) -> list[dict[str, Any]]:
    """Print a row for each disguise, and return them."""
    scorer = open_scorer(folder, model_version="0", threads=torch.get_num_threads())
    toxic, harmless, words = drawn(texts, labels, most, seed)
    print(f"{len(toxic):,} toxic and {len(harmless):,} harmless comments, threshold "
          f"{scorer.threshold:.3f}, seed {seed}\n")  # fmt: skip
    unsure = float(np.quantile(scorer.score(harmless).uncertainty, 0.9))
    print(f"| {' | '.join(name.replace('_', ' ') for name in COLUMNS)} |")
    print(f"|{'---|' * len(COLUMNS)}")
    found = []
    for name, disguise in disguises(words).items():
        rng = np.random.default_rng(seed)
        one, other = (
            scorer.score([disguise(text, rng) for text in part]) for part in (toxic, harmless)
        )
        made = row(name, one, other, threshold=scorer.threshold, unsure=unsure)
        found.append(made)
        print("| {disguise} | {toxic_flagged:.1%} | {harmless_flagged:.1%} | {auroc:.3f} | "
              "{uncertainty:.3f} | {unseen:.1%} |".format(**made))  # fmt: skip
    return found


def demo(name: str, folder: Path) -> tuple[LabelledTexts, LabelledTexts]:
    """Train the demo's model in `folder`; return its evaluation and training data."""
    data = demo_data(name)
    assert data.evaluation is not None
    evaluation, corpus = data.evaluation(), data.training()
    corpus = corpus.without(near_duplicates(corpus.texts, evaluation.texts), "in_the_evaluation")
    recipe = offline_recipe(expected_prevalence=data.expected_prevalence)
    save(train(corpus.texts, corpus.labels.tolist(), recipe=recipe, seed=0), folder)
    return evaluation, corpus


def long_comments(folder: Path) -> None:
    """Train the model of Wikipedia Talk; print what it finds in long comments."""
    _, trained_on = demo("wikipedia_talk", folder)
    scorer = LocalScorer(folder, model_version="0", threads=torch.get_num_threads())
    path = published_file("jigsaw2018", "train.parquet")
    frame = pd.read_parquet(path, columns=["text", "any_toxic"]).dropna()
    whole = scorer.max_length
    frame = frame[[len(e) > 1 for e in passages(scorer, frame["text"].tolist(), whole)]]
    frame = frame[~near_duplicates(frame["text"].tolist(), trained_on.texts)]
    texts, toxic = frame["text"].tolist(), frame["any_toxic"].to_numpy() > 0.5
    print(f"{len(texts):,} comments of more than {whole} subwords, {toxic.sum():,} toxic\n")
    print(f"| {' | '.join(('read', *LONG_COLUMNS))} |\n|{'---|' * (1 + len(LONG_COLUMNS))}")
    ways = {"the beginning": [[e[0]] for e in passages(scorer, texts, whole)]}
    for part in (1, 2, 4, 8):
        ways[f"passages of {whole // part} subwords"] = passages(scorer, texts, whole // part)
    for name, read in ways.items():
        found = score_in_windows(
            [str(row) for row in range(len(read))],
            tokenize=partial(looked_up, read=read),
            predict=scorer._predict,
            names=scorer.columns,
        )
        flagged = found.prob > scorer.threshold
        both = (flagged & toxic).sum()
        print(f"| {name} | {flagged[toxic].mean():.1%} | {flagged[~toxic].mean():.1%} | "
              f"{both / flagged.sum():.1%} | {2 * both / (flagged.sum() + toxic.sum()):.3f} | "
              f"{roc_auc_score(toxic, found.prob):.3f} | "
              f"{average_precision_score(toxic, found.prob):.3f} |")  # fmt: skip


def looked_up(rows: Sequence[str], *, read: list[list[list[int]]]) -> Passages:
    return [(read[int(row)], False) for row in rows]


def passages(scorer: LocalScorer, texts: list[str], length: int) -> list[list[list[int]]]:
    """Return the ids of each text in passages of a length, which share a quarter with the next."""
    found = _encodings(scorer.tokenizer, texts, length, overlap=length // 4)
    return [[first.ids, *(more.ids for more in first.overflowing)] for first in found]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path, nargs="?")
    parser.add_argument("texts", nargs="?")
    parser.add_argument("--demo", choices=["synthetic", "wikipedia_talk"])
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--data", help="the folder of the published data")
    parser.add_argument("--keep", type=Path, help="an empty folder for the demo's model")
    parser.add_argument("--comments", type=int, default=1_000)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=Path("robustness.csv"))
    given = parser.parse_args()
    if not given.long and (given.demo is None) == (given.model is None or given.texts is None):
        parser.error("name a model and texts, or a demo")
    torch.set_num_threads(given.threads)
    if given.data:
        os.environ["MODWATCH_DATA"] = given.data
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.model or given.keep or Path(scratch) / "model"
        if given.long:
            long_comments(folder)
            return
        tested = demo(given.demo, folder)[0] if given.demo else read_labelled([given.texts])
        labels = np.asarray(tested.labels, float)
        found = table(folder, tested.texts, labels, most=given.comments, seed=given.seed)
    with given.output.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(found)
    print(f"\n{time.perf_counter() - began:.0f} s; written to {given.output}")


if __name__ == "__main__":
    main()
