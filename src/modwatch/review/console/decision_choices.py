"""The decisions that the policy offers for a comment, and the values that stand for them in forms.

1, 0            toxic, not toxic
1:hate.slur     toxic, with this policy code; 0:… likewise
skip:language   skip for this reason; escalate:… likewise
"""

import re
from collections.abc import Collection
from dataclasses import dataclass

from fastapi import HTTPException

from modwatch.review.console.i18n import Locale
from modwatch.review.console.review import DecisionRequest
from modwatch.review.policy.tree import Policy

_VERDICT = re.compile(r"(?P<action>[01]|skip|escalate)(:(?P<detail>[a-z][a-z0-9_.]{0,59}))?")


@dataclass(frozen=True, kw_only=True)
class Choice:
    """One possible decision."""

    verdict: str
    title: str
    #: One sentence, or empty.
    description: str = ""
    #: The digit key for it, if any.
    key: str | None = None


@dataclass(frozen=True, kw_only=True)
class Choices:
    """All possible decisions, in one language."""

    #: Toxic, with a top-level code that has a digit key.
    codes: tuple[Choice, ...]
    #: Toxic and not toxic, with every code.
    toxic: tuple[Choice, ...]
    fine: tuple[Choice, ...]
    skip: tuple[Choice, ...]
    escalate: tuple[Choice, ...]


def choices_of(policy: Policy, locale: Locale, *, severe: Collection[str] = ()) -> Choices:
    """Return the decisions that `policy` offers.

    The reasons `severe` to escalate come last: the first one is chosen by Enter alone.
    """

    def coded(label: int) -> tuple[Choice, ...]:
        titles = dict(codes_of(policy, label, locale))
        return tuple(
            Choice(
                verdict=f"{label}:{node.code}",
                title=titles[node.code],
                description=node.description.in_locale(locale),
                key=node.key if node.key and node.key.isdigit() else None,
            )
            for node in policy.nodes
            if node.label == label
        )

    def reasons(action: str) -> tuple[Choice, ...]:
        titles = reasons_of(policy, action, locale)
        return tuple(
            Choice(verdict=f"{action}:{reason}", title=title) for reason, title in titles.items()
        )

    top = {f"1:{node.code}" for node in policy.nodes if not node.parent}
    toxic = coded(1)
    return Choices(
        codes=tuple(choice for choice in toxic if choice.key and choice.verdict in top),
        toxic=toxic,
        fine=coded(0),
        skip=reasons("skip"),
        escalate=tuple(
            sorted(
                reasons("escalate"), key=lambda choice: choice.verdict.partition(":")[2] in severe
            )
        ),
    )


def codes_of(policy: Policy, label: int, locale: Locale) -> tuple[tuple[str, str], ...]:
    """Return the codes of a label with their titles, each after the title of its parent code."""
    titles = {node.code: node.title.in_locale(locale) for node in policy.nodes}
    return tuple(
        (node.code, " · ".join(titles[code] for code in (node.parent, node.code) if code))
        for node in policy.nodes
        if node.label == label
    )


def reasons_of(policy: Policy, action: str, locale: Locale) -> dict[str, str]:
    """Return the reasons for an action with their titles."""
    return {name: texts.in_locale(locale) for name, texts in policy.reasons.get(action, {}).items()}


def titles_of(policy: Policy, locale: Locale) -> dict[str, str]:
    """Return the title of every code, and of every reason for an action as `action:reason`."""
    titles = {node.code: node.title.in_locale(locale) for node in policy.nodes}
    for action in policy.reasons:
        for reason, title in reasons_of(policy, action, locale).items():
            titles[f"{action}:{reason}"] = title
    return titles


def request_of(verdict: str, lease_token: str, version: int | None, note: str) -> DecisionRequest:
    """Return the decision that a form's `verdict` stands for; raise 422 for an unknown one."""
    match = _VERDICT.fullmatch(verdict)
    if match is None:
        raise HTTPException(422, "unknown decision; go back and reload the page")
    action, detail = match["action"], match["detail"]
    common = {"lease_token": lease_token, "version": version, "note": note.strip() or None}
    if action in ("skip", "escalate"):
        return DecisionRequest(action=action, reason=detail, **common)
    return DecisionRequest(label=1 if action == "1" else 0, policy_code=detail, **common)
