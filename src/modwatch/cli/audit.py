"""`modwatch audit …`: recall audits, step by step, as the DAG `audit_recall` takes them."""

import argparse
import datetime
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from modwatch.errors import AuditError


def add_commands(commands: Any) -> None:
    """Add every command of `modwatch audit` to its parser's `commands`."""

    def command(name: str, call: Callable[..., object], words: str) -> argparse.ArgumentParser:
        sub: argparse.ArgumentParser = commands.add_parser(name, help=words, description=words)
        sub.set_defaults(command=call)
        return sub

    plan = command("plan", _plan, "freeze the plan of an audit")
    plan.add_argument("audit", help="name of the audit")
    for name in ("first", "last"):
        plan.add_argument(
            name, type=datetime.date.fromisoformat, help=f"{name} day, YYYY-MM-DD, UTC"
        )
    _add_design(plan)
    for name, call, words in _STEPS:
        sub = command(name, call, words)
        sub.add_argument("audit")
        if name in ("approve", "sign-off", "cancel"):
            _by(sub)
        if name == "publish":
            sub.add_argument("--service", default="", help="its name, for the report")
        if name == "seal":
            sub.add_argument("--by", default="modwatch", metavar="PSEUDONYM", help="who does it")
            sub.add_argument("--note", default="", help="why; kept in the evidence")
            sub.add_argument("--stop", action="store_true", help="give up what is not labelled")
    command("list", _list, "every audit, and what was done last")

    redraw = command("redraw", _redraw, "draw the sample of a plan anew, to standard output")
    redraw.add_argument("plan", type=Path, help="plan.json of an audit, with its folder around it")
    redraw.add_argument("--stage", type=int, default=1, choices=(1, 2))

    verify = command("verify", _verify, "check an audit: its files, and the draw from the scores")
    verify.add_argument("audit", help="name of an audit, or with --files a folder")
    verify.add_argument(
        "--files", action="store_true", help="from the files in a folder alone, wherever it lies"
    )
    check = command("validate-dsa", _validate_dsa, "check a DSA transparency report in CSV")
    check.add_argument("file", type=Path)


def _add_design(plan: argparse.ArgumentParser) -> None:
    plan.add_argument("--labels", type=int, default=1000, help="of all stages; default 1000")
    plan.add_argument("--bins", type=int, help="strata of the unflagged; default 8")
    plan.add_argument("--method", help="of the strata; default neyman")
    plan.add_argument("--floor", type=float, help="part of the labels spread evenly")
    plan.add_argument("--flagged-share", type=float, help="part of the labels for flagged comments")
    plan.add_argument("--expected-prevalence", type=float, help="of the unflagged, as far as known")
    plan.add_argument("--level", type=float, help="of the intervals; default 0.95")
    plan.add_argument("--second-stage-share", type=float, help="part of the labels; default 0")
    plan.add_argument("--several-labels-share", type=float, help="part labelled by several")
    plan.add_argument("--labels-an-item", type=int, help="how many people that are; default 2")
    plan.add_argument("--deadline-days", type=int, help="people are waited for; default 14")
    plan.add_argument("--seed", help="made at random unless given")
    _by(plan)


def _by(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--by", required=True, metavar="PSEUDONYM", help="who does it")
    parser.add_argument("--note", default="", help="why; kept in the evidence")


def _plan(options: argparse.Namespace) -> None:
    from modwatch.audits import auditing
    from modwatch.audits.request import requested
    from modwatch.resources import open_resources

    request = requested(vars(options))
    with open_resources() as at:
        frozen = auditing.plan(at, request, actor=options.by)
    print("side       score                 comments   labels")
    for each in frozen.strata:
        bounds = f"{each.lower or 0:.6f} … {1 if each.upper is None else each.upper:.6f}"
        print(f"{each.side:<10} {bounds:<20} {each.population:>10,} {each.labels:>8,}")
    print(f"plan {frozen.digest}")


def _approve(options: argparse.Namespace) -> None:
    _step("approve", options, actor=options.by, note=options.note)


def _draw(options: argparse.Namespace) -> None:
    print(f"{_step('draw_stage', options)} comments are drawn")


def _status(options: argparse.Namespace) -> None:
    found = _step("progress", options)
    print(
        f"{found.items} items: {found.decided} decided, {found.waiting} waiting, "
        f"{found.escalated} with a lead, {found.withdrawn} given up"
    )
    for label in _step("conflicting_labels", options):
        print(f"{label.labeller} labelled {label.comment_id} of {label.day}, and had decided it")


def _seal(options: argparse.Namespace) -> None:
    labelled = _step("seal_labels", options, stop=options.stop, actor=options.by, note=options.note)
    print(f"{labelled} comments have a label")


def _estimate(options: argparse.Namespace) -> None:
    for figure in _step("estimate", options)["figures"]:
        name = figure["metric"].replace("_", " ")
        if figure["status"] == "ok":
            ends = f"[{figure['low']:.4f}, {figure['high']:.4f}]"
            print(f"{name:<22} {figure['value']:.4f} {ends}  {figure['labels']} labels")
        else:
            print(f"{name:<22} insufficient: {figure['reason']}")


def _sign_off(options: argparse.Namespace) -> None:
    _step("sign_off", options, actor=options.by, note=options.note)


def _publish(options: argparse.Namespace) -> None:
    print(_step("publish", options, service=options.service))


def _cancel(options: argparse.Namespace) -> None:
    _step("cancel", options, actor=options.by, note=options.note)


_STEPS = (
    ("approve", _approve, "approve the plan"),
    ("draw", _draw, "draw the next stage, and queue it for labelling"),
    ("status", _status, "say how far the labelling is"),
    ("seal", _seal, "seal the labels of the stage"),
    ("estimate", _estimate, "compute precision, recall and the rest, and seal them"),
    ("sign-off", _sign_off, "sign the result"),
    ("publish", _publish, "write the report of a signed audit"),
    ("cancel", _cancel, "give the audit up; its evidence stays"),
)


def _step(name: str, options: argparse.Namespace, **more: Any) -> Any:
    from modwatch.audits import auditing
    from modwatch.resources import open_resources

    with open_resources() as at:
        return getattr(auditing, name)(at, options.audit, **more)


def _list(_: argparse.Namespace) -> None:
    from modwatch.audits import auditing
    from modwatch.resources import open_resources

    with open_resources() as at:
        kept = auditing.store(at)
        for name in kept.names():
            last = kept.chain(name)[-1]
            print(f"{name}  {last.action.replace('_', ' ')} by {last.actor} at {last.at}")


def _redraw(options: argparse.Namespace) -> None:
    from modwatch.audits.verification import redrawn
    from modwatch.resources import open_resources

    if not options.plan.is_file():
        raise AuditError(f"there is no plan at {options.plan}")
    with open_resources() as at:
        sample = redrawn(at, _folder(options.plan.parent), options.stage)
    sys.stdout.buffer.write(sample)


def _verify(options: argparse.Namespace) -> int:
    if options.files:
        from modwatch.audit.verify import verify

        problems = verify(_folder(Path(options.audit)))
    else:
        from modwatch.audits.verification import check
        from modwatch.resources import open_resources

        with open_resources() as at:
            problems = check(at, options.audit)
    for problem in problems:
        print(problem)
    if not problems:
        print(f"{options.audit}: nothing is wrong")
    return 1 if problems else 0


def _folder(path: Path) -> dict[str, bytes]:
    """Return the files of a folder by name."""
    if not path.is_dir():
        raise AuditError(f"{path} is no folder")
    return {each.name: each.read_bytes() for each in sorted(path.iterdir()) if each.is_file()}


def _validate_dsa(options: argparse.Namespace) -> int:
    from modwatch.audit import dsa

    try:
        content = options.file.read_bytes()
    except OSError as exc:
        raise AuditError(f"{options.file} cannot be read ({type(exc).__name__})") from None
    findings = dsa.validate(content)
    sys.stdout.write(dsa.printed(findings) or f"{options.file}: nothing is wrong\n")
    return int(dsa.exit_status(findings))
