"""What all tables share: their registry, a type, and recurring columns and constraints."""

from typing import Any

from sqlalchemy import CheckConstraint, Column, DateTime, LargeBinary, MetaData, func, text
from sqlalchemy.dialects.postgresql.base import ischema_names
from sqlalchemy.types import UserDefinedType

metadata = MetaData(
    naming_convention={
        "ix": "%(table_name)s_%(column_0_N_name)s_idx",
        "uq": "%(table_name)s_%(column_0_N_name)s_key",
        "ck": "%(table_name)s_%(constraint_name)s_check",
        "fk": "%(table_name)s_%(column_0_N_name)s_fkey",
        "pk": "%(table_name)s_pkey",
    }
)


class TransactionId(UserDefinedType[str]):
    """PostgreSQL's `xid8`: which transaction wrote a row, never reused."""

    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        """Return the type's name in SQL."""
        return "xid8"


ischema_names["xid8"] = TransactionId  # for reflection


def one_of(column: str, values: tuple[str, ...]) -> CheckConstraint:
    """Return the constraint that `column` holds one of `values`."""
    listed = ", ".join(f"'{value}'" for value in values)
    return CheckConstraint(f"{column} IN ({listed})", name=column)


def moment(name: str) -> Column[Any]:
    """Return a column with the time at which the row was written."""
    return Column(name, DateTime(timezone=True), nullable=False, server_default=func.now())


def salt(name: str) -> Column[Any]:
    """Return a column with a random salt, with which the ledger commits to texts of the row."""
    return Column(name, LargeBinary, server_default=text("uuid_send(gen_random_uuid())"))
