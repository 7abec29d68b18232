"""Version 1 of the API, one noun a module."""

from typing import Annotated

from fastapi import Header, Path

ItemId = Annotated[int, Path(ge=1, le=2**63 - 1)]
IdempotencyKey = Annotated[
    str,
    Header(
        min_length=1,
        max_length=200,
        description="Any string of your own, new for each decision; send it again on a retry.",
        examples=["3f1c9a52-next"],
    ),
]
