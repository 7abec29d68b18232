"""What is true of comments before they are put into words."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from modwatch.ingest.community.kinds import EMPHASIS_SHARE, EMPHASIS_SHIFT, KINDS, kind_shares
from modwatch.ingest.community.lexicon import GROUPS, NEW_TOPICS, TOPICS

#: Share of comments in each language of `grammar.LEXICONS`.
LANGUAGE_SHARE = (0.94, 0.06)
#: Share of comments that mention a group in passing.
_PASSING_MENTION = 0.04

_INSULTS = [k for k, kind in enumerate(KINDS) if kind.name in {"insult", "disguised"}]
_GROUP_KINDS = [k for k, kind in enumerate(KINDS) if kind.name in {"group_blame", "group_mention"}]


@dataclass(frozen=True, kw_only=True)
class Climate:
    """What a day's comments are drawn from; a drift changes it."""

    #: P(label = 1).
    prevalence: float
    #: Share of comments about NEW_TOPICS.
    new_topics: float
    #: Share of insults whose word and phrasing nobody had used before.
    coinages: float


@dataclass(frozen=True, kw_only=True)
class Latents:
    """The truth of N comments, as arrays of shape (N,)."""

    #: Index into KINDS.
    kind: NDArray[np.int64]
    #: −1 softened, 0 plain, 1 sharpened.
    emphasis: NDArray[np.int64]
    #: In (0, 1): the share of an ideal crowd that calls it toxic.
    toxicity: NDArray[np.float64]
    #: Index into TOPICS + NEW_TOPICS.
    topic: NDArray[np.int64]
    #: Index into `grammar.LEXICONS`.
    language: NDArray[np.int64]
    #: Index into GROUPS, −1 when none is mentioned.
    mention: NDArray[np.int64]
    #: Whether it is an insult of a new coinage, in a new phrasing.
    coined: NDArray[np.bool_]

    @property
    def label(self) -> NDArray[np.int8]:
        """(N,) 1 where more than half of the ideal crowd calls it toxic."""
        return (self.toxicity > 0.5).astype(np.int8)

    @property
    def difficulty(self) -> NDArray[np.float64]:
        """(N,) 1 − |2t − 1|: 0 where all agree, 1 where the crowd is split in half."""
        return 1 - np.abs(2 * self.toxicity - 1)


def draw_latents(size: int, climate: Climate, rng: np.random.Generator) -> Latents:
    """Return the truth of `size` independent comments."""
    kind = rng.choice(len(KINDS), size, p=kind_shares(climate.prevalence))
    emphasis = rng.choice(3, size, p=EMPHASIS_SHARE) - 1
    severity = np.array([k.severity for k in KINDS])[kind]
    spread = np.array([k.spread for k in KINDS])[kind]
    z = rng.normal(severity + np.array(EMPHASIS_SHIFT)[emphasis + 1], spread)
    return Latents(
        kind=kind,
        emphasis=emphasis,
        toxicity=expit(z),
        topic=_topics(size, climate.new_topics, rng),
        language=rng.choice(len(LANGUAGE_SHARE), size, p=LANGUAGE_SHARE),
        mention=_mentions(kind, rng),
        coined=np.isin(kind, _INSULTS) & (rng.random(size) < climate.coinages),
    )


def _topics(size: int, new_share: float, rng: np.random.Generator) -> NDArray[np.int64]:
    old = rng.integers(len(TOPICS), size=size)
    new = len(TOPICS) + rng.integers(len(NEW_TOPICS), size=size)
    return np.where(rng.random(size) < new_share, new, old)


def _mentions(kind: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    about = np.isin(kind, _GROUP_KINDS) | (rng.random(len(kind)) < _PASSING_MENTION)
    return np.where(about, rng.integers(len(GROUPS), size=len(kind)), -1)
