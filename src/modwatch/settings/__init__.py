"""Settings, read once at the edge from environment variables `MODWATCH_…`."""

from modwatch.settings.fields import EMBEDDED, Settings
from modwatch.settings.loading import load_settings
from modwatch.settings.tables import current_settings_table

__all__ = [
    "EMBEDDED",
    "Settings",
    "current_settings_table",
    "load_settings",
]
