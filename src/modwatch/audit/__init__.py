"""Recall audits: how much of what should be flagged is flagged, with intervals that hold."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modwatch.audit.required import required_labels, required_labels_stratified

__all__ = ["required_labels", "required_labels_stratified"]


def __getattr__(name: str) -> Any:
    # Airflow imports this package to parse a DAG (`orchestration` names an error of it), and scipy
    # alone would take longer than a DAG file may.
    if name in __all__:
        return getattr(import_module("modwatch.audit.required"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
