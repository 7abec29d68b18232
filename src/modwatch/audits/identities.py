"""Who may take which step of an audit: names compared as people read them."""

from collections.abc import Collection, Iterator, Sequence

from modwatch.audits.evidence import Event, first_of
from modwatch.common.text import folded

#: Actor of the steps that no person takes.
MACHINE = "modwatch"

#: The steps that a person may be refused, in words.
_STEPS = {"approved": "approve it", "signed_off": "sign it off"}


def is_person(name: str) -> bool:
    """Return whether a name is that of a person, and not empty or that of the machine."""
    return folded(name) not in ("", MACHINE)


def conflict(
    chain: Sequence[Event],
    action: str,
    actor: str,
    *,
    four_eyes: bool,
    labellers: Collection[str] = (),
) -> str:
    """Return why `actor` may not take a step, `approved` or `signed_off`; empty if they may.

    `labellers` are those of the audit, who never approve or sign. With `four_eyes`, neither the
    planner approves, nor do planner or approver sign.

    >>> conflict([], "signed_off", "LAB1", four_eyes=False, labellers=["lab1"])
    "'LAB1' labelled for it and cannot sign it off"
    """
    if not is_person(actor):
        return f"{actor!r} is no person, who would answer for it"
    if folded(actor) in map(folded, labellers):
        return f"{actor!r} labelled for it and cannot {_STEPS[action]}"
    for earlier in ("planned", "approved") if four_eyes else ():
        event = first_of(chain, earlier)
        if event and earlier != action and folded(event.actor) == folded(actor):
            return f"{actor!r} {earlier} it and cannot {_STEPS[action]}: that takes another person"
    return ""


def conflicts(
    chain: Sequence[Event], *, four_eyes: bool, labellers: Collection[str]
) -> Iterator[str]:
    """Yield why steps of a chain were not those people's to take."""
    for number, event in enumerate(chain):
        if event.action in ("approved", "signed_off"):
            why = conflict(
                chain[:number], event.action, event.actor, four_eyes=four_eyes, labellers=labellers
            )
            if why:
                yield f"the step {event.action.replace('_', ' ')} does not count: {why}"
