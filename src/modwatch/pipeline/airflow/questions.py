"""Questions of Airflow to people: options and a note, answered under *Required Actions*."""

import datetime
from collections.abc import Mapping
from copy import copy
from typing import Any

from airflow.providers.standard.operators.hitl import HITLOperator
from airflow.sdk import Param
from airflow.sdk.exceptions import ParamValidationError

#: Longer than any answer takes.
_RESPONSE_TIMEOUT = datetime.timedelta(days=365)


def field(
    kind: str, title: str, description: str | None = None, *, default: Any = None, **schema: Any
) -> Param:
    """Return a field of a form, of this JSON type; it may stay empty if it has no default.

    `schema` has its limits, by their names in JSON Schema, and its section: Airflow shows fields
    without a section first; the others are collapsed.
    """
    types = ["null", kind] if default is None else kind
    return Param(default, description, type=types, title=title, **schema)


class Question(HITLOperator):  # type: ignore[misc]
    """A question with options, and a note whose help text is `note`."""

    subject: str

    def __init__(self, *, note: str, **kwargs: Any) -> None:
        super().__init__(response_timeout=_RESPONSE_TIMEOUT, **kwargs)
        self._form = {"note": field("string", "Note", note, maxLength=500)}

    # Airflow takes the fields of the run's form for fields of the answer.
    @property
    def serialized_params(self) -> dict[str, Any]:
        """The form of the answer."""
        return {name: param.serialize() for name, param in self._form.items()}

    def validate_params_input(self, params_input: Mapping[str, Any]) -> None:
        """Raise ParamValidationError for an answer that the form does not have."""
        if unknown := params_input.keys() - self._form:
            raise ParamValidationError(f"the answer has no field {min(unknown)!r}")
        for name, value in params_input.items():
            copy(self._form[name]).resolve(value)


def respondent(answer: Mapping[str, Any]) -> dict[str, str]:
    """Return who answered (`actor`), and their `note`."""
    user = answer.get("responded_by_user") or {}
    note = (answer.get("params_input") or {}).get("note") or ""
    return {"actor": str(user.get("name") or user.get("id") or "unknown"), "note": str(note)}
