"""`modwatch audit …`: recall audits, step by step, as the DAG `audit_recall` takes them."""

import datetime
import functools
import getpass
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO, TypeVar

import click

from modwatch.cli.arguments import FILE, PATH, Group, day, options, with_resources
from modwatch.common.errors import AuditError
from modwatch.installation import open_resources

if TYPE_CHECKING:
    from modwatch.audits.folder import AuditFolder
    from modwatch.audits.publication import Level
    from modwatch.audits.workflow import Audit
    from modwatch.installation.resources import Resources

_R = TypeVar("_R")

_by = click.option("--by", required=True, metavar="PSEUDONYM", help="Who takes the step.")
_note = click.option("--note", default="", help="Reason, kept in the evidence.")
_key = click.option(
    "--key", "file", type=PATH, required=True, metavar="FILE", help="File of the private key."
)
_passphrase = click.option("--passphrase", is_flag=True, help="Ask for the passphrase of the key.")


def _with_audit(step: Callable[..., _R]) -> Callable[..., _R]:
    """Return a command that opens the audit of its argument and passes it on first."""

    @functools.wraps(step)
    def run(*, name: str, **options: Any) -> _R:
        with open_resources() as resources:
            return step(resources.audit(name), **options)

    return click.argument("name", metavar="AUDIT")(run)


@click.group(cls=Group)
def audit() -> None:
    """Run recall audits; validate DSA transparency reports."""


@audit.command()
@click.argument("name", metavar="AUDIT", help="Name of the new audit.")
@click.argument("first", type=day, help="First day, YYYY-MM-DD, UTC.")
@click.argument("last", type=day, help="Last day, included.")
@click.option("--labels", type=int, default=1000, help="Labels of all stages.")
@options(
    worst_case=(float, "Highest variance relative to a random sample; default: 1.1."),
    expected_prevalence=(float, "Prevalence among unflagged comments, if known."),
    second_stage_share=(float, "Share of the labels; default: 0."),
    confirmed_share=(float, "Expected confirmations per label; default: 0.2. 0: labels are true."),
    shared_false_positive=(float, "Largest P(a second error | a first one); default: 0.2."),
    shared_false_negative=(float, "The same for false negatives; default: 0.3."),
    public_value=(str, 'Future random value for the seed: "drand quicknet round 20000000".'),
)
@click.option(
    "--no-four-eyes",
    "four_eyes",
    flag_value=False,
    type=bool,
    default=None,
    help="Let one person plan, approve and sign; the report says so.",
)
@click.option(
    "--allow-missing-days",
    flag_value=True,
    type=bool,
    default=None,
    help="Plan although days of the period have no scores; the report names them.",
)
@_by
@_note
@with_resources
def plan(
    resources: "Resources",
    *,
    name: str,
    first: datetime.date,
    last: datetime.date,
    by: str,
    **design: Any,
) -> None:
    """Survey the period and seal the plan of an audit."""
    from modwatch.audits.descriptions import describe_forecast
    from modwatch.audits.identities import is_person
    from modwatch.pipeline import audit

    if not is_person(by):
        raise AuditError(f"--by {by!r} is not the name of a person, who answers for the plan")
    form = {"audit": name, "first": first, "last": last, **design}
    plan = audit.plan(resources, form, actor=by).plan
    print("side       score                 comments   labels")
    for stratum in plan.strata:
        upper = 1 if stratum.upper is None else stratum.upper
        bounds = f"{stratum.lower or 0:.6f} … {upper:.6f}"
        print(f"{stratum.side:<10} {bounds:<20} {stratum.population:>10,} {stratum.labels:>8,}")
    print(f"forecast, {describe_forecast(plan)}")
    print(f"plan {plan.digest}")


@audit.command()
@_by
@_note
@_with_audit
def approve(audit: "Audit", *, by: str, note: str) -> None:
    """Approve the plan."""
    audit.approve(actor=by, note=note)


@audit.command()
@click.option("--public-value", default="", metavar="VALUE", help="The value that the plan names.")
@_with_audit
def draw(audit: "Audit", *, public_value: str) -> None:
    """Draw the next stage and queue it for labelling."""
    print(f"{audit.draw(public_value=public_value)} comments are drawn")


@audit.command()
@click.argument("name", metavar="AUDIT", required=False)
@with_resources
def status(resources: "Resources", *, name: str | None) -> None:
    """Show the steps, labels and result of an audit; without a name, the last step of each."""
    if name is None:
        store = resources.audit_store
        for each in store.names():
            last = store.chain(each)[-1]
            print(f"{each}  {last.action.replace('_', ' ')} by {last.actor} at {last.at}")
        return
    audit = resources.audit(name)
    plan = audit.plan
    print(f"audit {audit.name}, {plan.first} to {plan.last}, model {plan.model_version}")
    print(f"evidence in {audit.store.place(audit.name)}")
    for event in audit.chain:
        note = f": {event.note}" if event.note else ""
        print(f"{event.at}  {event.action.replace('_', ' ')} by {event.actor}{note}")
    items = audit.progress()
    print(
        f"{items.items} items: {items.decided} decided, {items.waiting} waiting, "
        f"{items.escalated} escalated, {items.withdrawn} withdrawn"
    )
    for label in audit.conflicting_labels():
        print(
            f"{label.labeller} labelled {label.comment_id} of {label.day} after deciding it as a "
            "moderator"
        )
    if any(event.action == "estimated" for event in audit.chain):
        _print_estimates(audit.result["figures"])


@audit.command()
@click.option("--by", default="modwatch", metavar="PSEUDONYM", help="Who seals.", show_default=True)
@_note
@click.option("--stop", is_flag=True, help="Withdraw the comments that are not labelled.")
@_with_audit
def seal(audit: "Audit", *, by: str, note: str, stop: bool) -> None:
    """Seal the labels of the stage."""
    print(f"{audit.seal(stop=stop, actor=by, note=note)} comments have a label")


@audit.command()
@_with_audit
def estimate(audit: "Audit") -> None:
    """Compute precision, recall and the other metrics, and seal them."""
    _print_estimates(audit.estimate()["figures"])


def _print_estimates(estimates: list[dict[str, Any]]) -> None:
    from modwatch.audits.descriptions import bound_text

    for figure in estimates:
        name = figure["metric"].replace("_", " ")
        if figure["status"] == "ok":
            interval = f"[{figure['low']:.4f}, {figure['high']:.4f}]"
            print(f"{name:<26} {figure['value']:.4f} {interval}  {figure['labels']} labels")
        else:
            bound = bound_text(figure)
            print(f"{name:<26} insufficient: {bound}{', ' if bound else ''}{figure['reason']}")


@audit.command()
@_by
@_note
@_with_audit
def sign_off(audit: "Audit", *, by: str, note: str) -> None:
    """Sign off the result."""
    audit.sign_off(actor=by, note=note)


@audit.command()
@click.option("--by", required=True, metavar="NAME", help="Who signs.")
@_key
@_passphrase
@_with_audit
def sign(audit: "Audit", *, by: str, file: Path, passphrase: bool) -> None:
    """Sign the last approval or result that you answer for, with your key."""
    from modwatch.common.ledger.signatures import read_key

    print(audit.sign(read_key(file, _ask(passphrase)), actor=by))


@audit.command()
@_with_audit
def stamp(audit: "Audit") -> None:
    """Request a timestamp for each step that has none."""
    print(*(audit.stamp() or ["no step lacks a timestamp, or no authority is set"]), sep="\n")


@audit.command()
@click.option("--service", default="", help="Name of the service, for the report.")
@_with_audit
def publish(audit: "Audit", *, service: str) -> None:
    """Write the report of a signed audit."""
    print(audit.publish(service=service))


@audit.command()
@_by
@_note
@_with_audit
def cancel(audit: "Audit", *, by: str, note: str) -> None:
    """Cancel the audit; its evidence is kept."""
    audit.cancel(actor=by, note=note)


@audit.command()
@click.argument("plan", type=PATH, help="plan.json of an audit, in the folder of the audit.")
@click.option("--stage", type=click.IntRange(1, 2), default=1)
@with_resources
def redraw(resources: "Resources", *, plan: Path, stage: int) -> None:
    """Draw a sample again, to standard output."""
    from modwatch.audits.verification import redrawn

    if not plan.is_file():
        raise AuditError(f"{plan} does not exist")
    sys.stdout.buffer.write(redrawn(resources.lake, _folder(plan.parent), stage))


@audit.command()
@click.argument("name", help="Who will sign, as named in Airflow or on the command line.")
@_key
@_passphrase
def key(name: str, file: Path, passphrase: bool) -> None:
    """Make a key to sign audits with."""
    from modwatch.common.ledger.signatures import make_key

    public = make_key(file, _ask(passphrase))
    print(f"The private key is in {file}: keep it secret. For signers.toml:")
    print(f"{json.dumps(name)} = {json.dumps(public)}")


def _ask(passphrase: bool) -> str:
    return getpass.getpass("Passphrase: ") if passphrase else ""


@audit.command()
@click.argument("name", metavar="AUDIT", help="Name of an audit, or with --files a folder.")
@options(
    files=(bool, "Use only the files in a folder."),
    signers=(PATH, "File of public keys; every step must be signed."),
    roots=(PATH, "PEM file; every step must have a timestamp."),
    witness=(
        click.File(errors="replace"),
        "File with a witness of the decision log, kept elsewhere; default: the newest of "
        "MODWATCH_WITNESS_FOLDER.",
    ),
)
def verify(
    name: str, files: bool, signers: Path | None, roots: Path | None, witness: TextIO | None
) -> int:
    """Verify the evidence of an audit; exit status 1 if there is a problem."""
    levels = (
        _levels_of_files(Path(name), signers, roots)
        if files
        else _levels(name, signers, roots, witness)
    )
    for level in levels:
        print(f"{level.name}: {'has problems' if level.problems else level.shows}")
        for mark, sentences in (("PROBLEM", level.problems), ("note", level.remarks)):
            for sentence in sentences:
                print(f"  {mark}: {sentence}")
    problems = sum(len(level.problems) for level in levels)
    done = ", ".join(level.name for level in levels)
    print(f"{name}: {problems or 'no'} problems found in {done}")
    return 1 if problems else 0


def _levels_of_files(path: Path, signers: Path | None, roots: Path | None) -> list["Level"]:
    from modwatch.audits.publication import level_of_files

    folder = _folder(path)
    first = level_of_files(folder)
    if first.problems or not (signers or roots):
        return [first]
    from modwatch.audits.witnesses import read_witnesses  # cryptography is no part of the base

    return [first, *read_witnesses(signers, roots).levels(folder)]


def _levels(
    name: str, signers: Path | None, roots: Path | None, witness: TextIO | None
) -> list["Level"]:
    from modwatch.audits.witnesses import read_witnesses
    from modwatch.review.log.witnesses import Newest

    with open_resources() as resources:
        return resources.audit(name).levels(
            Newest(text=witness.read()) if witness else None,
            read_witnesses(signers, roots) if signers or roots else None,
        )


def _folder(path: Path) -> "AuditFolder":
    """Return the files of a folder by name."""
    from modwatch.audits.folder import AuditFolder

    if not path.is_dir():
        raise AuditError(f"{path} is not a folder")
    files = (file for file in sorted(path.iterdir()) if file.is_file())
    return AuditFolder((file.name, file.read_bytes()) for file in files)


@audit.command()
@click.argument("file", type=FILE)
def validate_dsa(file: BinaryIO) -> int:
    """Validate a DSA transparency report in CSV; exit status 1 if there is a problem."""
    from modwatch.audits.dsa.findings import exit_status, printed
    from modwatch.audits.dsa.validation import validate

    findings = validate(file.read())
    sys.stdout.write(printed(findings) or f"{file.name}: no problems found\n")
    return exit_status(findings)
