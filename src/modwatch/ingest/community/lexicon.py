"""The words of the synthetic community, all invented for it.

A language is a `Lexicon`: sentences with slots in braces, and the words that fill the slots. The
sentences are grouped by kind (`kinds.py`). Insults are mild on purpose, places and groups do not
exist, and any likeness to a real community would be a defect.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


def words(line: str) -> tuple[str, ...]:
    """Return the words of a line, which commas separate.

    >>> words("wet sock, teapot")
    ('wet sock', 'teapot')
    """
    return tuple(line.split(", "))


@dataclass(frozen=True, kw_only=True)
class Lexicon:
    """One language: what its comments are made of."""

    #: Code for the column `language`.
    language: str
    #: Sentences by kind, and `coined` for insults of a drift; a slot is a name in braces.
    sentences: Mapping[str, Sequence[str]]
    #: Harmless sentences about the topic, to surround the one that matters.
    fillers: Sequence[str]
    #: Openings and closings that make a comment milder or harsher, by −1, 0, +1.
    softeners: Sequence[str]
    sharpeners: Sequence[str]
    #: Words by slot.
    words: Mapping[str, Sequence[str]]
    #: Words by slot for each topic; slots `thing`, `place`, `deed`.
    topics: Mapping[str, Mapping[str, Sequence[str]]]
    #: Names of the groups of `GROUPS`, in their order.
    groups: Sequence[str]
    #: Openings that mention a group without judging it; slot `group`.
    belongings: Sequence[str] = field(default=())


#: Groups of the community: as identity mentions in comments, and as the groups people belong to.
GROUPS = ("northshore_residents", "hill_shepherds", "harbour_bakers", "lantern_keepers")

#: Topics talked about from the beginning, and those that only a drift brings.
TOPICS = ("allotments", "trams", "cakes", "lighthouse", "choir", "village_football")
NEW_TOPICS = ("kite_licences", "comet_night")

#: Insults that nobody had used before the drift.
COINAGES = words(
    "glimwick, snorbler, quaffle-brain, dribblefin, mungwort, plonkster, frimble, wuzzock, "
    "gribnort, tumblewit, splodgekin, narfler, blimpet, croggle, zibberhead, drumplet"
)
