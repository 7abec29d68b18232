"""What the data of the daily job are compared with, and what they are compared with."""

import datetime
import os
from pathlib import Path

from daily_job import DailyJob
from databases import owner_url
from lake_days import batch

from installation import Installation
from modwatch.data.lake.schemas import ANNOTATOR_GROUPS
from modwatch.installation.resources import open_resources
from modwatch.review.database import create_database
from modwatch.review.migrate import upgrade


def undisturbed_days(job: DailyJob, folder: Path) -> Installation:
    """Return another installation on the same source, model and salt."""
    settings = job.demo.settings
    url = create_database(owner_url(os.environ["MODWATCH_DATABASE_URL"]), "undisturbed")
    upgrade(url)
    # Everything else comes from the same environment.
    return Installation(
        values={"home": folder, "database_url": url, "mlflow_url": settings.mlflow_url}
    )


def queued(rows: list[dict[str, object]]) -> list[str]:
    """Return what was routed to the queue, without what people did there since."""
    lease = ("lease_digest", "leased_by", "leased_until", "claimed_at")
    since = ("status", "version", "excluded", "first_label", *lease)
    routed = [row for row in rows if row["kind"] in ("review", "confirmation")]
    return sorted(repr([(k, v) for k, v in row.items() if k not in since]) for row in routed)


def put_comparison(day: datetime.date) -> None:
    """Put a comparison of two groups of moderators in the lake; the demo has too few people."""
    columns = {
        "group": ["north", "south"], "metric": "agreement", "value": [0.9, 0.82],
        "difference": [0.08, -0.08], "p_holm": 0.01, "annotators": 10, "annotations": 500,
    }  # fmt: skip
    with open_resources() as resources:
        resources.lake.replace(
            "annotator_groups", day, [batch(ANNOTATOR_GROUPS, 2, dt=day, **columns)]
        )
