"""The names of columns: which can be shown, and which can be chosen."""

import re
from collections import Counter
from collections.abc import Sequence

#: Without a header, the names are a comment: only what looks like a name is shown.
_SHOWN = re.compile(r"[\w.:/ ()°%#-]{1,40}")


def shown_names(names: Sequence[str]) -> list[str]:
    """Return each name as it may be printed: one that looks like none by its position, from 1.

    >>> shown_names(["id", "Grad (°C)", "<script>alert(1)</script>", ""])
    ['id', 'Grad (°C)', 'column 3', 'column 4']
    """
    return [
        name if _SHOWN.fullmatch(name) and name.strip() else f"column {position}"
        for position, name in enumerate(names, start=1)
    ]


def usable_names(names: Sequence[str]) -> list[str]:
    """Return the names that a setting can hold, and that only one column has.

    >>> usable_names(["id", "text", "", "", "text", "two\\nlines"])
    ['id']
    """
    times = Counter(names)
    return [n for n in names if times[n] == 1 and n.strip() and n.isprintable()]
