"""How many examples a property is tried on."""

from hypothesis import settings


def examples(count: int) -> settings:
    """Return the settings for `count` examples, in the quick profile for at most that profile's."""
    profile = settings()
    quick = profile.max_examples == settings.get_profile("quick").max_examples
    return settings(max_examples=min(count, profile.max_examples) if quick else count)
