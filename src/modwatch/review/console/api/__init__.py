"""Version 1 of the API."""

import datetime as dt
from typing import Annotated

from fastapi import Header, Path, Query

RecordId = Annotated[int, Path(ge=1, le=2**63 - 1)]
QueryDay = Annotated[dt.date, Query(description="UTC, inclusive.")]
IdempotencyKey = Annotated[
    str,
    Header(
        min_length=1,
        max_length=200,
        description="Any string, new for each decision; send the same one on a retry.",
        examples=["3f1c9a52-next"],
    ),
]
