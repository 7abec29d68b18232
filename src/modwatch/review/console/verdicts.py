"""What the buttons of the page say, and what it means.

1, 0            toxic, not toxic
1:hate.slur     toxic, by this code of the policy; 0:… likewise
skip:language   give it back, for this reason; escalate:… to a lead
"""

import re
from dataclasses import dataclass

from fastapi import HTTPException

from modwatch.review.console.i18n import Locale
from modwatch.review.console.shapes import DecisionRequest
from modwatch.review.policy.tree import Policy

_VERDICT = re.compile(r"(?P<word>[01]|skip|escalate)(:(?P<more>[a-z][a-z0-9_.]{0,59}))?")


@dataclass(frozen=True, kw_only=True)
class Choice:
    """One thing that can be said of a comment."""

    verdict: str
    title: str
    #: One sentence, or nothing.
    description: str
    #: The figure that says it at once, if any.
    key: str | None


@dataclass(frozen=True, kw_only=True)
class Choices:
    """All that can be said, in one language."""

    #: Toxic, by an uppermost code.
    codes: tuple[Choice, ...]
    #: Toxic and not toxic, by every code.
    toxic: tuple[Choice, ...]
    fine: tuple[Choice, ...]
    skip: tuple[Choice, ...]
    escalate: tuple[Choice, ...]


def choices_of(policy: Policy, locale: Locale) -> Choices:
    """Return what can be said by `policy`."""

    def coded(label: int, *, roots: bool = False) -> tuple[Choice, ...]:
        titles = {node.code: node.title.of(locale) for node in policy.nodes}
        return tuple(
            Choice(
                verdict=f"{label}:{node.code}",
                title=" · ".join(titles[code] for code in (node.parent, node.code) if code),
                description=node.description.of(locale),
                key=node.key if node.key and node.key.isdigit() else None,
            )
            for node in policy.nodes
            if node.label == label and not (roots and (node.parent or not node.key))
        )

    def reasons(action: str) -> tuple[Choice, ...]:
        return tuple(
            Choice(verdict=f"{action}:{reason}", title=texts.of(locale), description="", key=None)
            for reason, texts in policy.reasons.get(action, {}).items()
        )

    return Choices(
        codes=tuple(each for each in coded(1, roots=True) if each.key),
        toxic=coded(1),
        fine=coded(0),
        skip=reasons("skip"),
        escalate=reasons("escalate"),
    )


def request_of(verdict: str, lease_token: str, version: int | None, note: str) -> DecisionRequest:
    """Return what a button means for a leased item; raise 422 for one that the page has not."""
    found = _VERDICT.fullmatch(verdict)
    if found is None:
        raise HTTPException(422, "the verdict is none of the page's; go back and reload it")
    word, more = found["word"], found["more"]
    common = {"lease_token": lease_token, "version": version, "note": note.strip() or None}
    if word in ("skip", "escalate"):
        return DecisionRequest(action=word, reason=more, **common)
    label = 1 if word == "1" else 0
    return DecisionRequest(label=label, policy_code=more, **common)
