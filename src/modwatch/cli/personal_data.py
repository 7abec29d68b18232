"""`modwatch erase`, `modwatch export`: the rights of the people whose comments are kept."""

import datetime
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from modwatch.cli.arguments import FILE, options, with_resources
from modwatch.common.errors import QueueError
from modwatch.common.files import replace, write_new

if TYPE_CHECKING:
    from modwatch.data.lake.erasure import Subject
    from modwatch.installation.resources import Resources

_author = click.option("--author", help="All comments with this `author_id`.")
_comments = click.option("--comment", multiple=True, help="The comment of this id; repeatable.")


@click.command()
@_author
@_comments
@options(
    again=(FILE, "The comments of this certificate, as after a restored backup."),
    dry_run=(bool, "Print what would be erased, and change nothing."),
    reference=(str, "Stands in the certificate, such as the number of the request."),
)
@with_resources
def erase(
    resources: "Resources",
    *,
    author: str | None,
    comment: tuple[str, ...],
    again: BinaryIO | None,
    dry_run: bool,
    reference: str | None,
) -> None:
    """Erase the texts of comments, their authors, and notes on them.

    The certificate is erasure-TIME.json in this folder.
    """
    from modwatch.pipeline import personal_data

    if again is not None:
        comment += tuple(personal_data.Certificate.from_json(again.read()).comment_ids)
    subject = _subject(author, comment)
    if dry_run:
        _print_places(personal_data.erase(resources, subject, dry_run=True).places)
        return
    now = datetime.datetime.now(datetime.UTC)
    path = Path(f"erasure-{now:%Y%m%dT%H%M%SZ}.json")
    try:
        write_new(path, b"")  # before anything is erased
    except OSError as exc:
        raise QueueError(f"{path} cannot be written ({type(exc).__name__})") from None
    try:
        done = personal_data.erase(resources, subject, reference=reference or "")
    except BaseException:
        path.unlink()
        raise
    replace(path, done.to_json())
    _print_places(done.places)
    print(f"{path} certifies it; the event is {done.position} in the log")
    if not done.database_files:
        print(
            "the files of your PostgreSQL keep old versions of rows until VACUUM FULL of "
            "review_item, decision and gold_comment"
        )


@click.command()
@click.argument("certificate", type=FILE)
@with_resources
def verify_erasure(resources: "Resources", *, certificate: BinaryIO) -> int:
    """Compare log, queue and lake with a certificate; exit status 1 if there is a problem."""
    from modwatch.pipeline import personal_data

    known = personal_data.Certificate.from_json(certificate.read())
    problems = personal_data.problems(resources, known)
    print(*problems or [f"{len(known.comment_ids)} comments are erased, as certified"], sep="\n")
    return 1 if problems else 0


@click.command()
@_author
@_comments
@with_resources
def export(resources: "Resources", *, author: str | None, comment: tuple[str, ...]) -> None:
    """Write what is kept about an author, or about comments, to standard output as JSON."""
    from modwatch.pipeline import personal_data

    kept = personal_data.export(resources, _subject(author, comment))
    json.dump(kept, sys.stdout, indent=1, default=str, ensure_ascii=False)
    print()


def _subject(author: str | None, comments: tuple[str, ...]) -> "Subject":
    from modwatch.data.lake.erasure import Subject

    if not author and not comments:
        raise QueueError("name the author (--author) or the comments (--comment)")
    return Subject(author=author or None, comment_ids=frozenset(comments))


def _print_places(places: Any) -> None:
    for place, number in places.items():
        print(f"{place}: {number:,}")
