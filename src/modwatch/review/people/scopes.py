"""What a role may do, and what a token may do of it."""

from collections.abc import Iterable, Mapping

from modwatch.errors import QueueError

#: What each role may. A token may less, never more.
ROLE_SCOPES: Mapping[str, frozenset[str]] = {
    "moderator": frozenset({"review", "queue:read"}),
    "lead": frozenset({"review", "lead", "queue:read", "decisions:read"}),
    "auditor": frozenset({"audit", "decisions:read", "queue:read"}),
    "ops": frozenset({"queue:read", "metrics:read", "deliveries", "decisions:read"}),
    "admin": frozenset({"admin", "deliveries", "queue:read", "metrics:read", "decisions:read"}),
}

SCOPES = frozenset().union(*ROLE_SCOPES.values())


def cut(role: str, scopes: Iterable[str] | None) -> frozenset[str]:
    """Return those of `scopes` that `role` may use; None asks for all of them.

    >>> sorted(cut("moderator", ["review", "admin"]))
    ['review']
    >>> sorted(cut("moderator", None))
    ['queue:read', 'review']
    """
    allowed = ROLE_SCOPES.get(role, frozenset())
    return allowed if scopes is None else allowed & frozenset(scopes)


def usable(role: str, scopes: Iterable[str] | None) -> list[str] | None:
    """Return what is stored with a new token of a person of `role`; None means all, always.

    Raises `QueueError` for an unknown scope, or when nothing of the role is left.
    """
    if scopes is None:
        return None
    asked = frozenset(scopes)
    if unknown := sorted(asked - SCOPES):
        raise QueueError(f"unknown scope {unknown[0]!r}; choose among {', '.join(sorted(SCOPES))}")
    if not (left := cut(role, asked)):
        raise QueueError(
            f"a token of the role {role} could do nothing; choose among "
            f"{', '.join(sorted(cut(role, None)))}"
        )
    return sorted(left)
