"""The run of an audit in MLflow."""

from collections.abc import Mapping
from datetime import date
from typing import Any

from modwatch.common.mlflow_client import (
    AUDIT_EXPERIMENT,
    DESCRIPTION_TAG,
    connect,
    experiment_id,
    log_points,
    log_texts,
    points_of,
    replacing_run,
)

#: Parameters and metrics of the run that are fields of the result.
_AUDIT_PARAMS = ("plan", "model_version", "threshold")
_AUDIT_COUNTS = ("comments", "flagged", "drawn", "labelled", "decisions", "labellers")


def publish_audit(
    result: Mapping[str, Any],
    *,
    description: str,
    files: Mapping[str, bytes],
    tracking_uri: str,
    experiment: str = AUDIT_EXPERIMENT,
) -> str:
    """Publish the run of an audit in place of an earlier one; return its id.

    `result` is that of `modwatch.statistics.audit.results`, `description` is Markdown, `files`
    become the artifacts. An estimate is three metrics, `recall`, `recall_low` and `recall_high`; an
    insufficient one has none. The run is dated at the last day of the audit's period.

    Raises:
        TrackingError: MLflow cannot be reached, or another process replaced the run meanwhile.
    """
    tags = {"kind": "audit", "audit": str(result["audit"])}
    first, last = (date.fromisoformat(result[name]) for name in ("first_day", "last_day"))
    missing = [estimate["metric"] for estimate in result["figures"] if estimate["status"] != "ok"]
    status = f"insufficient: {', '.join(missing)}" if missing else "ok"
    more = {"period": f"{first} to {last}", "status": status, DESCRIPTION_TAG: description}
    with connect(tracking_uri) as client:
        in_experiment = experiment_id(client, experiment)
        with replacing_run(client, in_experiment, tags, name=tags["audit"], day=last) as run_id:
            params = {name: str(result[name]) for name in _AUDIT_PARAMS}
            log_texts(client, run_id, params=params, tags=more)
            log_points(
                client, run_id, points_of({last: audit_metrics(result)}, first=last), first=last
            )
            for name, content in files.items():
                client.log_text(run_id, content.decode(), name)
    return run_id


def audit_metrics(result: Mapping[str, Any]) -> dict[str, float]:
    """Return the metrics of an audit's run, by key; a bound is one end without a value.

    >>> recall = {"metric": "recall", "status": "ok", "value": 0.8, "low": 0.7, "high": 0.9}
    >>> audit_metrics({"figures": [recall], "comments": 1000})
    {'recall': 0.8, 'recall_low': 0.7, 'recall_high': 0.9, 'comments': 1000.0}
    """
    estimates = {
        f"{estimate['metric']}{suffix}": float(estimate[column])
        for estimate in result["figures"]
        for column, suffix in (("value", ""), ("low", "_low"), ("high", "_high"))
        if estimate[column] is not None
    }
    return estimates | {name: float(result[name]) for name in _AUDIT_COUNTS if name in result}
