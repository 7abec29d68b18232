"""Local folders with comments in them are for the user who runs Modwatch."""

import logging
from pathlib import Path
from urllib.parse import unquote, urlsplit

_log = logging.getLogger(__name__)

#: Folders that were looked at, so that each is warned of once in a process.
_seen: set[Path] = set()


def keep_private(root: str) -> None:
    """Create the folder `root` for its owner only (mode 0700), if it is local and does not exist.

    What is inside is then closed to others, whatever its own mode. Others may want a folder that
    exists to be readable for a group, so it is not changed: a warning names the command. An object
    store has its own rules.
    """
    folder = _local(root)
    if folder is None or folder in _seen:
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        if folder.stat().st_mode & 0o077:
            _log.warning(
                "Other users of this machine may read the comments in %s; run: chmod 700 '%s'",
                folder,
                folder,
                extra={"event": "lake.readable", "folder": str(folder)},
            )
    _seen.add(folder)


def _local(root: str) -> Path | None:
    parts = urlsplit(root)
    if parts.scheme == "file":
        return Path(unquote(parts.path))
    return None if "://" in root else Path(root).expanduser().absolute()
