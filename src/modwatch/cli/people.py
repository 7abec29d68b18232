"""`modwatch console`, `token` and `person`: the console, its accounts and access tokens."""

import datetime
import getpass
import sys
from typing import TYPE_CHECKING

import click

from modwatch.cli.arguments import Group, number_between, options, with_resources
from modwatch.common.errors import QueueError
from modwatch.common.signals import signals_held
from modwatch.installation import open_resources

if TYPE_CHECKING:
    from modwatch.installation.resources import Resources

_TEN_YEARS = 3653

_pseudonym = click.argument("pseudonym")


@click.command()
@options(
    host=(str, "Default: that of MODWATCH_CONSOLE_URL."),
    port=(int, "Default: that of MODWATCH_CONSOLE_URL."),
)
def console(host: str | None, port: int | None) -> None:
    """Serve the review console."""
    from modwatch.installation.console import serve

    with signals_held() as came, open_resources() as resources:
        serve(resources, host=host, port=port, came=came)


@click.command()
@_pseudonym
@click.option("--scope", multiple=True, help="Scope, may be repeated; default: all of the role.")
@options(
    role=(str, "Role of a new account; default: moderator."),
    name=(str, "Name of the token."),
    days=(number_between(0, _TEN_YEARS), "Lifetime; default: until it is revoked."),
)
@with_resources
def token(
    resources: "Resources",
    *,
    pseudonym: str,
    role: str | None,
    name: str | None,
    scope: tuple[str, ...],
    days: float | None,
) -> None:
    """Print an access token for the console, creating the account if necessary."""
    from modwatch.review.people.access_tokens import issue_token
    from modwatch.review.people.accounts import create_moderator, find_moderator

    engine = resources.database
    try:
        person = find_moderator(engine, pseudonym)
    except QueueError:
        person = create_moderator(engine, pseudonym, role or "moderator")
    if role not in (None, person.role):
        raise QueueError(f"{person.pseudonym} is a {person.role}; an admin changes roles")
    lifetime = None if days is None else datetime.timedelta(days=days)
    print(issue_token(engine, person.id, lifetime=lifetime, name=name, scopes=scope or None))


@click.group(cls=Group)
def person() -> None:
    """Create accounts of the console; admins manage them on its pages."""


@person.command("list")
@with_resources
def list_(resources: "Resources") -> None:
    """List the accounts with their roles and queues."""
    from modwatch.review.people.accounts import people

    for account in people(resources.database):
        state = "disabled" if account.disabled_at else "active"
        queues = ", ".join(sorted(account.queues)) if account.queues else "all queues"
        print(f"{account.pseudonym:<24} {account.role:<10} {state:<9} {queues}")


@person.command()
@_pseudonym
@click.option("--role", default="moderator")
@with_resources
def add(resources: "Resources", *, pseudonym: str, role: str) -> None:
    """Create an account."""
    from modwatch.review.people.accounts import create_moderator

    made = create_moderator(resources.database, pseudonym, role)
    print(f"{made.pseudonym} is a {made.role}; set a password or issue a token next")


@person.command()
@_pseudonym
@with_resources
def password(resources: "Resources", *, pseudonym: str) -> None:
    """Set a password, from a prompt or from standard input."""
    from modwatch.review.people.accounts import find_moderator
    from modwatch.review.people.passwords import set_password

    found = find_moderator(resources.database, pseudonym)
    prompted = sys.stdin.isatty()
    secret = getpass.getpass("New password: ") if prompted else sys.stdin.readline().rstrip("\n")
    if prompted and getpass.getpass("Repeat: ") != secret:
        raise QueueError("the passwords do not match; try again")
    set_password(resources.database, found.id, secret)
    print(f"{found.pseudonym} has a new password; all sessions and tokens have ended")


@person.command()
@_pseudonym
@with_resources
def reset_factor(resources: "Resources", *, pseudonym: str) -> None:
    """Remove the second factor of an account whose device is lost."""
    from modwatch.review.people import second_factor
    from modwatch.review.people.accounts import find_moderator

    second_factor.reset(resources.database, find_moderator(resources.database, pseudonym).id)
