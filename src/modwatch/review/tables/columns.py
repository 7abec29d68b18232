"""What all tables share: their registry, a type, and a recurring column."""

from typing import Any

from sqlalchemy import Column, DateTime, MetaData
from sqlalchemy.types import UserDefinedType

metadata = MetaData()


class TransactionId(UserDefinedType[str]):
    """PostgreSQL's `xid8`: which transaction wrote a row, never reused."""

    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        """Return the type's name in SQL."""
        return "xid8"


def moment(name: str) -> Column[Any]:
    """Return a column with the time at which the row was written, which the database fills."""
    return Column(name, DateTime(timezone=True), nullable=False)
