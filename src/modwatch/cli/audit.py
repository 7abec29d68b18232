"""`modwatch audit …`: recall audits, step by step, as the DAG `audit_recall` takes them."""

import argparse
import getpass
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modwatch.cli.arguments import add_command, day, number_between, open_resources
from modwatch.common.errors import AuditError

if TYPE_CHECKING:
    from modwatch.audits.audit import Audit
    from modwatch.audits.levels import Level
    from modwatch.audits.witnesses import Witnesses

_share = number_between(0, 1)


def add_commands(commands: Any) -> None:
    """Add every command of `modwatch audit` to its parser's `commands`."""
    plan = add_command(commands, "plan", _plan, "survey the period and seal the plan of an audit")
    plan.add_argument("audit", help="name of the audit")
    plan.add_argument("first", type=day, help="first day, YYYY-MM-DD, UTC")
    plan.add_argument("last", type=day, help="last day, included")
    _add_design(plan)
    for name, call, text in _STEPS:
        step = add_command(commands, name, call, text)
        step.add_argument("audit", help="name of the audit")
        if name in ("approve", "sign-off", "cancel"):
            _add_actor(step)
        if name == "sign":
            step.add_argument("--by", required=True, metavar="NAME", help="who signs")
            _add_key(step)
        if name == "draw":
            step.add_argument(
                "--public-value", default="", metavar="VALUE", help="value that the plan names"
            )
        if name == "publish":
            step.add_argument("--service", default="", help="name of the service, for the report")
        if name == "seal":
            step.add_argument("--by", default="modwatch", metavar="PSEUDONYM", help="who seals")
            step.add_argument("--note", default="", help="reason, kept in the evidence")
            step.add_argument(
                "--stop", action="store_true", help="withdraw the comments that are not labelled"
            )
    add_command(commands, "list", _list, "list the audits and the last step of each")

    redraw = add_command(commands, "redraw", _redraw, "draw a sample again, to standard output")
    redraw.add_argument("plan", type=Path, help="plan.json of an audit, with its folder around it")
    redraw.add_argument("--stage", type=int, default=1, choices=(1, 2))

    key = add_command(commands, "key", _key, "make a key to sign audits with")
    key.add_argument("name", help="who will sign, as Airflow or the command line names them")
    _add_key(key)

    verify = add_command(commands, "verify", _verify, "verify the evidence of an audit")
    verify.add_argument("audit", help="name of an audit, or with --files a folder")
    verify.add_argument(
        "--files", action="store_true", help="use only the files in a folder, wherever it is"
    )
    verify.add_argument(
        "--signers", type=Path, metavar="FILE", help="public keys; every step must be signed"
    )
    verify.add_argument(
        "--roots", type=Path, metavar="FILE", help="PEM; every step must have a timestamp"
    )
    verify.add_argument(
        "--witness", type=Path, metavar="FILE", help="witness of the decision log, kept elsewhere"
    )
    validate = add_command(
        commands, "validate-dsa", _validate_dsa, "validate a DSA transparency report in CSV"
    )
    validate.add_argument("file", type=Path)


def _add_design(plan: argparse.ArgumentParser) -> None:
    plan.add_argument("--labels", type=int, default=1000, help="of all stages; default 1000")
    plan.add_argument("--bins", type=int, help="strata of the unflagged comments; default 8")
    plan.add_argument("--method", help="how scores are cut into strata; default neyman")
    plan.add_argument(
        "--worst-case",
        type=float,
        help="variance over that of a random sample at most, however wrong the scores; default 1.1",
    )
    plan.add_argument("--flagged-share", type=float, help="share of labels for flagged comments")
    plan.add_argument(
        "--expected-prevalence", type=float, help="among unflagged comments, if it is known"
    )
    plan.add_argument("--level", type=_share, help="confidence level; default 0.95")
    plan.add_argument("--second-stage-share", type=float, help="share of the labels; default 0")
    plan.add_argument(
        "--confirmed-share",
        type=float,
        help="expected confirmations over labels (default: 0.2; 0: labels count as true)",
    )
    plan.add_argument("--deadline-days", type=int, help="days to wait for labels; default 14")
    plan.add_argument(
        "--public-value",
        metavar="NAME",
        help="public random value of the future that the seed of the draw depends on, too, such as "
        '"drand quicknet round 20000000"',
    )
    plan.add_argument(
        "--no-four-eyes",
        dest="four_eyes",
        action="store_false",
        default=None,
        help="one person may plan, approve and sign; the report says so",
    )
    plan.add_argument(
        "--allow-missing-days",
        action="store_true",
        default=None,
        help="plan although days of the period have no scores; the report names them",
    )
    plan.add_argument("--service", help="name of the service that the report will describe")
    _add_actor(plan)


def _add_actor(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--by", required=True, metavar="PSEUDONYM", help="who takes the step")
    parser.add_argument("--note", default="", help="reason, kept in the evidence")


def _add_key(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--key", type=Path, required=True, metavar="FILE", help="private key")
    parser.add_argument(
        "--passphrase", action="store_true", help="the key has a passphrase; ask for it"
    )


@contextmanager
def _opened(options: argparse.Namespace) -> Iterator["Audit"]:
    from modwatch.pipeline.audit import open_audit

    with open_resources() as resources:
        yield open_audit(resources, options.audit)


def _plan(options: argparse.Namespace) -> None:
    from modwatch.audits.descriptions import describe_forecast
    from modwatch.audits.identities import is_person
    from modwatch.pipeline import audit

    if not is_person(options.by):
        raise AuditError(f"--by {options.by!r} is no person, who would answer for the plan")
    with open_resources() as resources:
        plan = audit.plan(resources, vars(options), actor=options.by).plan
    print("side       score                 comments   labels")
    for each in plan.strata:
        bounds = f"{each.lower or 0:.6f} … {1 if each.upper is None else each.upper:.6f}"
        print(f"{each.side:<10} {bounds:<20} {each.population:>10,} {each.labels:>8,}")
    print(f"forecast, {describe_forecast(plan)}")
    print(f"plan {plan.digest}")


def _in_a_name(
    step: Callable[["Audit"], Callable[..., object]],
) -> Callable[[argparse.Namespace], None]:
    """Return the command for a step of an audit that a person takes."""

    def command(options: argparse.Namespace) -> None:
        with _opened(options) as audit:
            step(audit)(actor=options.by, note=options.note)

    return command


def _draw(options: argparse.Namespace) -> None:
    with _opened(options) as audit:
        print(f"{audit.draw(public_value=options.public_value)} comments are drawn")


def _status(options: argparse.Namespace) -> None:
    with _opened(options) as audit:
        items = audit.progress()
        print(
            f"{items.items} items: {items.decided} decided, {items.waiting} waiting, "
            f"{items.escalated} escalated, {items.withdrawn} withdrawn"
        )
        for label in audit.conflicting_labels():
            print(
                f"{label.labeller} labelled {label.comment_id} of {label.day} after deciding it as "
                "a moderator"
            )


def _sign(options: argparse.Namespace) -> None:
    from modwatch.common.ledger.signatures import read_key

    key = read_key(options.key, _passphrase(options))
    with _opened(options) as audit:
        print(audit.sign(key, actor=options.by))


def _key(options: argparse.Namespace) -> None:
    from modwatch.common.ledger.signatures import make_key

    public = make_key(options.key, _passphrase(options))
    print(f"The private key is in {options.key}: keep it yourself. For MODWATCH_AUDIT_SIGNERS:")
    print(f"{json.dumps(options.name)} = {json.dumps(public)}")


def _passphrase(options: argparse.Namespace) -> str:
    return getpass.getpass("Passphrase: ") if options.passphrase else ""


def _stamp(options: argparse.Namespace) -> None:
    with _opened(options) as audit:
        print(*(audit.stamp() or ["no step lacks a timestamp, or no authority is set"]), sep="\n")


def _seal(options: argparse.Namespace) -> None:
    with _opened(options) as audit:
        labelled = audit.seal(stop=options.stop, actor=options.by, note=options.note)
    print(f"{labelled} comments have a label")


def _estimate(options: argparse.Namespace) -> None:
    with _opened(options) as audit:
        _print_estimates(audit.estimate()["figures"])


def _print_estimates(estimates: list[dict[str, Any]]) -> None:
    from modwatch.audits.descriptions import bound_text

    for each in estimates:
        name = each["metric"].replace("_", " ")
        if each["status"] == "ok":
            interval = f"[{each['low']:.4f}, {each['high']:.4f}]"
            print(f"{name:<26} {each['value']:.4f} {interval}  {each['labels']} labels")
        else:
            told = bound_text(each)
            print(f"{name:<26} insufficient: {told}{', ' if told else ''}{each['reason']}")


def _publish(options: argparse.Namespace) -> None:
    with _opened(options) as audit:
        print(audit.publish(service=options.service))


def _list(_: argparse.Namespace) -> None:
    with open_resources() as resources:
        store = resources.audit_store
        for name in store.names():
            last = store.chain(name)[-1]
            print(f"{name}  {last.action.replace('_', ' ')} by {last.actor} at {last.at}")


def _show(options: argparse.Namespace) -> None:
    with _opened(options) as audit:
        plan = audit.plan
        print(f"audit {audit.name}, {plan.first} to {plan.last}, model {plan.model_version}")
        print(f"evidence in {audit.store.place(audit.name)}")
        for event in audit.chain:
            note = f": {event.note}" if event.note else ""
            print(f"{event.at}  {event.action.replace('_', ' ')} by {event.actor}{note}")
        if any(event.action == "estimated" for event in audit.chain):
            _print_estimates(audit.result["figures"])


_STEPS = (
    ("approve", _in_a_name(lambda audit: audit.approve), "approve the plan"),
    ("draw", _draw, "draw the next stage and queue it for labelling"),
    ("status", _status, "show the progress of the labels"),
    ("seal", _seal, "seal the labels of the stage"),
    ("estimate", _estimate, "compute precision, recall and the other metrics, and seal them"),
    ("sign-off", _in_a_name(lambda audit: audit.sign_off), "sign the result"),
    ("sign", _sign, "sign the last approval or result that you answer for, by your key"),
    ("stamp", _stamp, "have the steps timestamped that have no timestamp yet"),
    ("publish", _publish, "write the report of a signed audit"),
    ("cancel", _in_a_name(lambda audit: audit.cancel), "cancel the audit; its evidence stays"),
    ("show", _show, "show the period, the steps and the result of an audit"),
)


def _redraw(options: argparse.Namespace) -> None:
    from modwatch.audits.verification import redrawn

    if not options.plan.is_file():
        raise AuditError(f"{options.plan} does not exist")
    with open_resources() as resources:
        sample = redrawn(resources.lake, _folder(options.plan.parent), options.stage)
    sys.stdout.buffer.write(sample)


def _verify(options: argparse.Namespace) -> int:
    from modwatch.audits.levels import level_of_files

    if options.files:
        folder = _folder(Path(options.audit))
        levels = [level_of_files(folder)]
        if not levels[0].problems and (options.signers or options.roots):
            levels += _witnesses(options).levels(folder)
    else:
        with _opened(options) as audit:
            if options.signers or options.roots:
                audit.witnesses = _witnesses(options)
            levels = audit.levels()
            if options.witness:
                levels.append(_log_level(audit, options.witness))
    for level in levels:
        print(f"{level.name}: {'has problems' if level.problems else level.shows}")
        for mark, sentences in (("PROBLEM", level.problems), ("note", level.remarks)):
            for sentence in sentences:
                print(f"  {mark}: {sentence}")
    problems = sum(len(level.problems) for level in levels)
    done = ", ".join(level.name for level in levels)
    print(f"{options.audit}: {problems or 'no'} problems found in {done}")
    return 1 if problems else 0


def _witnesses(options: argparse.Namespace) -> "Witnesses":
    from modwatch.audits.witnesses import Witnesses
    from modwatch.common.ledger.signatures import read_signers
    from modwatch.common.ledger.timestamps import read_roots

    return Witnesses(
        signers=read_signers(options.signers) if options.signers else None,
        roots=read_roots(options.roots) if options.roots else (),
        required=True,
    )


def _log_level(audit: "Audit", path: Path) -> "Level":
    """Return what the whole decision log shows against a witness of it."""
    from modwatch.audits.levels import Level
    from modwatch.review.log.verification import verify_log

    try:
        witness = path.read_text()
    except (OSError, ValueError) as exc:
        raise AuditError(f"{path} cannot be read ({type(exc).__name__})") from None
    return Level(
        name="witness",
        shows="no decision of the log was changed, removed or reordered since the witness",
        problems=verify_log(audit.database, witness).problems,
    )


def _folder(path: Path) -> dict[str, bytes]:
    """Return the files of a folder by name."""
    if not path.is_dir():
        raise AuditError(f"{path} is not a folder")
    return {each.name: each.read_bytes() for each in sorted(path.iterdir()) if each.is_file()}


def _validate_dsa(options: argparse.Namespace) -> int:
    from modwatch.audits import dsa

    try:
        content = options.file.read_bytes()
    except OSError as exc:
        raise AuditError(f"{options.file} cannot be read ({type(exc).__name__})") from None
    findings = dsa.validate(content)
    sys.stdout.write(dsa.printed(findings) or f"{options.file}: no problems found\n")
    return int(dsa.exit_status(findings))
