"""The ground truth of synthetic comments: kind, toxicity, label, topic, language and groups.

Each kind of comment has a severity. The toxicity t of a comment is sigmoid(z), with z normally
distributed around the severity of its kind and shifted by an emphasis that is visible in the text.
t is the share of an ideal crowd, with thresholds uniform on [0, 1], that labels the comment toxic;
the label is 1 when t > 0.5. The prevalence follows in closed form.
"""

import math
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from modwatch.common.errors import SourceError
from modwatch_lab.community.lexicon import GROUPS, NEW_TOPICS, TOPICS

#: Shift of z by the emphasis: softened, plain, sharpened …
EMPHASIS_SHIFT = (-0.7, 0.0, 0.7)
#: … and the share of each.
EMPHASIS_SHARE = (0.2, 0.6, 0.2)
#: Share of comments in each language of `grammar.LEXICONS`.
LANGUAGE_SHARE = (0.94, 0.06)
#: Share of comments that mention a group in passing.
_PASSING_MENTION = 0.04


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One kind of comment; its sentences are in the lexicons."""

    name: str
    #: Intended to hurt. Intention and label differ where annotators disagree.
    hostile: bool
    #: Share among the hostile kinds, or among the others.
    share: float
    #: Mean of z.
    severity: float
    #: Standard deviation of z, the part that the text does not show.
    spread: float


#: The kinds are hard to separate on purpose: insults from the same words used harmlessly, quoted,
#: negated or about oneself; sarcasm from praise; a heated opinion from a dismissal.
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

_INSULTS = [k for k, kind in enumerate(KINDS) if kind.name in {"insult", "disguised"}]
_GROUP_KINDS = [k for k, kind in enumerate(KINDS) if kind.name in {"group_blame", "group_mention"}]

#: Toxicity of the valid rows among the defects, which are harmless greetings.
GREETING_TOXICITY = 0.01


def toxic_share(kind: Kind) -> float:
    """Return P(label = 1) of a kind: Φ((severity + shift) / spread), averaged over the emphasis.

    >>> round(toxic_share(Kind(name="even", hostile=True, share=1, severity=0, spread=1)), 6)
    0.5
    """
    shares = (
        0.5 * (1 + math.erf((kind.severity + shift) / kind.spread / math.sqrt(2)))
        for shift in EMPHASIS_SHIFT
    )
    return sum(weight * share for weight, share in zip(EMPHASIS_SHARE, shares, strict=True))


def kind_shares(prevalence: float) -> NDArray[np.float64]:
    """Return the share of each of KINDS, (len(KINDS),), with which P(label = 1) = `prevalence`.

    Raises SourceError when no mixture has this prevalence (possible: about 0.02 to 0.88).
    """
    means = {
        hostile: sum(kind.share * toxic_share(kind) for kind in KINDS if kind.hostile is hostile)
        for hostile in (True, False)
    }
    if not means[False] <= prevalence <= means[True]:
        raise SourceError(
            f"The prevalence of a community must be in [{means[False]:.3f}, {means[True]:.3f}], "
            f"got {prevalence}."
        )
    hostile = (prevalence - means[False]) / (means[True] - means[False])
    shares = [kind.share * (hostile if kind.hostile else 1 - hostile) for kind in KINDS]
    return np.array(shares, np.float64)


@dataclass(frozen=True, kw_only=True)
class Mixture:
    """Parameters that the comments of a day are drawn with; a drift changes them."""

    #: P(label = 1).
    prevalence: float
    #: Share of comments about NEW_TOPICS.
    new_topics: float
    #: Share of insults with words and phrases that are new.
    coinages: float


@dataclass(frozen=True, kw_only=True)
class Latents:
    """The ground truth of N comments, as arrays of shape (N,)."""

    #: Index into KINDS.
    kind: NDArray[np.int64]
    #: −1 softened, 0 plain, 1 sharpened.
    emphasis: NDArray[np.int64]
    #: In (0, 1): the share of an ideal crowd that labels it toxic.
    toxicity: NDArray[np.float64]
    #: Index into TOPICS + NEW_TOPICS.
    topic: NDArray[np.int64]
    #: Index into `grammar.LEXICONS`.
    language: NDArray[np.int64]
    #: Index into GROUPS; −1: no mention.
    mention: NDArray[np.int64]
    #: An insult with a new word in a new phrase.
    coined: NDArray[np.bool_]

    @property
    def label(self) -> NDArray[np.int8]:
        """(N,) 1 where more than half of the ideal crowd labels it toxic."""
        return (self.toxicity > 0.5).astype(np.int8)


def draw_latents(size: int, mixture: Mixture, rng: np.random.Generator) -> Latents:
    """Return the ground truth of `size` independent comments."""
    kind = rng.choice(len(KINDS), size, p=kind_shares(mixture.prevalence))
    emphasis = rng.choice(3, size, p=EMPHASIS_SHARE) - 1
    severity = np.array([k.severity for k in KINDS])[kind]
    spread = np.array([k.spread for k in KINDS])[kind]
    z = rng.normal(severity + np.array(EMPHASIS_SHIFT)[emphasis + 1], spread)
    return Latents(
        kind=kind,
        emphasis=emphasis,
        toxicity=expit(z),
        topic=_topics(size, mixture.new_topics, rng),
        language=rng.choice(len(LANGUAGE_SHARE), size, p=LANGUAGE_SHARE),
        mention=_mentions(kind, rng),
        coined=np.isin(kind, _INSULTS) & (rng.random(size) < mixture.coinages),
    )


def chosen(which: NDArray[np.bool_], those: Latents, others: Latents) -> Latents:
    """Return the ground truth of `those` comments where `which` (N,) is true, else of `others`."""
    pairs = {latent.name: (getattr(those, latent.name), getattr(others, latent.name))
             for latent in fields(Latents)}  # fmt: skip
    return Latents(**{name: np.where(which, *pair) for name, pair in pairs.items()})


def _topics(size: int, new_share: float, rng: np.random.Generator) -> NDArray[np.int64]:
    old = rng.integers(len(TOPICS), size=size)
    new = len(TOPICS) + rng.integers(len(NEW_TOPICS), size=size)
    return np.where(rng.random(size) < new_share, new, old)


def _mentions(kind: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    about = np.isin(kind, _GROUP_KINDS) | (rng.random(len(kind)) < _PASSING_MENTION)
    return np.where(about, rng.integers(len(GROUPS), size=len(kind)), -1)


def mentions(latents: Latents) -> list[list[str]]:
    """Return the groups that each comment mentions: none or one."""
    return [[GROUPS[g]] if g >= 0 else [] for g in latents.mention.tolist()]
