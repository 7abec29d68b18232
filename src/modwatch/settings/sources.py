"""The settings of the source of comments, `MODWATCH_SOURCE__…`: a class for each kind.

The kinds are the entry points of the group `modwatch.sources`.
"""

from functools import reduce
from importlib.metadata import EntryPoint
from operator import or_
from typing import TYPE_CHECKING, Annotated

from pydantic import BeforeValidator, Field

from modwatch.common.errors import SettingsError
from modwatch.common.installed import plugins
from modwatch.common.source_settings import SourceSettings


def _kind(entry: EntryPoint) -> type[SourceSettings]:
    """Return the class of an entry point; SettingsError for another object."""
    found = entry.load()
    if not (isinstance(found, type) and issubclass(found, SourceSettings)):
        problem = "is no class of SourceSettings"
    elif found.model_fields["kind"].default != entry.name:
        problem = f"has no field `kind` with the default {entry.name!r}"
    else:
        return found
    raise SettingsError(f"{entry.value}, the kind of source {entry.name!r}, {problem}")


#: The class of each kind, in the order of the documentation.
SOURCES = {kind: _kind(entry) for kind, entry in plugins("modwatch.sources").items()}


def _with_kind(given: object) -> object:
    """Return the settings of a source with its kind, if only one kind can have just these."""
    if not isinstance(given, dict) or "kind" in given:
        return given
    names = {str(name).lower() for name in given}
    fitting = [
        kind
        for kind, source in SOURCES.items()
        if names <= source.model_fields.keys()
        and {name for name, setting in source.model_fields.items() if setting.is_required()}
        <= names
    ]
    return {**given, "kind": fitting[0]} if len(fitting) == 1 else given


if TYPE_CHECKING:
    AnySource = SourceSettings
else:  # the kinds are known once the program runs
    AnySource = Annotated[
        Annotated[reduce(or_, SOURCES.values()), Field(discriminator="kind")],
        BeforeValidator(_with_kind),
    ]
