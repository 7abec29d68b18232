"""One installation: its parts, opened from the settings, its web applications and its processes."""

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modwatch.installation.resources import Resources


def open_resources() -> AbstractContextManager["Resources"]:
    """Open the resources of this installation; only then is what they need imported."""
    from modwatch.installation import resources  # noqa: PLC0415

    return resources.open_resources()
