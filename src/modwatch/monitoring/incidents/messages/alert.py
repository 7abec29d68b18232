"""A notification, and the wording that all of them share."""

import datetime
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


@dataclass(frozen=True, kw_only=True)
class Alert:
    """A notification, the same on every channel."""

    #: Idempotency key: the same whenever the alert is sent again.
    key: str
    #: One line.
    title: str
    #: Plain text of a few lines.
    text: str
    #: The content as data: names, days, numbers.
    facts: Mapping[str, Any]
    #: Pages to open, by name.
    links: Mapping[str, str] = field(default_factory=dict)

    @property
    def payload(self) -> dict[str, Any]:
        """The alert as one JSON object."""
        own = {"key": self.key, "title": self.title, "text": self.text, "links": dict(self.links)}
        return {**self.facts, **own}


def header_safe(text: str) -> str:
    r"""Return `text` with each character that is not allowed in a header replaced by `_`.

    >>> header_safe("a b\r\nBcc: c")
    'a_b__Bcc:_c'
    """
    return re.sub(r"[^\x21-\x7e]", "_", text)


def written(day: datetime.date) -> str:
    """Return a day in words.

    >>> written(datetime.date(2026, 3, 12))
    '12 March 2026'
    """
    return f"{day.day} {_MONTHS[day.month - 1]} {day.year}"
