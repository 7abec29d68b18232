"""Published corpora; all formats load into the same tables."""

from collections import Counter
from collections.abc import Callable, Mapping, Set
from pathlib import Path
from types import MappingProxyType

from modwatch.common.errors import SourceError
from modwatch.data.sources.labelled import LabelledTexts
from modwatch_lab.corpora import annotated, civil_comments, wikipedia_talk
from modwatch_lab.corpora.corpus import ANNOTATIONS, ITEMS, Corpus, long_table

__all__ = [
    "ANNOTATIONS",
    "ITEMS",
    "LOADERS",
    "Corpus",
    "LabelledTexts",
    "load",
    "long_table",
    "training_corpus",
]

#: Loaders by format; each takes a file or a folder, and counts unusable rows by reason.
LOADERS: Mapping[str, Callable[[Path, Counter[str]], Corpus]] = MappingProxyType(
    {
        "civil_comments": civil_comments.load,
        "civil_comments_cctk": civil_comments.load_ratings,
        "civil_comments_spans": annotated.civil_comments_spans,
        "crehate": annotated.crehate,
        "md_agreement": annotated.md_agreement,
        "sbic": annotated.sbic,
        "wikipedia_talk": wikipedia_talk.load,
        "xhate_stability": annotated.xhate_stability,
    }
)


def load(name: str, path: str | Path) -> Corpus:
    """Return the corpus in file or folder `path`, in the format `name` of LOADERS.

    Raises SourceError for an unknown name, a missing path, or another format.
    """
    if name not in LOADERS:
        raise SourceError(f"Corpus {name!r} does not exist; use one of {', '.join(LOADERS)}.")
    if not Path(path).exists():
        raise SourceError(f"{path} does not exist; use the published file or its folder.")
    return LOADERS[name](Path(path), Counter())


def training_corpus(name: str, folder: str | Path, stream: Corpus | Set[str]) -> LabelledTexts:
    """Return the training texts of corpus `name`, without texts that occur in `stream`.

    `stream` is the corpus that will be replayed, or its normalised texts. Only `wikipedia_talk`
    has a training part. Raises SourceError for another name.
    """
    if name != "wikipedia_talk":
        raise SourceError(f"Corpus {name!r} has no training part; use wikipedia_talk.")
    if isinstance(stream, Corpus):
        texts = stream.items["text"].to_pylist()
        stream = {wikipedia_talk.normalise(text) for text in texts if text}
    return wikipedia_talk.training_corpus(Path(folder), stream)
