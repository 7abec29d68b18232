"""Which review database a lake belongs to: two installations would replace each other's days.

The lake has a file with a random name, and the database an event that claims it. Both come back
with a backup, and move with the installation.
"""

import secrets

from sqlalchemy import Engine, select

from modwatch.common.errors import SettingsError
from modwatch.data.lake.files import Folder
from modwatch.review.database import at_once
from modwatch.review.events import record_event
from modwatch.review.tables import event

_ACTION, _FILE = "claim_lake", "_owner"


def claim_lake(database: Engine, root: str) -> None:
    """Record that the lake belongs to this review database from now on.

    Raises:
        LakeError: the lake cannot be written.
    """
    name = secrets.token_hex(16)
    with database.begin() as connection:
        record_event(connection, _ACTION, actor_id=None, lake=name)
    _folder(root).write(_FILE, name.encode())


def require_own_lake(database: Engine, root: str) -> None:
    """Raise SettingsError if the lake belongs to another review database; claim it if to none."""
    content = _folder(root).read(_FILE)
    if content is None:
        claim_lake(database, root)
        return
    name = event.c.details["lake"].astext
    claimed = select(event.c.id).where(event.c.action == _ACTION, name == content.decode())
    if not at_once(database, claimed.limit(1)):
        raise SettingsError(
            f"the lake {root} belongs to another installation, with another review database: both "
            "would replace each other's days; set MODWATCH_LAKE to a lake of its own, or, if the "
            "other will write no more, run `modwatch migrate --claim-lake`"
        )


def _folder(root: str) -> Folder:
    return Folder(root=root, holds="name of the lake's owner")
