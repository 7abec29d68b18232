"""Days of sound and broken comments in files, and what is asked of every refusal."""

import datetime
import json
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from installation import MONDAY, Installation, assert_same, picture_of
from modwatch.common.errors import ModwatchError
from modwatch.installation.resources import open_resources

#: Stands in every text of this module, so that one search tells where texts got.
MARK = "quillfeather"


def good(number: int, day: datetime.date = MONDAY, **fields: Any) -> dict[str, Any]:
    """Return one comment as a source gives it, sound but for `fields`."""
    row = {
        "comment_id": f"{day}/{number}",
        "created_at": f"{day}T12:00:{number % 60:02}+00:00",
        "text": f"an invented remark, number {number}, {MARK}",
        "language": "en",
        "label": number % 2,
    }
    return {**row, **fields}


def write_json(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def refused(call: Callable[[], object], kind: type[ModwatchError], *words: str) -> None:
    """Assert that `call` raises `kind` with these words, and never a comment's."""
    with pytest.raises(kind) as caught:
        call()
    message = str(caught.value)
    assert [word for word in words if word not in message] == []
    assert "\n" not in message
    assert MARK not in "".join(traceback.format_exception(caught.value))


def quarantined(home: Installation, day: datetime.date = MONDAY) -> list[str]:
    """Return the rule of each refused row, after checking that no row was lost."""
    with open_resources(home.settings) as resources:
        rules = resources.lake.table("quarantine", day, columns=["rule"]).column(0).to_pylist()
        assert resources.lake.count("landed", day) == resources.lake.count("comments", day) + len(
            rules
        )
    return sorted(rules)


def assert_again_the_same(home: Installation, *steps: str, day: datetime.date = MONDAY) -> None:
    before = picture_of(home)
    home.run(*steps, day=day)
    assert_same(before, picture_of(home))
