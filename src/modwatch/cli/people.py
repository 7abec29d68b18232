"""`modwatch person …` and `modwatch token`: accounts, and what lets people in."""

import argparse
import datetime
import getpass
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from modwatch.errors import QueueError

if TYPE_CHECKING:
    from sqlalchemy import Engine


def add_commands(commands: Any) -> None:
    """Add every command of `modwatch person` to its parser's `commands`."""

    def command(name: str, call: Callable[..., object], words: str) -> argparse.ArgumentParser:
        sub: argparse.ArgumentParser = commands.add_parser(name, help=words, description=words)
        sub.set_defaults(command=_on_database, on_database=call)
        sub.add_argument("pseudonym")
        return sub

    command("add", _add, "create an account").add_argument("--role", default="moderator")
    command("password", _password, "set a password, asked for or read from standard input")
    command("role", _role, "give another role").add_argument("role")
    command("disable", _disable, "let nobody in by this account")
    command("enable", _enable, "let the person in again")
    queues = command("queues", _queues, "say which queues a person works")
    queues.add_argument("queue", nargs="*", help="none: all of them")


def add_token_options(parser: argparse.ArgumentParser) -> None:
    """Make `parser` that of `modwatch token`."""
    parser.set_defaults(command=_on_database, on_database=_token)
    parser.add_argument("pseudonym")
    parser.add_argument("--role", help="of an account that is created; default: moderator")
    parser.add_argument("--name", help="tells this token from others")
    parser.add_argument("--scope", action="append", help="may be repeated; default: all")
    parser.add_argument("--days", type=float, help="how long it holds; default: until revoked")


def _on_database(options: argparse.Namespace) -> None:
    from modwatch.resources import open_resources

    with open_resources() as at:
        options.on_database(at.database, options)


def _token(engine: "Engine", options: argparse.Namespace) -> None:
    from modwatch.review.people import create_moderator, find_moderator, issue_token

    try:
        person = find_moderator(engine, options.pseudonym)
    except QueueError:
        person = create_moderator(engine, options.pseudonym, options.role or "moderator")
    if options.role not in (None, person.role):
        raise QueueError(f"{person.pseudonym} is a {person.role}; see `modwatch person role`")
    lifetime = datetime.timedelta(days=options.days) if options.days else None
    print(
        issue_token(engine, person.id, lifetime=lifetime, name=options.name, scopes=options.scope)
    )


def _add(engine: "Engine", options: argparse.Namespace) -> None:
    from modwatch.review.people import create_moderator

    person = create_moderator(engine, options.pseudonym, options.role)
    print(f"{person.pseudonym} is a {person.role}; now give a password or a token")


def _password(engine: "Engine", options: argparse.Namespace) -> None:
    from modwatch.review.people import find_moderator, set_password

    person = find_moderator(engine, options.pseudonym)
    asked = sys.stdin.isatty()
    password = getpass.getpass("New password: ") if asked else sys.stdin.readline().rstrip("\n")
    if asked and getpass.getpass("Once more: ") != password:
        raise QueueError("the two passwords differ; try again")
    set_password(engine, person.id, password)
    print(f"{person.pseudonym} has a new password; all sessions have ended")


def _role(engine: "Engine", options: argparse.Namespace) -> None:
    from modwatch.review.people import change_role, find_moderator

    change_role(engine, find_moderator(engine, options.pseudonym).id, options.role)


def _disable(engine: "Engine", options: argparse.Namespace) -> None:
    from modwatch.review.people import disable, find_moderator

    disable(engine, find_moderator(engine, options.pseudonym).id)


def _enable(engine: "Engine", options: argparse.Namespace) -> None:
    from modwatch.review.people import enable, find_moderator

    enable(engine, find_moderator(engine, options.pseudonym).id)


def _queues(engine: "Engine", options: argparse.Namespace) -> None:
    from modwatch.review.people import find_moderator, set_queues

    set_queues(engine, find_moderator(engine, options.pseudonym).id, options.queue or None)
