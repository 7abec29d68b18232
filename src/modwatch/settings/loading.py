"""Reads the settings from the environment; an error names the variable and what it may be."""

import datetime
import json
import os
import re
from collections.abc import Iterable
from difflib import get_close_matches
from types import UnionType
from typing import Literal, Union, get_args, get_origin

from pydantic import SecretStr, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails
from pydantic_settings import SettingsError as NotJsonError

from modwatch.common.errors import SettingsError
from modwatch.settings.fields import SOURCE_KIND, Settings, Variable, variables

#: Variables with the same prefix that are not settings: the demo's data, the processes of a stack,
#: and the settings file.
_OTHERS = {"MODWATCH_DATA", "MODWATCH_STACK", "MODWATCH_SETTINGS_FILE"}
_PREFIX = "MODWATCH_"
_JSON: dict[object, str] = {
    dict: 'a JSON map such as {"a": "b"}',
    tuple: 'a JSON list such as ["a", "b"]',
}
_TYPES: dict[object, str] = {
    int: "an integer",
    float: "a number",
    bool: "true or false",
    datetime.date: "a date such as 2026-01-31",
    **_JSON,
}


def load_settings() -> Settings:
    """Return the settings of this process, from the environment.

    Raises:
        SettingsError: a value is invalid, a required variable is missing, or an unknown variable
            begins with `MODWATCH_`.
    """
    _reject_unknown(os.environ)
    try:
        return Settings()
    except ValidationError as exc:
        raise SettingsError("; ".join(map(_message, exc.errors()))) from None
    except NotJsonError:  # its own message names the field only, not the variable of a source
        raise SettingsError("; ".join(_not_json())) from None


def _reject_unknown(names: Iterable[str]) -> None:
    """Reject a misspelt variable, which pydantic would ignore."""
    known = {variable.name for variable in variables()} | _OTHERS | {"MODWATCH_SOURCE"}
    maps = {variable.name for variable in variables() if _type(variable.info) is dict}
    for name in names:
        upper = name.upper()  # pydantic ignores the case
        if not upper.startswith(_PREFIX) or upper in known or upper.rpartition("__")[0] in maps:
            continue
        near = get_close_matches(upper[len(_PREFIX) :], {name[len(_PREFIX) :] for name in known}, 1)
        remedy = f"did you mean {_PREFIX}{near[0]}?" if near else "unset it"
        raise SettingsError(f"{name} is not a setting of Modwatch; {remedy}")


def _message(error: ErrorDetails) -> str:
    """Return one error of pydantic in terms of environment variables; secrets are not shown."""
    if error["type"] == "value_error":  # from a validator of ours
        return str(error["ctx"]["error"])
    variable = _variable(error["loc"])
    kind = f"{SOURCE_KIND.name}={''.join(map(str, error['loc'][1:2]))}"
    match error["type"]:
        case "missing":
            return f"{kind} requires {variable.name}; set it ({variable.info.description})"
        case "extra_forbidden":
            return f"{variable.name} does not apply to {kind}; unset it"
        case "union_tag_not_found":
            return f"{variable.name} is not set; set it to {_expected(variable.info)}"
        case "union_tag_invalid":
            return _invalid(variable, error["ctx"]["tag"])
        case _:
            return _invalid(variable, error["input"] if variable is not SOURCE_KIND else None)


def _invalid(variable: Variable, value: object) -> str:
    secret = SecretStr in (variable.info.annotation, *get_args(variable.info.annotation))
    must = f"{variable.name} must be {_expected(variable.info)}"
    if secret or not isinstance(value, str) or "@" in value:  # a URL may have a password
        return must
    plain = re.fullmatch(r"[\w.+-]+", value)
    return f"{must}, got {value if plain else repr(value)}"


def _variable(loc: tuple[int | str, ...]) -> Variable:
    """Return the variable of an error at `loc`: a field, or `source`, the kind and a field."""
    if loc[0] != "source":
        source, field = None, loc[0]
    elif len(loc) < 3:
        return SOURCE_KIND
    else:
        source, field = loc[1], loc[2]
    for variable in variables():
        if (variable.source, variable.field) == (source, field):
            return variable
    name = f"MODWATCH_SOURCE__{field}".upper()  # known to another kind of source
    return Variable(name=name, field=str(field), info=FieldInfo())


def _type(info: FieldInfo) -> object:
    """Return the type of a field's values: `date` of `date | None`, `dict` of `dict[str, str]`."""
    annotation = info.annotation
    if get_origin(annotation) in (Union, UnionType):
        annotation = get_args(annotation)[0]
    return get_origin(annotation) or annotation


def _expected(info: FieldInfo) -> str:
    """Return what a field may be, such as `a number in (0, 1]`."""
    kind = _type(info)
    if kind is Literal:
        *others, last = get_args(info.annotation)
        return f"{', '.join(others)} or {last}"
    bounds = {
        name: getattr(bound, name)
        for bound in info.metadata
        for name in ("gt", "ge", "lt", "le")
        if hasattr(bound, name)
    }
    low, high = bounds.get("gt", bounds.get("ge")), bounds.get("lt", bounds.get("le"))
    text = _TYPES.get(kind, "valid text")
    if low is None:
        return text
    if high is None:
        return f"{text} of at least {low}"
    return (
        f"{text} in {'(' if 'gt' in bounds else '['}{low}, {high}{')' if 'lt' in bounds else ']'}"
    )


def _not_json() -> Iterable[str]:
    """Yield a message for each variable of the environment that should be JSON and is not."""
    formats = {variable.name: _JSON.get(_type(variable.info)) for variable in variables()}
    for name, value in os.environ.items():
        try:
            json.loads(value if formats.get(name.upper()) else "{}")
        except ValueError:
            yield f"{name} is not JSON; use {formats[name.upper()]}"
