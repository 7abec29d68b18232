"""Published corpora, one module per format; all load into the same tables."""

from collections.abc import Callable, Mapping, Set
from pathlib import Path
from types import MappingProxyType

from modwatch.errors import SourceError
from modwatch.ingest.corpora import (
    civil_comments,
    civil_comments_spans,
    crehate,
    md_agreement,
    sbic,
    wikipedia_detox,
    wikipedia_talk,
    xhate_stability,
)
from modwatch.ingest.corpora.corpus import ANNOTATIONS, ITEMS, Corpus, LabelledTexts

__all__ = ["ANNOTATIONS", "ITEMS", "LOADERS", "Corpus", "LabelledTexts", "load", "training_corpus"]

#: Loaders by format; each takes a file or a folder.
LOADERS: Mapping[str, Callable[[Path], Corpus]] = MappingProxyType(
    {
        "civil_comments": civil_comments.load,
        "civil_comments_spans": civil_comments_spans.load,
        "crehate": crehate.load,
        "md_agreement": md_agreement.load,
        "sbic": sbic.load,
        "wikipedia_detox": wikipedia_detox.load,
        "wikipedia_talk": wikipedia_talk.load,
        "xhate_stability": xhate_stability.load,
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
    return LOADERS[name](Path(path))


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
