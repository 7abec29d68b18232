"""What the pages of leads and admins share."""

import datetime as dt
import secrets
from collections.abc import Mapping
from typing import Annotated, ClassVar

from fastapi import Form

from modwatch.review.console.render import Page
from modwatch.review.console.words import WORDS
from modwatch.review.policy.tree import Policy

FormId = Annotated[int, Form(ge=1, le=2**63 - 1)]


class ListPage(Page):
    """A page of tables."""

    #: The words of the queue for people.
    words: ClassVar[Mapping[str, str]] = WORDS

    @staticmethod
    def time(seconds: float) -> dt.timedelta:
        """Return seconds as what `formats.age` takes."""
        return dt.timedelta(seconds=seconds)


def new_key() -> str:
    """Return an idempotency key for a form: sent twice, it does once what it says."""
    return f"page-{secrets.token_urlsafe(16)}"


def codes_of(policy: Policy, label: int, locale: str) -> tuple[tuple[str, str], ...]:
    """Return the codes of a label with their titles, those below another one after it."""
    titles = {node.code: node.title.of(locale) for node in policy.nodes}
    return tuple(
        (
            node.code,
            f"{titles[node.parent]}: {titles[node.code]}" if node.parent else titles[node.code],
        )
        for node in policy.nodes
        if node.label == label
    )


def reasons_of(policy: Policy, action: str, locale: str) -> dict[str, str]:
    """Return the reasons of an action with their titles."""
    return {word: texts.of(locale) for word, texts in policy.reasons.get(action, {}).items()}


def titles_of(policy: Policy, locale: str) -> dict[str, str]:
    """Return the title of every code, and of every reason of an action as `action:reason`."""
    titles = {node.code: node.title.of(locale) for node in policy.nodes}
    for action, words in policy.reasons.items():
        titles |= {f"{action}:{word}": texts.of(locale) for word, texts in words.items()}
    return titles
