"""Kinds of comments, how severe each is, and the prevalence that follows in closed form.

A comment's toxicity t is sigmoid(z), z normal around the severity of its kind, moved by an
emphasis that can be read in the text. t is the share of an ideal crowd, whose thresholds are
uniform on [0, 1], that calls the comment toxic; its label is 1 when t > 0.5.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from modwatch.errors import SourceError

#: How far an opening moves z: softened, plain, sharpened …
EMPHASIS_SHIFT = (-0.7, 0.0, 0.7)
#: … and how often each occurs.
EMPHASIS_SHARE = (0.2, 0.6, 0.2)


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One kind of comment; its sentences are in the lexicons."""

    name: str
    #: Whether it is meant to hurt. Meaning and label differ where people are divided.
    hostile: bool
    #: Share among the hostile, or among the others.
    share: float
    #: Mean of z.
    severity: float
    #: Standard deviation of z: what the text does not show.
    spread: float


#: What a model must tell apart: insults from the same words used harmlessly, quoted, negated or
#: turned on oneself; sarcasm from praise; a heated opinion from a dismissal.
KINDS = (
    Kind(name="insult", hostile=True, share=0.28, severity=2.2, spread=1.1),
    Kind(name="disguised", hostile=True, share=0.12, severity=2.0, spread=1.1),
    Kind(name="dismissal", hostile=True, share=0.2, severity=1.2, spread=1.1),
    Kind(name="ill_wish", hostile=True, share=0.12, severity=1.4, spread=1.1),
    Kind(name="group_blame", hostile=True, share=0.1, severity=1.8, spread=1.1),
    Kind(name="sarcasm", hostile=True, share=0.18, severity=0.5, spread=1.0),
    Kind(name="opinion", hostile=False, share=0.3, severity=-4.0, spread=1.0),
    Kind(name="question", hostile=False, share=0.12, severity=-4.0, spread=1.0),
    Kind(name="praise", hostile=False, share=0.12, severity=-4.0, spread=1.0),
    Kind(name="harmless_word", hostile=False, share=0.07, severity=-3.2, spread=1.1),
    Kind(name="reported", hostile=False, share=0.07, severity=-2.2, spread=1.1),
    Kind(name="negated", hostile=False, share=0.06, severity=-2.4, spread=1.1),
    Kind(name="self_mockery", hostile=False, share=0.06, severity=-2.2, spread=1.1),
    Kind(name="group_mention", hostile=False, share=0.07, severity=-3.2, spread=1.1),
    Kind(name="criticism", hostile=False, share=0.09, severity=-1.5, spread=1.1),
    Kind(name="teasing", hostile=False, share=0.04, severity=-1.0, spread=1.1),
)


def toxic_share(kind: Kind) -> float:
    """Return P(label = 1) of a kind: Φ((severity + shift) / spread), averaged over emphasis.

    >>> round(toxic_share(Kind(name="even", hostile=True, share=1, severity=0, spread=1)), 6)
    0.5
    """
    shares = (
        0.5 * (1 + math.erf((kind.severity + shift) / kind.spread / math.sqrt(2)))
        for shift in EMPHASIS_SHIFT
    )
    return sum(weight * share for weight, share in zip(EMPHASIS_SHARE, shares, strict=True))


def kind_shares(prevalence: float) -> NDArray[np.float64]:
    """Return the share of each of KINDS, (len(KINDS),), that makes P(label = 1) = `prevalence`.

    Raises SourceError when the kinds cannot be mixed to it (about 0.01 to 0.95).
    """
    means = {side: _side_mean(hostile=side) for side in (True, False)}
    if not means[False] <= prevalence <= means[True]:
        raise SourceError(
            f"A community cannot have a prevalence of {prevalence}; choose one from "
            f"{means[False]:.3f} to {means[True]:.3f}."
        )
    hostile = (prevalence - means[False]) / (means[True] - means[False])
    shares = [kind.share * (hostile if kind.hostile else 1 - hostile) for kind in KINDS]
    return np.array(shares, np.float64)


def _side_mean(*, hostile: bool) -> float:
    return sum(kind.share * toxic_share(kind) for kind in KINDS if kind.hostile is hostile)
