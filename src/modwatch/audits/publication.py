"""The published files of an audit, and what they are made of, so that anyone can make them again.

`publication.json` is sealed with the report: the version that wrote it, the service, the results of
earlier audits in the trend, the other audits of the same days, and the measures of the period in
the files for transparency reports.

`Level` is what verification found at one level; the first level is the files alone.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

from pydantic import ConfigDict, TypeAdapter
from pydantic.dataclasses import dataclass as strict_dataclass

from modwatch.audits.dsa.from_audit import Measures, automated_means
from modwatch.audits.dsa.qualitative import qualitative
from modwatch.audits.evidence import Event, first_of, moment
from modwatch.audits.files import (
    AUTOMATED_MEANS_FILE,
    PUBLICATION,
    QUALITATIVE_FILE,
    REPORT,
    RESULT,
)
from modwatch.audits.folder import AuditFolder
from modwatch.audits.report import render_report
from modwatch.audits.seeds import PUBLIC_VALUE
from modwatch.audits.verify import remarks, verify
from modwatch.common.errors import AuditError, ModwatchError
from modwatch.common.installed import version
from modwatch.statistics.audit.plan import AuditPlan
from modwatch.statistics.audit.results import Document

#: A document must have exactly these fields, with these types.
_STRICT = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


@strict_dataclass(frozen=True, kw_only=True, config=_STRICT)
class OtherAudit:
    """Another audit of days of the same period, as it was when the report was written."""

    audit: str
    #: First and last day of its period, ISO 8601.
    first: str
    last: str
    #: Its last step, and when, UTC, ISO 8601.
    action: str
    at: str
    #: Labels that people had given: when it was cancelled, or else when the report was written.
    labels: int

    def sentence(self, planned_at: str) -> str:
        """Describe it in the report of an audit that was planned at a time.

        >>> other = OtherAudit(audit="try", first="2026-01-01", last="2026-01-31",
        ...                    action="cancelled", at="2026-02-03T10:00:00+00:00", labels=57)
        >>> other.sentence("2026-02-04T10:00:00+00:00").partition(" was ")[2]
        'cancelled on 2026-02-03, when people had given 57 labels, before this audit was planned.'
        """
        was = f"was {self.action.replace('_', ' ')} on {moment(self.at):%Y-%m-%d}"
        given = "1 label" if self.labels == 1 else f"{self.labels:,} labels"
        when = "when people had given" if self.action == "cancelled" else "and people have given"
        earlier = ", before this audit was planned" * (moment(self.at) < moment(planned_at))
        of = f"Audit {self.audit!r} of {self.first} to {self.last}"
        return f"{of} {was}, {when} {given}{earlier}."


@strict_dataclass(frozen=True, kw_only=True, config=_STRICT)
class Publication:
    """What published files are made of, in addition to plan, result and chain."""

    #: Version of Modwatch that wrote them: another may write the same facts in other words.
    version: str
    #: Name of the service; empty for none, and then there are no files for transparency reports.
    service: str = ""
    #: Results of the audits that were published before, oldest period first.
    earlier: Sequence[Document] = ()
    #: The other audits of days of the period, by name: cancelled ones, too.
    others: Sequence[OtherAudit] = ()
    #: Measures of the period by language tag, "" for none; None without a service, and
    #: of a demonstration model: then there are no files for transparency reports.
    measures: Mapping[str, Measures] | None = None

    def to_json(self) -> bytes:
        """Return the canonical text."""
        return (json.dumps(asdict(self), sort_keys=True, indent=1, allow_nan=False) + "\n").encode()

    @classmethod
    def from_json(cls, content: bytes) -> "Publication":
        """Return what `to_json` wrote; AuditError for anything else."""
        try:
            made = _publications.validate_json(content)
            for other in made.others:
                moment(other.at)  # raises AuditError
            if made.to_json() == content:
                return made
        except (ValueError, RecursionError):
            pass
        raise AuditError(f"{PUBLICATION} is not what a publication is made of: it was edited")


_publications = TypeAdapter(Publication)


def published_files(
    plan: AuditPlan, result: Document, chain: Sequence[Event], of: Publication
) -> dict[str, bytes]:
    """Return the report and the files for transparency reports, by name.

    `chain` is that of the signed audit, without its publication. Equal input gives equal bytes.
    AuditError where result or chain belong to another plan.
    """
    if result["plan"] != plan.digest:
        raise AuditError(
            f"audit {plan.audit!r}: the result belongs to another plan; estimate it again"
        )
    if chain[0].audit != plan.audit:
        raise AuditError(f"audit {plan.audit!r}: the chain belongs to audit {chain[0].audit!r}")
    others = [other.sentence(chain[0].at) for other in of.others]
    report = render_report(plan, result, chain, of.earlier, service=of.service, others=others)
    made = {REPORT: report.encode()}
    if of.measures is not None:
        about, service = (plan, result, of.measures), of.service
        made[AUTOMATED_MEANS_FILE] = automated_means(*about, service=service, others=others)
        made[QUALITATIVE_FILE] = qualitative(*about, service=service, others=others)
    return made


def publication_problems(folder: AuditFolder) -> list[str]:
    """Return the published files that do not follow from the result; empty when all do.

    For files without a problem of `verify.verify`. Another version of Modwatch may have written the
    same in other words: `publication_remarks`.
    """
    if PUBLICATION not in folder:
        return []
    try:
        of = Publication.from_json(folder[PUBLICATION])
        chain = folder.chain
        published = first_of(chain, "published")
        if published is None or of.version != version():
            return []
        made = published_files(folder.plan, folder.result, chain[: published.position - 1], of)
    except ModwatchError as exc:
        return [str(exc)]
    return [
        f"{name} does not follow from the result: it is not what Modwatch {of.version} writes of "
        f"{RESULT} and {PUBLICATION}"
        for name in sorted({*made, *published.files} - {PUBLICATION})
        if made.get(name) != folder.get(name)
    ]


def publication_remarks(folder: AuditFolder) -> list[str]:
    """Return the other audits that the report names, and why it was not compared, if it was not."""
    if PUBLICATION not in folder:
        return []
    of = Publication.from_json(folder[PUBLICATION])
    written, planned_at = of.version, folder.chain[0].at
    found = [
        f"{other.sentence(planned_at)} Ask why, and whether a result was chosen"
        for other in of.others
    ]
    if written == version():
        return found
    return [
        *found,
        f"the published files were written by Modwatch {written}, and this is {version()}: they "
        f"were not compared with the result. Verify them with that version, or take the numbers "
        f"from {RESULT}",
    ]


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
