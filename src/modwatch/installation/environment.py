"""What an installation needs of its machine, tried before anything is written."""

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from modwatch.common.errors import DatabaseError, StackError
from modwatch.review.database import now
from modwatch.review.lake_owner import require_own_lake
from modwatch.settings import Settings

if TYPE_CHECKING:
    from modwatch.installation.resources import Resources

#: How far the machine's clock may be from the database's; `clocks_differ` warns long before.
_CLOCKS = timedelta(hours=1)


def require_environment(resources: "Resources", *, at: datetime | None = None) -> None:
    """Try what reading a day needs: free space, and with a database its clock and its lake.

    Raises:
        StackError: a disk is nearly full.
        DatabaseError: the database is down, or its clock far from `at`, by default this machine's.
        SettingsError: the lake belongs to another review database.
    """
    require_space(resources.settings)
    if resources.settings.database_url is None:
        return
    apart = now(resources.database) - (at or datetime.now(UTC))
    if abs(apart) > _CLOCKS:
        raise DatabaseError(
            f"this machine's clock is {abs(apart) / timedelta(hours=1):,.1f} hours "
            f"{'ahead of' if apart < timedelta(0) else 'behind'} that of the database, so that a "
            "day may not be over; set both by a time service (NTP)"
        )
    require_own_lake(resources.database, resources.settings.lake_root)


def require_space(settings: Settings, *, least: int = 500_000_000) -> None:
    """Raise StackError unless `least` bytes are free for the home, and for a lake in a folder.

    >>> require_space(Settings(), least=0)
    """
    for setting, place in (("HOME", str(settings.home)), ("LAKE", settings.lake_root)):
        if "://" in place:
            continue  # an object store
        folder = Path(place).absolute()
        there = next(each for each in (folder, *folder.parents) if each.exists())
        if (free := shutil.disk_usage(there).free) < least:
            raise StackError(
                f"only {free / 1e6:,.0f} MB are free in {there}, and {least / 1e6:,.0f} MB are "
                f"needed; free some space, or set MODWATCH_{setting} to a folder on a larger disk"
            )
