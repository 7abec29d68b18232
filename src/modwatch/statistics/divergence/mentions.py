"""Comments that mention an identity: which these are, and how well a model ranks them.

The AUCs are those of Borkan et al. (2019, *Nuanced Metrics for Measuring Unintended Bias with Real
Data for Text Classification*), as in the Jigsaw competition on unintended bias.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from modwatch.common.errors import SettingsError
from modwatch.statistics import arguments, auroc
from modwatch.statistics.arguments import Floats

_Rows = tuple[Floats, Floats, Floats, NDArray[np.bool_]]


def subgroup_auc(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    mentions: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
) -> float | None:
    """Return the AUROC in [0, 1] among the comments that mention the identity.

    Low where the model ranks harmless comments about the group among the toxic ones. None with one
    class only.

    Args:
        y_true: (n,) labels 0 or 1.
        y_prob: (n,) probabilities.
        mentions: (n,) whether a comment mentions the identity.
        sample_weight: (n,) inverse inclusion probabilities; 1 each by default.

    Raises:
        MetricInputError: arguments out of range or of different lengths.

    >>> subgroup_auc([1, 0, 1, 0], [0.9, 0.8, 0.6, 0.1], [True, True, False, False])
    1.0
    """
    y, p, w, mention = _rows(y_true, y_prob, mentions, sample_weight)
    return auroc(y[mention], p[mention], sample_weight=w[mention])


def bpsn_auc(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    mentions: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
) -> float | None:
    """Return the AUROC of toxic comments elsewhere against harmless ones that mention the identity.

    Background positive, subgroup negative: low where mentions alone raise the score. Arguments and
    errors as `subgroup_auc`.

    >>> bpsn_auc([1, 0, 1, 0], [0.9, 0.8, 0.6, 0.1], [True, True, False, False])
    0.0
    """
    y, p, w, mention = _rows(y_true, y_prob, mentions, sample_weight)
    rows = mention == (y == 0)
    return auroc(y[rows], p[rows], sample_weight=w[rows])


def bnsp_auc(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    mentions: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
) -> float | None:
    """Return the AUROC of toxic comments that mention the identity against harmless ones elsewhere.

    Background negative, subgroup positive: low where mentions alone lower the score. Arguments and
    errors as `subgroup_auc`.

    >>> bnsp_auc([1, 0, 1, 0], [0.9, 0.8, 0.6, 0.1], [True, True, False, False])
    1.0
    """
    y, p, w, mention = _rows(y_true, y_prob, mentions, sample_weight)
    rows = mention == (y == 1)
    return auroc(y[rows], p[rows], sample_weight=w[rows])


def _rows(
    y_true: ArrayLike, y_prob: ArrayLike, mentions: ArrayLike, sample_weight: ArrayLike | None
) -> _Rows:
    y, p, w = arguments.rows(y_true, y_prob, sample_weight, None)
    mention = arguments.labels(mentions, name="mentions") == 1
    arguments.same_length(y_true=y, mentions=mention)
    return y, p, w, mention


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
