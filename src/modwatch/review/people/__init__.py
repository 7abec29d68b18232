"""The people who work the queue: accounts, roles, authentication.

Read `accounts` first, then `changes`, `access_tokens`, `sessions`, `passwords` with `throttle`, and
`oidc`. `pseudonyms` are people's names; `review.events` records who changed what.
"""

from modwatch.review.people.access_tokens import (
    Token,
    issue_token,
    revoke_token,
    revoke_token_by_id,
    tokens,
)
from modwatch.review.people.accounts import (
    ROLE_SCOPES,
    Account,
    Moderator,
    create_moderator,
    find_moderator,
    people,
)
from modwatch.review.people.changes import (
    change_role,
    describe_group,
    disable,
    enable,
    save_preferences,
    set_queues,
)
from modwatch.review.people.oidc import OidcOptions, Provider
from modwatch.review.people.passwords import (
    LONGEST_PASSWORD,
    SHORTEST_PASSWORD,
    change_password,
    check_password,
    log_in,
    set_password,
)
from modwatch.review.people.pseudonyms import LONGEST_PSEUDONYM
from modwatch.review.people.sessions import authenticate, open_session, rotate_session, session_seed
from modwatch.review.people.throttle import KNOWN, new_device

#: Roles that may decide items.
REVIEWERS = frozenset(role for role, scopes in ROLE_SCOPES.items() if "review" in scopes)

__all__ = [
    "KNOWN",
    "LONGEST_PASSWORD",
    "LONGEST_PSEUDONYM",
    "REVIEWERS",
    "ROLE_SCOPES",
    "SHORTEST_PASSWORD",
    "Account",
    "Moderator",
    "OidcOptions",
    "Provider",
    "Token",
    "authenticate",
    "change_password",
    "change_role",
    "check_password",
    "create_moderator",
    "describe_group",
    "disable",
    "enable",
    "find_moderator",
    "issue_token",
    "log_in",
    "new_device",
    "open_session",
    "people",
    "revoke_token",
    "revoke_token_by_id",
    "rotate_session",
    "save_preferences",
    "session_seed",
    "set_password",
    "set_queues",
    "tokens",
]
