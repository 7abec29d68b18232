"""What people decide by: a tree of codes, and the reasons for everything that is not a label.

A policy is data with a version. A decision keeps the version and the code, so that it can be read
years later by the rules of its day.
"""

import hashlib
import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, select
from sqlalchemy.dialects.postgresql import insert

from modwatch.errors import QueueError, SettingsError
from modwatch.review.policy.schema import Content, Entry, Texts, checked_content
from modwatch.review.tables import policy_version


@dataclass(frozen=True, kw_only=True)
class Node:
    """One code of a policy."""

    #: Stable and short; what decisions keep.
    code: str
    title: Texts
    #: One sentence: when to choose it.
    description: Texts
    #: 1 toxic, 0 not.
    label: int
    #: The character that chooses it, if any.
    key: str | None
    #: Category of the DSA statement of reasons; None where nothing is restricted.
    dsa_category: str | None
    #: What specifies the category, if anything.
    dsa_keyword: str | None
    #: The code above it, if any.
    parent: str | None
    #: The codes below it, in their order; empty for a leaf.
    children: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Policy:
    """One version of what people decide by."""

    version: str
    #: Every code, in the order of the file.
    nodes: tuple[Node, ...]
    #: For each action its reasons, in the order of the file.
    reasons: Mapping[str, Mapping[str, Texts]]
    #: All of it as JSON, as it is stored.
    content: Mapping[str, Any]

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON of the content, in hex."""
        canonical = json.dumps(
            self.content, sort_keys=True, separators=(",", ":"), ensure_ascii=False
        )
        return hashlib.sha256(canonical.encode()).hexdigest()

    def code(self, code: str) -> Node:
        """Return the node of `code`; raise `QueueError` when there is none."""
        for node in self.nodes:
            if node.code == code:
                return node
        raise QueueError(
            f"the policy {self.version} has no code {code[:60]!r}; choose one of its codes"
        )

    def roots(self, label: int) -> tuple[Node, ...]:
        """Return the uppermost nodes that fit `label`, in the order of the file."""
        return tuple(node for node in self.nodes if node.parent is None and node.label == label)


@cache
def load_policy(path: Path | None = None) -> Policy:
    """Return the policy in the file at `path`; without one, the policy that comes with Modwatch.

    Raises:
        SettingsError: the file is not there, is not TOML, or says what cannot be; the message
            names the node.
    """
    file = path or Path(__file__).with_name("policy.toml")
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as exc:
        raise SettingsError(
            f"MODWATCH_POLICY names {file}, which cannot be read as TOML "
            f"({type(exc).__name__}); mend the file or unset the variable"
        ) from None
    return _policy(content)


def check(policy: Policy, label: int, code: str | None, *, required: bool = False) -> None:
    """Raise `QueueError` unless `code` is one of `policy` and fits `label`.

    None passes unless a code is `required`.

    >>> check(load_policy(), 1, "hate.slur")
    """
    if code is None:
        if required:
            raise QueueError(f"a decision needs a code of the policy {policy.version}; choose one")
        return
    node = policy.code(code)
    if node.label != label:
        raise QueueError(
            f"the code {code} of the policy {policy.version} stands for the label {node.label}, "
            f"not {label}; choose another code or the other label"
        )


def check_reason(policy: Policy, action: str, reason: str | None) -> None:
    """Raise `QueueError` unless `reason` is one that `policy` lists for `action`.

    An action that has no list takes no reason.

    >>> check_reason(load_policy(), "skip", "language")
    """
    known = policy.reasons.get(action, {})
    if reason is None and not known:
        return
    if reason not in known:
        listed = f"give one of {', '.join(known)}" if known else "give none"
        raise QueueError(
            f"{str(reason)[:60]!r} is no reason to {action} in the policy {policy.version}; "
            f"{listed}"
        )


def dsa_category(policy: Policy, code: str) -> str | None:
    """Return the category of the DSA statement of reasons for `code`.

    None where nothing is restricted, so that no statement is due. Raises `QueueError` for a code
    that `policy` has not.

    >>> dsa_category(load_policy(), "self_harm.suicide")
    'STATEMENT_CATEGORY_SELF_HARM'
    """
    return policy.code(code).dsa_category


def register_policy(engine: Engine, policy: Policy) -> None:
    """Store `policy` under its version, once.

    Raises:
        SettingsError: the version is stored with another content.
    """
    row = {"version": policy.version, "digest": policy.digest, "content": policy.content}
    with engine.begin() as connection:
        connection.execute(insert(policy_version).values(row).on_conflict_do_nothing())
        stored = connection.scalar(
            select(policy_version.c.digest).where(policy_version.c.version == policy.version)
        )
    if stored != policy.digest:
        raise SettingsError(
            f"the policy {policy.version} was in use with another content; choose a new version "
            "in the file that MODWATCH_POLICY names"
        )


def _policy(content: Mapping[str, Any]) -> Policy:
    checked = checked_content(content)
    return Policy(
        version=checked.version,
        nodes=tuple(_node(entry, checked) for entry in checked.node),
        reasons={str(action): texts for action, texts in checked.reasons.items()},
        content=checked.model_dump(mode="json", exclude_none=True),
    )


def _node(entry: Entry, content: Content) -> Node:
    above = next((other for other in content.node if other.code == entry.parent), None)
    category, keyword = entry.dsa_category, entry.dsa_keyword
    if category is None and above is not None:
        category = above.dsa_category
    return Node(
        code=entry.code,
        title=entry.title,
        description=entry.description,
        label=entry.label,
        key=entry.key,
        dsa_category=category,
        dsa_keyword=keyword,
        parent=entry.parent,
        children=tuple(other.code for other in content.node if other.parent == entry.code),
    )
