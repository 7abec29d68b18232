"""One MLflow run an audit, in an experiment of their own: figures, pages and files side by side."""

from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any

from modwatch.tracking.client import connect, experiment_id, retire_others
from modwatch.tracking.points import midnight_ms

EXPERIMENT = "modwatch-audits"

_NOTE = "mlflow.note.content"  # MLflow shows this tag as the description

_PARAMS = ("plan", "model_version", "threshold")
_COUNTS = ("comments", "flagged", "drawn", "labelled", "decisions", "labellers")


def publish_audit(
    result: Mapping[str, Any],
    *,
    words: str,
    files: Mapping[str, bytes],
    tracking_uri: str,
    experiment: str = EXPERIMENT,
) -> str:
    """Return the id of the audit's run, which from now on is the only one of that audit.

    `result` is that of `modwatch.audit.results`, `words` its description in Markdown, `files` what
    goes to the artifacts. A figure is three metrics, `recall`, `recall_low` and `recall_high`; one
    that is insufficient has none. The run stands at the end of the audit's period.

    Raises:
        TrackingError: MLflow cannot be reached, or another process replaced the run meanwhile.
    """
    tags = {"kind": "audit", "audit": str(result["audit"])}
    first, last = (date.fromisoformat(result[name]) for name in ("first_day", "last_day"))
    with connect(tracking_uri) as client:
        in_experiment = experiment_id(client, experiment)
        run = client.create_run(
            in_experiment, start_time=midnight_ms(last), tags=tags, run_name=tags["audit"]
        )
        run_id = str(run.info.run_id)
        told = tags | {"period": f"{first} to {last}", _NOTE: words, "status": _status(result)}
        _log(client, run_id, result, told, midnight_ms(last))
        for name, content in files.items():
            client.log_text(run_id, content.decode(), name)
        client.set_terminated(run_id, end_time=midnight_ms(last + timedelta(days=1)))
        retire_others(client, in_experiment, tags, keep=run_id)
    return run_id


def audit_metrics(result: Mapping[str, Any]) -> dict[str, float]:
    """Return the metrics of an audit's run, by key.

    >>> figure = {"metric": "recall", "status": "ok", "value": 0.8, "low": 0.7, "high": 0.9}
    >>> audit_metrics({"figures": [figure], "comments": 1000})
    {'recall': 0.8, 'recall_low': 0.7, 'recall_high': 0.9, 'comments': 1000.0}
    """
    figures = {
        key: float(figure[end])
        for figure in result["figures"]
        if figure["status"] == "ok"
        for key, end in (
            (figure["metric"], "value"),
            (f"{figure['metric']}_low", "low"),
            (f"{figure['metric']}_high", "high"),
        )
    }
    return figures | {name: float(result[name]) for name in _COUNTS if name in result}


def _status(result: Mapping[str, Any]) -> str:
    missing = [figure["metric"] for figure in result["figures"] if figure["status"] != "ok"]
    return f"insufficient: {', '.join(missing)}" if missing else "ok"


def _log(
    client: Any, run_id: str, result: Mapping[str, Any], tags: Mapping[str, str], at_ms: int
) -> None:
    from mlflow.entities import Metric, Param, RunTag

    client.log_batch(
        run_id,
        metrics=[Metric(key, value, at_ms, 0) for key, value in audit_metrics(result).items()],
        params=[Param(name, str(result[name])) for name in _PARAMS],
        tags=[RunTag(*item) for item in tags.items()],
    )
