"""The comments of the benchmark: training, test (in domain) and deployment (out of domain).

Nothing is tested that was trained on: exact and near duplicates of tested comments are left out of
training, and counted.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modwatch.common.errors import SourceError
from modwatch.data.duplicates import near_duplicates, plain_text
from modwatch_lab import corpora
from modwatch_lab.benchmark.paper import DOMAINS, WIKIPEDIA_TALK
from modwatch_lab.community import Community, Drift
from modwatch_lab.corpora import jigsaw2018
from modwatch_lab.demo.datasets import demo_data, published_file

#: A comment of CivilComments is toxic if more than this share of its raters labelled it toxic: the
#: authors' code, and about 2.5 % of the corpus as in section 4.2 (half or more would be 8 %).
CIVIL_COMMENTS_THRESHOLD = 0.7

#: Scored comments of the challenge's test part, and toxic ones: the corpus of section 4.2 less the
#: challenge's training part (159,571 comments, 15,294 toxic).
TEST_PART = (WIKIPEDIA_TALK[0] - 159_571, WIKIPEDIA_TALK[1] - 15_294)

#: Days of the synthetic community for each of its two environments.
_DAYS = 3
_DRAW_SEED = 0


@dataclass(frozen=True, kw_only=True)
class Comments:
    """N labelled comments of one environment."""

    #: What they are, for people.
    title: str
    texts: tuple[str, ...] = field(repr=False)
    #: (N,) 1 toxic, 0 not.
    labels: NDArray[np.int8] = field(repr=False)
    #: (N,) weights: how many comments each one represents.
    weights: NDArray[np.float64] = field(repr=False)
    #: Comments that were left out, by reason.
    left_out: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def labelled(
        cls,
        title: str,
        texts: tuple[str, ...],
        labels: NDArray[Any],
        left_out: Mapping[str, int] | None = None,
    ) -> "Comments":
        """Return comments with the weight 1.

        >>> Comments.labelled("two", ("a", "b"), np.array([1, 0])).prevalence
        0.5
        """
        return cls(
            title=title,
            texts=texts,
            labels=labels.astype(np.int8),
            weights=np.ones(len(texts)),
            left_out=dict(left_out or {}),
        )

    @property
    def prevalence(self) -> float:
        """The share of toxic comments, by weight."""
        return float(self.weights @ self.labels / self.weights.sum())

    def only(self, rows: NDArray[np.intp], reason: str) -> "Comments":
        """Return some rows; the others are counted as left out for `reason`."""
        removed = {reason: len(self.texts) - len(rows)}
        return replace(
            self,
            texts=tuple(self.texts[row] for row in rows),
            labels=self.labels[rows],
            weights=self.weights[rows],
            left_out={**self.left_out, **{name: k for name, k in removed.items() if k}},
        )

    def weighted_to(self, prevalence: float) -> "Comments":
        """Return the comments with weights by which this share of them is toxic.

        Weights are 1 for toxic comments.

        >>> half = Comments.labelled("two", ("a", "b"), np.array([1, 0]))
        >>> half.weighted_to(0.1).weights.tolist()
        [1.0, 9.0]
        """
        toxic = int(self.labels.sum())
        other = toxic * (1 - prevalence) / prevalence / max(len(self.labels) - toxic, 1)
        return replace(self, weights=np.where(self.labels == 1, 1.0, other))


@dataclass(frozen=True, kw_only=True)
class BenchmarkData:
    """The comments of a benchmark."""

    train: Comments
    in_domain: Comments
    out_of_domain: Comments

    def tested(self, domain: str) -> Comments:
        """Return the comments of a domain of `paper.DOMAINS`."""
        return {"in_domain": self.in_domain, "out_of_domain": self.out_of_domain}[domain]

    @cached_property
    def digest(self) -> str:
        """SHA-256 of all texts, labels and weights, in hexadecimal."""
        total = hashlib.sha256()
        for part in (self.train, self.in_domain, self.out_of_domain):
            total.update(json.dumps([len(part.texts)]).encode())
            total.update(part.labels.tobytes() + part.weights.tobytes())
            for text in part.texts:
                total.update(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest())
        return total.hexdigest()


def benchmark_data(
    name: str = "published",
    *,
    folder: Path | None = None,
    wikipedia: Path | None = None,
    civil_comments: Path | None = None,
    train_examples: int | None = None,
    test_examples: int | None = None,
) -> BenchmarkData:
    """Return the comments of the benchmark, without duplicates between training and tests.

    Args:
        name: `published`, or `synthetic` for the synthetic community, which needs no data.
        folder: of the published data; default: that of `demo.datasets.published_data`.
        wikipedia: folder of the complete Jigsaw challenge of 2018 (`train.csv`, `test.csv`,
            `test_labels.csv`), for training and test; default: the parts of it in `folder`.
        civil_comments: the complete CivilComments (`train.csv` or `all_data.csv`), for deployment;
            default: the part of it in `folder`.
        train_examples: training comments to draw at random; default: all. Duplicates of tested
            comments are left out of those drawn.
        test_examples: comments to draw at random for each test; default: all.

    Raises:
        SourceError: data is missing or has another format, or a class has no comment.
    """
    for option, most in (("train", train_examples), ("test", test_examples)):
        if most is not None and most < 1:
            raise SourceError(f"--{option}-examples must be at least 1, got {most}.")
    if name == "synthetic":
        if wikipedia or civil_comments or folder:
            raise SourceError(
                "--data synthetic reads no files; leave out --wikipedia and "
                "--civil-comments, or use --data published."
            )
        train, test, deployment = _synthetic()
    elif name == "published":
        train, test = (
            _challenge(wikipedia) if wikipedia else (_training(folder), _balanced_test(folder))
        )
        deployment = (
            _by_share("Civil Comments", corpora.load("civil_comments", civil_comments))
            if civil_comments
            else _rated(folder)
        )
    else:
        raise SourceError(f"--data must be published or synthetic, got {name!r}.")
    natural = None if name == "synthetic" or wikipedia else TEST_PART[1] / TEST_PART[0]
    test, deployment = (_drawn(tested, test_examples) for tested in (test, deployment))
    for domain, tested in zip(DOMAINS, (test, deployment), strict=True):
        if not 0 < int(tested.labels.sum()) < len(tested.labels):
            raise SourceError(
                f"the comments for {domain.replace('_', ' ')} tests ({tested.title}) are all of "
                "one class; use more of them (--test-examples)."
            )
    if natural is not None:
        test = test.weighted_to(natural)
    return BenchmarkData(
        train=_without_duplicates(_drawn(train, train_examples), test.texts + deployment.texts),
        in_domain=test,
        out_of_domain=deployment,
    )


def _synthetic() -> tuple[Comments, Comments, Comments]:
    data = demo_data("synthetic")
    seed = int(data.settings["MODWATCH_SOURCE__SEED"])
    history = data.training()
    parts = [
        ("its days without drift", Community(seed=seed)),
        (
            "the same days with drift (new topics and insults)",
            Community(seed=seed, drift=Drift(start=data.first_day)),
        ),
    ]
    tests = []
    for title, community in parts:
        batches = [
            batch for k in range(_DAYS) for batch in community.read(data.first_day + timedelta(k))
        ]
        texts = tuple(text for batch in batches for text in batch.column("text").to_pylist())
        labels = np.concatenate([batch.column("label").to_numpy() for batch in batches])
        tests.append(Comments.labelled(f"the synthetic community, {title}", texts, labels))
    first = Comments.labelled(
        "the synthetic community, before its first day", history.texts, history.labels
    )
    return first, tests[0], tests[1]


def _training(folder: Path | None) -> Comments:
    path = published_file("jigsaw2018", "train.parquet", root=folder)
    found = jigsaw2018.training_part(path.parent)
    return _part("training part", found)


def _balanced_test(folder: Path | None) -> Comments:
    """Return a half-toxic sample of the challenge's test part: its toxic comments, and others."""
    path = published_file("wikipedia_talk", "balanced_test.csv.gz", root=folder)
    corpus = corpora.load("wikipedia_talk", path)
    return _of_items(
        "Jigsaw 2018 (Wikipedia Talk), a sample of the test part with all of its toxic comments, "
        "weighted to the prevalence of the whole",
        corpus,
        corpus.items["label"].to_pylist(),
    )


def _challenge(folder: Path) -> tuple[Comments, Comments]:
    return (
        _part("training part", jigsaw2018.training_part(folder)),
        _part("test part", jigsaw2018.test_part(folder)),
    )


def _part(name: str, found: corpora.LabelledTexts) -> Comments:
    title, left_out = f"Jigsaw 2018 (Wikipedia Talk), {name}", found.account.left_out
    return Comments.labelled(title, found.texts, found.labels, left_out)


def _rated(folder: Path | None) -> Comments:
    path = published_file("civil_comments_cctk", "comments_with_ratings.parquet", root=folder)
    corpus = corpora.load("civil_comments_cctk", path)
    return _by_share("Civil Comments of July 2018, with every rating", corpus)


def _by_share(title: str, corpus: corpora.Corpus) -> Comments:
    shares = corpus.items["score"].to_pylist()
    above = [None if share is None else share > CIVIL_COMMENTS_THRESHOLD for share in shares]
    return _of_items(title, corpus, above)


def _of_items(title: str, corpus: corpora.Corpus, labels: list[int | bool | None]) -> Comments:
    rows = zip(corpus.items["text"].to_pylist(), labels, strict=True)
    kept = [(text, label) for text, label in rows if text and label is not None]
    missing = len(labels) - len(kept)
    return Comments.labelled(
        title,
        tuple(text for text, _ in kept),
        np.array([label for _, label in kept], np.int8),
        {**corpus.left_out, **({"no_text_or_label": missing} if missing else {})},
    )


def _drawn(comments: Comments, most: int | None) -> Comments:
    """Return at most `most` comments, drawn at random."""
    if most is None or most >= len(comments.texts):
        return comments
    rows = np.random.default_rng(_DRAW_SEED).permutation(len(comments.texts))[:most]
    return comments.only(np.sort(rows), "not_drawn")


def _without_duplicates(train: Comments, tested: tuple[str, ...]) -> Comments:
    """Return training comments that are no exact or near duplicates of tested ones."""
    words = {plain_text(text) for text in tested} - {""}
    exact = np.array([plain_text(text) in words for text in train.texts], bool)
    train = train.only(np.flatnonzero(~exact), "exact_duplicates_of_tested_comments")
    near = near_duplicates(train.texts, tested)
    return train.only(np.flatnonzero(~near), "near_duplicates_of_tested_comments")
