"""The embedded PostgreSQL of a home, which is not a child of the stack's supervisor."""

from pathlib import Path

import psutil


def postgres_pid(home: Path) -> int | None:
    """Return the process of the PostgreSQL of a home; None: it does not run."""
    try:
        pid = int((home / "postgres" / "cluster" / "postmaster.pid").read_text().split()[0])
        process = psutil.Process(pid)
        running = process.name().startswith("postgres")
    except (OSError, ValueError, IndexError, psutil.Error):
        return None
    return pid if running and process.status() != psutil.STATUS_ZOMBIE else None


def stop_postgres(home: Path) -> bool:
    """Stop the PostgreSQL of a home if it runs without a user; return whether it did."""
    if postgres_pid(home) is None:
        return False
    from modwatch.review.embedded import embedded

    with embedded(home / "postgres"):
        pass  # the last user stops it
    return postgres_pid(home) is None
