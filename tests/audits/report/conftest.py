"""Audits to report on: one of one stage, one of two."""

import json
from typing import Any

import pytest
from audit_making import CONFIRMED, finished

from modwatch.audits import files

Document = dict[str, Any]


@pytest.fixture(scope="session")
def done():
    return finished()


@pytest.fixture(scope="session")
def adaptive():
    return finished(stages=2, confirmations=CONFIRMED)


@pytest.fixture
def result(adaptive):
    """The result of the adaptive audit, to be changed at will."""
    return json.loads(adaptive.folder[files.RESULT])


@pytest.fixture
def earlier(result):
    """Return the results of so many earlier audits, one a month, each with other shares."""

    def of(number: int) -> list[Document]:
        made = []
        for month in range(1, number + 1):
            figures = [
                figure
                | {
                    end: figure[end] * (0.5 + 0.04 * month)
                    for end in ("low", "value", "high")
                    if figure[end] is not None
                }
                for figure in result["figures"]
            ]
            day = f"2025-{month:02d}"
            fields = {"first_day": f"{day}-01", "last_day": f"{day}-28", "figures": figures}
            made.append(result | fields | {"audit": day})
        return made

    return of
