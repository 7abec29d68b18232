"""Texts of synthetic comments: a sentence of the kind among harmless sentences on the topic."""

from collections.abc import Sequence

import numpy as np

from modwatch_lab.community.english import ENGLISH
from modwatch_lab.community.german import GERMAN
from modwatch_lab.community.ground_truth import KINDS, Latents
from modwatch_lab.community.lexicon import COINAGES, NEW_TOPICS, TOPICS, Lexicon

LEXICONS = (ENGLISH, GERMAN)

#: Number of harmless sentences in a comment; drawn uniformly.
_FILLERS = (0,) * 30 + (1,) * 26 + (2,) * 18 + (3,) * 11 + (4,) * 7 + (5,) * 4 + (7, 9, 12, 16)

_LETTERS = {"a": "4", "e": "3", "i": "1", "o": "0", "s": "$", "l": "1", "t": "7"}
_ALL_TOPICS = TOPICS + NEW_TOPICS
_SMILES = ("🙂", "🎉", "☕", "🌧️", "🌱")


def write(latents: Latents, rng: np.random.Generator) -> list[str]:
    """Return one text per comment of `latents`."""
    draws = _Draws(rng)
    rows = zip(
        latents.kind.tolist(),
        latents.emphasis.tolist(),
        latents.topic.tolist(),
        latents.language.tolist(),
        latents.mention.tolist(),
        latents.coined.tolist(),
        strict=True,
    )
    return [_comment(draws, *row) for row in rows]


class _Draws:
    """Uniform integers drawn in bulk: one call of numpy per word would take most of the time."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._ready: list[int] = []

    def below(self, n: int) -> int:
        if not self._ready:
            self._ready = self._rng.integers(1 << 40, size=20_000).tolist()
        return self._ready.pop() % n

    def pick(self, words: Sequence[str]) -> str:
        return words[self.below(len(words))]


class _Slots:
    """Fills the slots of a sentence, with a new draw for each."""

    def __init__(
        self, draws: _Draws, lexicon: Lexicon, topic: str, group: str, *, coined: bool
    ) -> None:
        self._draws = draws
        self._topic = lexicon.topics[topic]
        self._words = lexicon.words
        self._group = group
        self._coined = coined

    def __getitem__(self, slot: str) -> str:
        if slot == "group":
            return self._group
        if slot == "disguised":
            return _disguise(self["insult"], self._draws)
        if slot == "insult" and self._coined:
            return self._draws.pick(COINAGES)
        return self._draws.pick(self._topic.get(slot) or self._words[slot])


def _comment(
    draws: _Draws, kind: int, emphasis: int, topic: int, language: int, mention: int, coined: bool
) -> str:
    lexicon = LEXICONS[language]
    group = lexicon.groups[mention] if mention >= 0 else ""
    slots = _Slots(draws, lexicon, _ALL_TOPICS[topic], group, coined=coined)
    core = draws.pick(lexicon.sentences["coined" if coined else KINDS[kind].name])
    if group and "{group}" not in core:
        core = f"{draws.pick(lexicon.belongings)} {core}"
    if emphasis:
        core = f"{draws.pick(lexicon.softeners if emphasis < 0 else lexicon.sharpeners)} {core}"
    sentences = [draws.pick(lexicon.fillers) for _ in range(_FILLERS[draws.below(len(_FILLERS))])]
    sentences.insert(draws.below(len(sentences) + 1), core)
    return _style(draws, [sentence.format_map(slots) for sentence in sentences])


def _style(draws: _Draws, sentences: list[str]) -> str:
    """Return sentences as people type them: in lower case, with exclamation marks or an emoji."""
    manner = draws.below(100)
    if manner < 12:
        return " ".join(sentences).lower()
    ends = [draws.pick(("!", "!!", "!!!")) if manner > 92 else "." for _ in sentences]
    pairs = zip(sentences, ends, strict=True)
    text = " ".join(s[:1].upper() + s[1:] + end for s, end in pairs)
    return f"{text} {draws.pick(_SMILES)}" if manner < 20 else text


def _disguise(word: str, draws: _Draws) -> str:
    """Return `word` with a random spelling that evades filters."""
    way, at = draws.below(4), 1 + draws.below(max(len(word) - 2, 1))
    if way == 0:
        return "".join(_LETTERS.get(c, c) if draws.below(3) else c for c in word)
    if way == 1:
        return word[:at] + "*" + word[at + 1 :]
    if way == 2:
        return draws.pick((".", "-", " ")).join(word)
    return word[:at] + word[at] * (2 + draws.below(3)) + word[at:]
