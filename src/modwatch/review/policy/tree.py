"""The moderation policy: a tree of codes, and reasons for actions other than labels.

A policy is data with a version. Each decision stores the version and the code, so that it can still
be interpreted years later.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, select
from sqlalchemy.dialects.postgresql import insert

from modwatch.common.errors import QueueError, SettingsError
from modwatch.review.digests import json_digest
from modwatch.review.events import record_event
from modwatch.review.policy.schema import NodeSchema, Texts, validated
from modwatch.review.tables import policy_version


@dataclass(frozen=True, kw_only=True)
class Policy:
    """One version of the policy."""

    version: str
    #: Every code, in the order of the file, with the category that it inherits.
    nodes: tuple[NodeSchema, ...]
    #: Reasons by action, in the order of the file.
    reasons: Mapping[str, Mapping[str, Texts]]
    #: The whole policy as JSON, as it is stored.
    content: Mapping[str, Any]

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON of the content, in hex."""
        return json_digest(self.content)

    def code(self, code: str) -> NodeSchema:
        """Return the node of `code`; raise `QueueError` for an unknown code."""
        for node in self.nodes:
            if node.code == code:
                return node
        raise QueueError(
            f"the policy {self.version} has no code {code[:60]!r}; choose one of its codes"
        )


@cache
def load_policy(path: Path | None = None) -> Policy:
    """Return the policy in the file at `path`, or the one that comes with Modwatch if None.

    Raises:
        SettingsError: the file does not exist, is not TOML, or is invalid; the message names the
            node.
    """
    file = path or Path(__file__).with_name("policy.toml")
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as exc:
        raise SettingsError(
            f"MODWATCH_POLICY names {file}, which cannot be read as TOML "
            f"({type(exc).__name__}); correct the file or unset the variable"
        ) from None
    return _policy(content)


def check(policy: Policy, label: int, code: str | None, *, required: bool = False) -> None:
    """Raise `QueueError` unless `code` is one of `policy` for `label`.

    None is valid unless a code is `required`.

    >>> check(load_policy(), 1, "hate.slur")
    """
    if code is None:
        if required:
            raise QueueError(
                f"a decision requires a code of the policy {policy.version}; choose one"
            )
        return
    node = policy.code(code)
    if node.label != label:
        raise QueueError(
            f"the code {code} of the policy {policy.version} is for the label {node.label}, not "
            f"{label}; choose another code or the other label"
        )


def check_reason(policy: Policy, action: str, reason: str | None) -> None:
    """Raise `QueueError` unless `reason` is one that `policy` lists for `action`.

    An action without a list must have no reason.

    >>> check_reason(load_policy(), "skip", "language")
    """
    known = policy.reasons.get(action, {})
    if reason is None and not known:
        return
    if reason not in known:
        remedy = f"choose from {', '.join(known)}" if known else "leave it out"
        raise QueueError(
            f"{str(reason)[:60]!r} is not a reason to {action} in the policy {policy.version}; "
            f"{remedy}"
        )


def register_policy(engine: Engine, policy: Policy) -> None:
    """Store `policy` under its version, if it is not stored yet.

    Raises:
        SettingsError: the version is stored with different content.
    """
    row = {"version": policy.version, "digest": policy.digest, "content": policy.content}
    with engine.begin() as connection:
        new = connection.execute(insert(policy_version).values(row).on_conflict_do_nothing())
        stored = connection.scalar(
            select(policy_version.c.digest).where(policy_version.c.version == policy.version)
        )
        if new.rowcount:
            record_event(
                connection,
                "register_policy",
                actor_id=None,
                version=policy.version,
                digest=policy.digest,
            )
    if stored != policy.digest:
        raise SettingsError(
            f"the policy {policy.version} was in use with different content; choose a new version "
            "in the file that MODWATCH_POLICY names"
        )


def _policy(content: Mapping[str, Any]) -> Policy:
    file = validated(content)
    categories = {node.code: node.dsa_category for node in file.node}
    return Policy(
        version=file.version,
        nodes=tuple(_with_category(node, categories.get(node.parent or "")) for node in file.node),
        reasons={str(action): texts for action, texts in file.reasons.items()},
        content=file.model_dump(mode="json", exclude_none=True),
    )


def _with_category(node: NodeSchema, inherited: str | None) -> NodeSchema:
    return node.model_copy(update={"dsa_category": node.dsa_category or inherited})
