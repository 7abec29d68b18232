"""The levels at which an audit is verified, and the first of them: its files alone."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from modwatch.audits.evidence import first_of
from modwatch.audits.folder import AuditFolder
from modwatch.audits.publication import publication_problems, publication_remarks
from modwatch.audits.seeds import PUBLIC_VALUE
from modwatch.audits.verify import remarks, verify


@dataclass(frozen=True, kw_only=True)
class Level:
    """What one level of verification shows of an audit."""

    #: files | signatures | timestamps | lake | decision log | register | witness
    name: str
    #: What it shows when there is no problem.
    shows: str
    #: One sentence each; empty if there is none.
    problems: Sequence[str] = ()
    #: What it does not show, or what a person has to judge.
    remarks: Sequence[str] = ()


def level_of_files(folder: Mapping[str, bytes]) -> Level:
    """Return what the files of an audit show by themselves; see `verify.verify`."""
    folder = AuditFolder(folder)
    problems = verify(folder) or publication_problems(folder)
    found: list[str] = []
    if not problems:
        found = [*remarks(folder), *publication_remarks(folder), *_public_value(folder)]
    return Level(
        name="files",
        shows="the files are as they were sealed, or were all written anew; the draw follows from "
        "the plan, the result from the labels, and the published files from the result",
        problems=problems,
        remarks=found,
    )


def _public_value(folder: AuditFolder) -> Iterator[str]:
    """Yield what a person has to compare of the public value in the seed."""
    plan, chain = folder.plan, folder.chain
    drawn, approved = first_of(chain, "drawn"), first_of(chain, "approved")
    if plan.public_value and drawn and approved:
        yield (
            f"compare {drawn.facts[PUBLIC_VALUE]!r} with the published {plan.public_value!r}, "
            f"which must be later than the approval at {approved.at}"
        )
