"""The vocabulary of the synthetic community, invented for this project.

A `Lexicon` is a language: sentences with slots in braces, by kind of comment, and the words that
fill the slots; the kinds are in `ground_truth.KINDS`. Insults are mild on purpose, and places and
groups are fictional.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


def words(line: str) -> tuple[str, ...]:
    """Return the comma-separated words of a line.

    >>> words("wet sock, teapot")
    ('wet sock', 'teapot')
    """
    return tuple(line.split(", "))


@dataclass(frozen=True, kw_only=True)
class Lexicon:
    """The sentences and words of one language."""

    #: Code in the column `language`.
    language: str
    #: Sentences by kind, and `coined` for insults during a drift; slots are names in braces.
    sentences: Mapping[str, Sequence[str]]
    #: Harmless sentences about the topic, placed around the sentence of the kind.
    fillers: Sequence[str]
    #: Openings for the emphasis −1 and +1.
    softeners: Sequence[str]
    sharpeners: Sequence[str]
    #: Words by slot.
    words: Mapping[str, Sequence[str]]
    #: Words by slot for each topic; slots `thing`, `place`, `deed`.
    topics: Mapping[str, Mapping[str, Sequence[str]]]
    #: Names of the groups of `GROUPS`, in their order.
    groups: Sequence[str]
    #: Neutral openings that mention a group; slot `group`.
    belongings: Sequence[str] = field(default=())


#: Groups that comments mention and people belong to.
GROUPS = ("northshore_residents", "hill_shepherds", "harbour_bakers", "lantern_keepers")

#: Topics from the first day on, and topics of a drift.
TOPICS = ("allotments", "trams", "cakes", "lighthouse", "choir", "village_football")
NEW_TOPICS = ("kite_licences", "comet_night")

#: Insults that are new in a drift.
COINAGES = words(
    "glimwick, snorbler, quaffle-brain, dribblefin, mungwort, plonkster, frimble, wuzzock, "
    "gribnort, tumblewit, splodgekin, narfler, blimpet, croggle, zibberhead, drumplet"
)
