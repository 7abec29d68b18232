"""`modwatch person …` and `modwatch token`: accounts, roles, passwords and access tokens."""

import argparse
import datetime
import getpass
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from modwatch.cli.arguments import add_command, number_between, open_resources
from modwatch.common.errors import QueueError

if TYPE_CHECKING:
    from sqlalchemy import Engine

_TEN_YEARS = 3653


def add_commands(commands: Any) -> None:
    """Add every command of `modwatch person` to its parser's `commands`."""

    def command(
        name: str, call: Callable[["Engine", argparse.Namespace], None], text: str
    ) -> argparse.ArgumentParser:
        parser = add_command(commands, name, _on_database, text)
        parser.set_defaults(on_database=call)
        return parser

    def of_person(
        name: str, call: Callable[["Engine", argparse.Namespace], None], text: str
    ) -> argparse.ArgumentParser:
        parser = command(name, call, text)
        parser.add_argument("pseudonym")
        return parser

    command("list", _list, "list the accounts with their roles")
    of_person("add", _add, "create an account").add_argument("--role", default="moderator")
    of_person("password", _password, "set a password, prompted for or read from standard input")
    of_person("reset-factor", _reset_factor, "take the second factor away: the device is lost")
    of_person("role", _role, "change the role").add_argument("role")
    of_person("disable", _disable, "disable an account")
    of_person("enable", _enable, "enable an account again")
    queues = add_command(commands, "queues", _queues, "assign a person to queues")
    queues.add_argument("pseudonym")
    queues.add_argument("queue", nargs="*", help="none: all of them")


def add_token_options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `modwatch token` to `parser`."""
    parser.set_defaults(command=_on_database, on_database=_token)
    parser.add_argument("pseudonym")
    parser.add_argument("--role", help="of an account that is created; default: moderator")
    parser.add_argument("--name", help="name of the token")
    parser.add_argument("--scope", action="append", help="may be repeated; default: all")
    parser.add_argument(
        "--days",
        type=number_between(0, _TEN_YEARS),
        help="lifetime; default: until revoked",
    )


def _on_database(options: argparse.Namespace) -> None:
    with open_resources() as resources:
        options.on_database(resources.database, options)


def _token(engine: "Engine", options: argparse.Namespace) -> None:
    from modwatch.review.people import create_moderator, find_moderator, issue_token

    try:
        person = find_moderator(engine, options.pseudonym)
    except QueueError:
        person = create_moderator(engine, options.pseudonym, options.role or "moderator")
    if options.role not in (None, person.role):
        raise QueueError(f"{person.pseudonym} is a {person.role}; see `modwatch person role`")
    try:
        lifetime = None if options.days is None else datetime.timedelta(days=options.days)
    except (OverflowError, ValueError):
        raise QueueError(f"--days must be a number of days, got {options.days}") from None
    print(
        issue_token(engine, person.id, lifetime=lifetime, name=options.name, scopes=options.scope)
    )


def _list(engine: "Engine", _: argparse.Namespace) -> None:
    from modwatch.review.people import people

    for person in people(engine):
        state = "disabled" if person.disabled_at else "active"
        queues = ", ".join(sorted(person.queues)) if person.queues else "all queues"
        print(f"{person.pseudonym:<24} {person.role:<10} {state:<9} {queues}")


def _add(engine: "Engine", options: argparse.Namespace) -> None:
    from modwatch.review.people import create_moderator

    person = create_moderator(engine, options.pseudonym, options.role)
    print(f"{person.pseudonym} is a {person.role}; set a password or issue a token next")


def _password(engine: "Engine", options: argparse.Namespace) -> None:
    from modwatch.review.people import find_moderator, set_password

    person = find_moderator(engine, options.pseudonym)
    prompted = sys.stdin.isatty()
    password = getpass.getpass("New password: ") if prompted else sys.stdin.readline().rstrip("\n")
    if prompted and getpass.getpass("Repeat: ") != password:
        raise QueueError("the passwords do not match; try again")
    set_password(engine, person.id, password)
    print(f"{person.pseudonym} has a new password; all sessions and tokens have ended")


def _reset_factor(engine: "Engine", options: argparse.Namespace) -> None:
    from modwatch.review.people import find_moderator, second_factor

    second_factor.reset(engine, find_moderator(engine, options.pseudonym).id)


def _role(engine: "Engine", options: argparse.Namespace) -> None:
    from modwatch.review.people import change_role, find_moderator

    change_role(engine, find_moderator(engine, options.pseudonym).id, options.role)


def _disable(engine: "Engine", options: argparse.Namespace) -> None:
    from modwatch.review.people import disable, find_moderator

    disable(engine, find_moderator(engine, options.pseudonym).id)


def _enable(engine: "Engine", options: argparse.Namespace) -> None:
    from modwatch.review.people import enable, find_moderator

    enable(engine, find_moderator(engine, options.pseudonym).id)


def _queues(options: argparse.Namespace) -> None:
    from modwatch.review.people import find_moderator, set_queues

    with open_resources() as resources:
        person = find_moderator(resources.database, options.pseudonym)
        set_queues(resources.database, person.id, options.queue or None, lanes=resources.lanes)
