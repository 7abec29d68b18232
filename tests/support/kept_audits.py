"""Audits that are carried out once and kept, so that tests start from a copy of one of their steps.

A test changes its copy as it likes: files, register and database are those of that test alone.
"""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from databases import empty
from sqlalchemy import Engine, text

from installation import Installation
from modwatch.installation.resources import Resources, open_resources
from modwatch.review.tables import metadata

_SEQUENCES = "SELECT format('%I.%I', schemaname, sequencename), last_value FROM pg_sequences"


@dataclass(frozen=True, kw_only=True)
class Kept:
    """An installation as it was at one moment: its folder, and every row of its database."""

    folder: Path
    rows: dict[str, bytes]
    sequences: dict[str, int | None]

    @contextmanager
    def opened(self, owner: Engine, home: Installation) -> Iterator[Resources]:
        """Yield a copy, in the folder and the database of `home`."""
        shutil.copytree(self.folder, home.home, dirs_exist_ok=True)
        empty(owner)
        with owner.begin() as connection:
            connection.execute(text("SET LOCAL session_replication_role = replica"))
            connection.execute(text("DELETE FROM event_chain"))
            cursor = connection.connection.cursor()
            for table, content in self.rows.items():
                with cursor.copy(f"COPY {table} FROM STDIN") as copy:
                    copy.write(content)
            for name, value in self.sequences.items():
                if value is not None:
                    connection.execute(text(f"SELECT setval('{name}', {value})"))
        with open_resources(home.settings) as resources:
            yield resources


def keep(resources: Resources, owner: Engine, folder: Path) -> Kept:
    """Copy an installation as it is now."""
    shutil.copytree(resources.settings.home, folder)
    rows = {}
    with owner.begin() as connection:
        cursor = connection.connection.cursor()
        for table in metadata.tables:
            with cursor.copy(f"COPY {table} TO STDOUT") as copy:
                rows[table] = b"".join(map(bytes, copy))
        sequences = {row[0]: row[1] for row in connection.execute(text(_SEQUENCES))}
    return Kept(folder=folder, rows=rows, sequences=sequences)


def keep_steps(
    resources: Resources,
    steps: dict[str, Callable[[Resources], object]],
    owner: Engine,
    folder: Path,
) -> dict[str, Kept]:
    """Take steps; return what was there after each."""
    kept = {}
    for name, step in steps.items():
        step(resources)
        kept[name] = keep(resources, owner, folder / name)
    return kept
