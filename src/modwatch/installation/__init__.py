"""One installation: its parts, opened from the settings, its web applications and its processes."""
