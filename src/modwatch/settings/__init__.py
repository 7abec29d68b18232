"""Settings, read once at the edge from environment variables `MODWATCH_…`."""

from modwatch.settings.fields import EMBEDDED, Settings
from modwatch.settings.loading import load_settings
from modwatch.settings.sources import (
    CommunitySourceSettings,
    FileSourceSettings,
    ReplaySourceSettings,
    SourceSettings,
    SqlSourceSettings,
)
from modwatch.settings.tables import current_settings_table, settings_table

__all__ = [
    "EMBEDDED",
    "CommunitySourceSettings",
    "FileSourceSettings",
    "ReplaySourceSettings",
    "Settings",
    "SourceSettings",
    "SqlSourceSettings",
    "current_settings_table",
    "load_settings",
    "settings_table",
]
