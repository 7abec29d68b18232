"""Scopes: the permissions of roles and tokens."""

from collections.abc import Iterable, Mapping

from modwatch.errors import QueueError

#: Scopes of each role. A token may have fewer, never more.
ROLE_SCOPES: Mapping[str, frozenset[str]] = {
    "moderator": frozenset({"review", "queue:read"}),
    "lead": frozenset({"review", "lead", "queue:read", "decisions:read"}),
    "auditor": frozenset({"audit", "decisions:read", "queue:read"}),
    "ops": frozenset({"queue:read", "metrics:read", "deliveries", "decisions:read"}),
    "admin": frozenset({"admin", "deliveries", "queue:read", "metrics:read", "decisions:read"}),
}

SCOPES = frozenset().union(*ROLE_SCOPES.values())


def cut(role: str, scopes: Iterable[str] | None) -> frozenset[str]:
    """Return those of `scopes` that `role` has; None: all of the role.

    >>> sorted(cut("moderator", ["review", "admin"]))
    ['review']
    >>> sorted(cut("moderator", None))
    ['queue:read', 'review']
    """
    allowed = ROLE_SCOPES.get(role, frozenset())
    return allowed if scopes is None else allowed & frozenset(scopes)


def usable(role: str, scopes: Iterable[str] | None) -> list[str] | None:
    """Return the scopes to store with a new token of a person of `role`; None: all of the role.

    Raises `QueueError` for an unknown scope, or if the role has none of `scopes`.
    """
    if scopes is None:
        return None
    asked = frozenset(scopes)
    if unknown := sorted(asked - SCOPES):
        raise QueueError(f"unknown scope {unknown[0]!r}; choose from {', '.join(sorted(SCOPES))}")
    if not (left := cut(role, asked)):
        raise QueueError(
            f"the role {role} has none of these scopes; choose from "
            f"{', '.join(sorted(cut(role, None)))}"
        )
    return sorted(left)
