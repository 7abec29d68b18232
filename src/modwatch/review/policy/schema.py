"""The schema of a policy file: its fields, and the rules that it must follow."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from modwatch.common.errors import SettingsError
from modwatch.review.policy.dsa import CATEGORIES

#: Actions that require a reason.
Action = Literal["skip", "escalate", "correct", "close"]

_Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)?$", max_length=60)]
_Sentence = Annotated[str, Field(min_length=1, max_length=300)]


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=True)


class Texts(_Data):
    """A text in every language of the console."""

    en: _Sentence
    de: _Sentence

    def of(self, locale: str) -> str:
        """Return the text in `locale`, or in English for an unknown locale.

        >>> Texts(en="Insult", de="Beleidigung").of("de")
        'Beleidigung'
        """
        return self.de if locale.split("-")[0].split("_")[0] == "de" else self.en


class NodeSchema(_Data):
    """One code in the file."""

    #: Stable and short; stored with decisions.
    code: _Name
    #: The code above it, if any.
    parent: _Name | None = None
    title: Texts
    #: One sentence about when to choose it.
    description: Texts
    #: 1 toxic, 0 not.
    label: Literal[0, 1]
    #: Keyboard shortcut.
    key: Annotated[str, Field(pattern=r"^[a-z0-9]$")] | None = None
    #: Category of the DSA statement of reasons; None if no statement is due.
    dsa_category: str | None = None
    #: Keyword that specifies the category.
    dsa_keyword: str | None = None


class PolicySchema(_Data):
    """A whole policy file."""

    version: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=40)]
    node: Annotated[tuple[NodeSchema, ...], Field(min_length=2)]
    reasons: dict[Action, dict[_Name, Texts]]

    @model_validator(mode="after")
    def _check(self) -> Self:
        _check_unique("code", [node.code for node in self.node])
        _check_unique("key", [node.key for node in self.node if node.key])
        nodes = {node.code: node for node in self.node}
        for node in self.node:
            _check_parent(node, nodes)
            _check_category(node, nodes)
        for action in get_args(Action):
            if not self.reasons.get(action):
                raise ValueError(f"reasons.{action} is empty")
        return self


def validated(content: Mapping[str, Any]) -> PolicySchema:
    """Return the validated `content` of a file; raise `SettingsError` naming the invalid node."""
    try:
        return PolicySchema.model_validate(content)
    except ValidationError as exc:
        error = exc.errors()[0]
        problem = error["msg"].removeprefix("Value error, ")
        raise SettingsError(
            f"invalid policy{_where(content, error['loc'])}: {problem}; correct the file that "
            "MODWATCH_POLICY names"
        ) from None


def _where(content: Mapping[str, Any], location: tuple[int | str, ...]) -> str:
    """Return the location of an error in `content`; a node by its code."""
    match location:
        case ("node", int(number), *rest):
            node = content["node"][number]
            code = node.get("code") if isinstance(node, Mapping) else None
            name = code if isinstance(code, str) else f"number {number + 1}"
            return f", node {name}" + "".join(f".{part}" for part in rest)
        case ():
            return ""
        case _:
            return ", " + ".".join(str(part) for part in location)


def _check_unique(what: str, names: Iterable[str]) -> None:
    for name, times in Counter(names).items():
        if times > 1:
            raise ValueError(f"{times} nodes have the {what} {name}")


def _check_parent(node: NodeSchema, nodes: Mapping[str, NodeSchema]) -> None:
    if node.parent is None:
        return
    parent = nodes.get(node.parent)
    if parent is None:
        raise ValueError(f"the node {node.code} has the unknown parent {node.parent}")
    if node.code in _ancestors(node, nodes):
        raise ValueError(f"the node {node.code} is its own ancestor")
    if parent.parent is not None:
        raise ValueError(f"the node {node.code} is on a third level, but there may be only two")
    if parent.label != node.label:
        raise ValueError(f"the node {node.code} has another label than its parent {parent.code}")


def _ancestors(node: NodeSchema, nodes: Mapping[str, NodeSchema]) -> list[str]:
    """Return the codes above `node`, each once, the nearest first."""
    codes: list[str] = []
    while (parent := node.parent) in nodes and parent is not None and parent not in codes:
        codes.append(parent)
        node = nodes[parent]
    return codes


def _check_category(node: NodeSchema, nodes: Mapping[str, NodeSchema]) -> None:
    parent = nodes.get(node.parent or "")
    category = node.dsa_category or (parent.dsa_category if parent else None)
    if category is None and node.label == 1:
        raise ValueError(f"the node {node.code} lacks a DSA category")
    if category is not None and node.label == 0:
        raise ValueError(f"the node {node.code} has a DSA category although it is not toxic")
    if category is not None and category not in CATEGORIES:
        raise ValueError(f"the node {node.code} has the unknown DSA category {category}")
    keyword = node.dsa_keyword
    if keyword is not None and keyword not in CATEGORIES.get(category or "", ()):
        raise ValueError(
            f"the node {node.code} has the DSA keyword {keyword}, which {category} does not have"
        )
