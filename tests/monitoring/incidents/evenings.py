"""Days of figures in a lake, evaluated evening by evening, and what receivers got of it."""

import datetime

import pyarrow as pa
from estimates import put_estimates
from receivers import Webhook

from modwatch.data.lake.schemas import DRIFT
from modwatch.installation.resources import Resources
from modwatch.monitoring.incidents.delivery import deliver
from modwatch.pipeline import daily

FIRST = datetime.date(2026, 1, 5)

#: One rule on the PSI, in place of the default ones.
RULES = """
keep_defaults = false
[[rules]]
name = "shifted"
severity = "warning"
metric = "psi"
direction = "above"
open = { bound = 0.2, compare = "low" }
close = { bound = 0.1 }
minimum_n = 100
look_at = "Look at the scores."
"""

#: Sender and receiver of mails, in the URL of the mail server.
MAIL = "?from=m@example.org&to=ops@example.org"


def day(number: int) -> datetime.date:
    return FIRST + datetime.timedelta(days=number)


def to(server: Webhook) -> dict[str, str]:
    return {"alert_webhook_url": server.url, "alert_webhook_secret": "s3cret"}


def put(resources: Resources, number: int, value: float | None, feature: str = "prob") -> None:
    """Keep the PSI of a day; None is an insufficient one."""
    row = {
        "dt": day(number), "metric": "psi", "feature": feature, "reference": "fixed",
        "value": value, "low": value and value - 0.05, "high": value and value + 0.05,
        "direction": None, "n": 500, "reference_n": 500,
        "status": "ok" if value is not None else "insufficient", "reason": "",
    }  # fmt: skip
    resources.lake.replace("drift", day(number), [pa.RecordBatch.from_pylist([row], schema=DRIFT)])


def measure(resources: Resources, number: int, accuracy: float) -> None:
    """Keep the accuracy of a day."""
    row = {
        "metric": "accuracy", "value": accuracy, "low": accuracy - 0.03,
        "high": min(accuracy + 0.03, 1.0), "n": 200, "status": "ok",
    }  # fmt: skip
    put_estimates(resources.lake, day(number), row)


def judge(resources: Resources, number: int) -> tuple[int, int]:
    """Evaluate the rules up to a day, and deliver; return how many alerts are new, and sent."""
    return daily.raise_alerts(resources, day(number)), deliver(
        resources.database, resources.alert_channels
    )


def heard(server: Webhook) -> list[tuple[str, int]]:
    """Return the event, and the number of the day, of every message."""
    return [
        (request.json["event"], (datetime.date.fromisoformat(request.json["day"]) - FIRST).days)
        for request in server.requests
    ]
