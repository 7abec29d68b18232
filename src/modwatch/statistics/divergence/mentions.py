"""Comments that mention an identity: which these are."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from modwatch.common.errors import SettingsError

Terms = Mapping[str, Sequence[str]]


def identity_mentions(
    texts: "Sequence[str] | pd.Series[str]", terms: Terms
) -> dict[str, NDArray[np.bool_]]:
    """Return which texts (n,) mention each identity.

    A text mentions an identity if it contains one of its terms as whole words, in upper or lower
    case. A mention tells what a text is about, if that; it tells nothing of its author, and words
    with other meanings count too.

    Args:
        texts: (n,) texts; a missing one mentions nothing.
        terms: words, or phrases, of each identity.

    >>> found = identity_mentions(["Women vote.", "A women's vote", "Omen"], {"women": ["women"]})
    >>> found["women"].tolist()
    [True, True, False]
    """
    column: pd.Series[str] = pd.Series(texts, dtype="str")
    return {
        name: column.str.contains(_pattern(words), case=False, na=False).to_numpy(dtype=bool)
        for name, words in terms.items()
    }


def read_identity_terms(path: Path | None = None) -> dict[str, list[str]]:
    """Return the terms of each identity from a TOML file; without a path, the English default.

    The file has a table `identities`, in which each key is an identity and each value a list of
    its terms. An empty table: none.

    Raises:
        SettingsError: the file cannot be read, or is not of this form.

    >>> "women" in read_identity_terms()
    True
    """
    source = resources.files(__package__) / "identities.toml" if path is None else path
    try:
        content: Any = tomllib.loads(source.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as exc:
        raise SettingsError(
            f"the identity terms in {source} cannot be read ({type(exc).__name__}); "
            "correct the file"
        ) from None
    found = content.get("identities")
    if not isinstance(found, dict) or not all(
        isinstance(words, list) and words and all(isinstance(word, str) and word for word in words)
        for words in found.values()
    ):
        raise SettingsError(
            f"{source} must have a table [identities] of lists of terms, such as "
            'women = ["woman", "women"]'
        )
    return found


def _pattern(words: Sequence[str]) -> str:
    inside = "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))
    return rf"(?:^|\W)(?:{inside})(?:$|\W)"
