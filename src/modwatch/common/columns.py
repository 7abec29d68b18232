"""The columns of a comment: ours, and those that a platform adds by MODWATCH_COLUMNS.

A column is declared here once. The tables of the lake, the mapping of sources, validation,
profiles, groups of comments, the queue, exports and erasure derive from the declaration.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

#: What a column of a platform may hold. Times are UTC.
OWN_TYPES = ("text", "number", "integer", "boolean", "time")


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column of a comment."""

    name: str
    #: One of `OWN_TYPES`, or of ours alone: id (an exact text) | word | names | vote.
    type: str = "text"
    #: A comment may lack it, and a value that cannot be read is missing.
    optional: bool = True
    #: Comments are compared by its values, which must be few; of `names`, by the identities.
    groups_by: bool = False
    #: Moderators see it.
    shown_in_queue: bool = False
    #: It goes when the comment is erased.
    erasable: bool = False
    #: Only leads see it, on escalations and pages of items that they will not label.
    hidden_when_blind: bool = False
    #: The share of comments without it is compared with that of other days.
    profiled: bool = True

    def __str__(self) -> str:
        return " ".join([f"{self.name}: {self.type}", *(f for f in _FLAGS if getattr(self, f))])

    @property
    def is_compared(self) -> bool:
        """Whether people who label see its value, and may see another of a gold item.

        So only comments with the same value stand in for each other. Others may differ in it, as
        texts do, but not in whether they have it.
        """
        return self.groups_by and not (self.erasable or self.hidden_when_blind)


#: Ours, in the order of the tables.
COLUMNS = (
    Column(name="comment_id", type="id", optional=False),
    Column(name="text", optional=False, shown_in_queue=True, erasable=True),
    Column(name="platform", groups_by=True, shown_in_queue=True),
    Column(name="thread_id", type="id"),
    Column(name="parent_text", shown_in_queue=True, erasable=True),
    Column(name="language", groups_by=True, shown_in_queue=True),
    Column(name="author_id", type="id", erasable=True),
    Column(name="groups", type="names", groups_by=True),
    Column(name="label", type="vote", profiled=False),
    Column(name="views", type="number", profiled=False),
    Column(name="decision", type="word", profiled=False),
    Column(name="decided_by", type="word", profiled=False),
    Column(name="decided_at", type="time", profiled=False),
)

#: Those that a comment may lack.
OPTIONAL = tuple(column.name for column in COLUMNS if column.optional)

#: Those that moderators see at a place of their own on each page.
PLACED = ("text", "parent_text", "platform", "language")

#: What Modwatch itself calls columns, features of a day, and parts of what moderators see.
RESERVED = frozenset(
    """
    category comments count created_at cut detected_language dt faults feature flagged hidden
    id identity kind length metric model_variance model_version mutual_information n n_before
    origin others prob prob_square problem quarantined queue role row rows rule salt script
    source square square_before stage text_length thread total total_before uncertainty
    """.split()  # noqa: SIM905 - a list of fifty is a page
)

_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_FLAGS = ("groups_by", "shown_in_queue", "erasable", "hidden_when_blind")


def grouped(own: Iterable[Column] = ()) -> tuple[str, ...]:
    """Return the columns by whose values comments are compared, ours first.

    >>> grouped([Column(name="own_topic", groups_by=True)])[-1]
    'own_topic'
    """
    every = (*COLUMNS, *own)
    return tuple(column.name for column in every if column.groups_by and column.type != "names")


def profiled(own: Iterable[Column] = ()) -> tuple[str, ...]:
    """Return the columns whose share of missing values is known of each day.

    >>> "author_id" in profiled(), "label" in profiled()
    (True, False)
    """
    return tuple(c.name for c in (*COLUMNS, *own) if c.optional and c.profiled)


def shown(own: Iterable[Column] = ()) -> tuple[Column, ...]:
    """Return the columns that moderators see besides the texts.

    >>> [column.name for column in shown()][:2]
    ['platform', 'language']
    """
    return tuple(c for c in (*COLUMNS, *own) if c.shown_in_queue and c.name not in PLACED[:2])


def own_columns(given: object) -> tuple[Column, ...]:
    """Return the columns of a platform from a map, or from its JSON text.

    >>> own_columns('{"own_topic": {"type": "text", "groups_by": true}}')[0].groups_by
    True

    Raises:
        ValueError: one of them cannot be a column; the message names it and the remedy.
    """
    if isinstance(given, tuple):  # as they were returned before
        return given
    try:
        found = json.loads(given, object_pairs_hook=_once) if isinstance(given, str) else given
    except (json.JSONDecodeError, RecursionError):
        found = None
    if isinstance(found, Mapping):
        return tuple(_own(*pair) for pair in found.items())
    raise ValueError('MODWATCH_COLUMNS is no JSON map; use {"channel": {"type": "text"}}')


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    names = [name for name, _ in pairs]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"MODWATCH_COLUMNS names {', '.join(sorted(twice))} twice; name it once")
    return dict(pairs)


def _own(name: str, given: object) -> Column:
    facts = given if isinstance(given, Mapping) else {}
    kind, more = str(facts.get("type")), sorted({*facts} - {"type", *_FLAGS})
    column = Column(name=name, type=kind, **{flag: facts.get(flag) is True for flag in _FLAGS})
    other = "choose another name, and map it by MODWATCH_SOURCE__COLUMNS"
    shows = column.shown_in_queue and not column.hidden_when_blind
    faults = {
        "has no plain name; write up to 40 of a-z, 0-9 and _, a letter first": (
            not _NAME.fullmatch(name)
        ),
        f"is one of Modwatch's; {other}": name in {ours.name for ours in COLUMNS},
        f"is named like one that Modwatch adds to its tables; {other}": (
            name in RESERVED or name.startswith("reference_")
        ),
        'is no JSON map; write one such as {"type": "text"}': not isinstance(given, Mapping),
        f"has the type {kind!r}; choose one of {', '.join(OWN_TYPES)}": kind not in OWN_TYPES,
        f"has {', '.join(more)}; it may have type, {', '.join(_FLAGS)}": more,
        "has a fact that is neither true nor false; write one of them": any(
            not isinstance(facts[flag], bool) for flag in _FLAGS if flag in facts
        ),
        "has too many values to group by; leave out groups_by": (
            column.groups_by and kind in ("number", "time")
        ),
        "is hidden_when_blind and never shown; set shown_in_queue, too": (
            column.hidden_when_blind and not column.shown_in_queue
        ),
        "is a time, which would tell retests; set hidden_when_blind": kind == "time" and shows,
    }
    for fault, is_so in faults.items():
        if is_so:
            raise ValueError(f"MODWATCH_COLUMNS: the column {name!r} {fault}")
    return column
