"""What a policy may say: its content as data, and every rule that it must keep."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from modwatch.errors import SettingsError
from modwatch.review.policy.dsa import CATEGORIES

#: What a person gives a reason for, besides labels.
Action = Literal["skip", "escalate", "correct", "close"]

_Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)?$", max_length=60)]
_Sentence = Annotated[str, Field(min_length=1, max_length=300)]


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=True)


class Texts(_Data):
    """One text in every language of the console."""

    en: _Sentence
    de: _Sentence

    def of(self, locale: str) -> str:
        """Return the text in `locale`, in English where it is not known.

        >>> Texts(en="Insult", de="Beleidigung").of("de")
        'Beleidigung'
        """
        return self.de if locale.split("-")[0].split("_")[0] == "de" else self.en


class Entry(_Data):
    """One code, as the file says it."""

    code: _Name
    parent: _Name | None = None
    title: Texts
    description: Texts
    label: Literal[0, 1]
    key: Annotated[str, Field(pattern=r"^[a-z0-9]$")] | None = None
    dsa_category: str | None = None
    dsa_keyword: str | None = None


class Content(_Data):
    """A whole policy, as the file says it."""

    version: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=40)]
    node: Annotated[tuple[Entry, ...], Field(min_length=2)]
    reasons: dict[Action, dict[_Name, Texts]]

    @model_validator(mode="after")
    def _fits(self) -> Self:
        _refuse_twice("code", [entry.code for entry in self.node])
        _refuse_twice("key", [entry.key for entry in self.node if entry.key])
        entries = {entry.code: entry for entry in self.node}
        for entry in self.node:
            _check_place(entry, entries)
            _check_category(entry, entries)
        for action in get_args(Action):
            if not self.reasons.get(action):
                raise ValueError(f"reasons.{action} lists none")
        return self


def checked_content(content: Mapping[str, Any]) -> Content:
    """Return `content`, checked; raise `SettingsError`, which names the node, when it cannot be."""
    try:
        return Content.model_validate(content)
    except ValidationError as exc:
        error = exc.errors()[0]
        says = error["msg"].removeprefix("Value error, ")
        raise SettingsError(
            f"the policy says what cannot be{_where(content, error['loc'])}: {says}; mend the file "
            "that MODWATCH_POLICY names"
        ) from None


def _where(content: Mapping[str, Any], location: tuple[int | str, ...]) -> str:
    """Return which place of `content` an error means; a node by its code."""
    match location:
        case ("node", int(number), *rest):
            entry = content["node"][number]
            code = entry.get("code") if isinstance(entry, Mapping) else None
            name = code if isinstance(code, str) else f"number {number + 1}"
            return f" of the node {name}" + "".join(f".{part}" for part in rest)
        case ():
            return ""
        case _:
            return " of " + ".".join(str(part) for part in location)


def _refuse_twice(what: str, names: Iterable[str]) -> None:
    for name, times in Counter(names).items():
        if times > 1:
            raise ValueError(f"the {what} {name} stands on {times} nodes")


def _check_place(entry: Entry, entries: Mapping[str, Entry]) -> None:
    if entry.parent is None:
        return
    above = entries.get(entry.parent)
    if above is None:
        raise ValueError(f"the node {entry.code} has the unknown parent {entry.parent}")
    if entry.code in _line(entry, entries):
        raise ValueError(f"the node {entry.code} stands above itself")
    if above.parent is not None:
        raise ValueError(f"the node {entry.code} stands on a third level; there are two")
    if above.label != entry.label:
        raise ValueError(f"the node {entry.code} has another label than its parent {above.code}")


def _line(entry: Entry, entries: Mapping[str, Entry]) -> list[str]:
    """Return the codes above `entry`, each once, the nearest first."""
    line: list[str] = []
    while (parent := entry.parent) in entries and parent is not None and parent not in line:
        line.append(parent)
        entry = entries[parent]
    return line


def _check_category(entry: Entry, entries: Mapping[str, Entry]) -> None:
    above = entries.get(entry.parent or "")
    category = entry.dsa_category or (above.dsa_category if above else None)
    if category is None and entry.label == 1:
        raise ValueError(f"the node {entry.code} lacks a DSA category")
    if category is not None and entry.label == 0:
        raise ValueError(f"the node {entry.code} restricts nothing and has a DSA category")
    if category is not None and category not in CATEGORIES:
        raise ValueError(f"the node {entry.code} has the unknown DSA category {category}")
    keyword = entry.dsa_keyword
    if keyword is not None and keyword not in CATEGORIES.get(category or "", ()):
        raise ValueError(
            f"the node {entry.code} has the DSA keyword {keyword}, which {category} has not"
        )
