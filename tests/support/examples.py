"""How many examples a property is tried on."""

from hypothesis import settings


def examples(count: int) -> settings:
    """Return the settings for `count` examples, in the quick profile for at most that profile's."""
    quick = settings.get_current_profile_name() == "quick"
    return settings(max_examples=min(count, settings().max_examples) if quick else count)
