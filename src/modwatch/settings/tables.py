"""The settings as tables: the defaults for the documentation, the current values for operators."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from pydantic import SecretStr
from pydantic.fields import FieldInfo

from modwatch.settings.fields import SOURCE_KIND, Settings, Variable, variables
from modwatch.settings.sources import SOURCES

#: User and password of a URL.
_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]+(?=@)")


def settings_table() -> str:
    """Return every setting as a Markdown table: variable, default, meaning.

    One that several kinds of sources have stands there once. A kind of another package, as of the
    laboratory, is described where it is.
    """
    kinds = dict[tuple[str, str, str], list[str]]()
    for variable in variables():
        if variable.source and not SOURCES[variable.source].__module__.startswith("modwatch."):
            continue
        row = (variable.name, _default(variable.info), str(variable.info.description))
        kinds.setdefault(row, []).extend([variable.source] if variable.source else [])
    rows = ["| variable | default | meaning |", "|---|---|---|"]
    for (name, default, meaning), sources in kinds.items():
        prefix = f"source {', '.join(map('`{}`'.format, sources))}: " if sources else ""
        rows.append(f"| `{name}` | {default} | {prefix}{meaning} |")
    return "\n".join(rows)


def _default(info: FieldInfo) -> str:
    if info.is_required():
        return "required"
    value = _text(info.get_default(call_default_factory=True))
    return f"`{value}`" if value else ""


def current_settings_table(
    settings: Settings, from_file: Mapping[str, Path] = MappingProxyType({})
) -> str:
    """Return the values of `settings` as a plain-text table: variable, value, origin, meaning.

    The origin is `environment`, `default`, or the settings file of the variables in `from_file`.
    Secrets, and credentials in URLs, are `****`.

    >>> table = current_settings_table(Settings(sampling_salt="hunter2", window_days=7))
    >>> next(line for line in table.splitlines() if "SALT" in line).split()[:3]
    ['MODWATCH_SAMPLING_SALT', '****', 'environment']
    """
    files = {name.upper(): str(path) for name, path in from_file.items()}
    rows = [("variable", "value", "origin", "meaning")]
    for variable in variables():
        if variable.source in (None, settings.source and settings.source.kind):
            value, is_set = _current(settings, variable)
            origin = files.get(variable.name, "environment") if is_set else "default"
            rows.append((variable.name, value, origin, str(variable.info.description)))
    names, values, origins = (max(len(row[column]) for row in rows) for column in range(3))
    return "\n".join(f"{a:{names}}  {b:{values}}  {c:{origins}}  {d}" for a, b, c, d in rows)


def _current(settings: Settings, variable: Variable) -> tuple[str, bool]:
    """Return the value of a variable as text, and whether it was set."""
    if variable is SOURCE_KIND:
        return settings.source.kind if settings.source else "", settings.source is not None
    owner = (variable.source and settings.source) or settings
    return _text(getattr(owner, variable.field)), variable.field in owner.model_fields_set


def _text(value: object) -> str:
    """Return a value in one line; empty for one that is not set."""
    if isinstance(value, SecretStr):
        return "****" if value.get_secret_value() else ""
    if value in (None, (), {}):
        return ""
    text = json.dumps(value, default=str) if isinstance(value, dict | tuple) else str(value)
    return _CREDENTIALS.sub("****", " ".join(text.split()))
