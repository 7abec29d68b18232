"""
# monitor_collaboration

Every day at 06:00 UTC: copies the moderators' labels of the trailing window, computes how well
model and moderators do together (OC-Acc, OC-AUROC, OC-AUPRC, Review Efficiency, calibration), and
publishes it to MLflow: one run a day, and one long-lived run, *timeline*, whose step is the day.

Labels come late. A day of the window is measured again whenever its labels have changed, and left
alone otherwise, so every task can be cleared and run again at any time.

| task | reads | writes |
|---|---|---|
| `collect_labels` | the decision log | `labels` |
| `measure` | `scores`, `routing_design`, `routed`, `labels` | `measurements` |
| `publish` | `measurements`, check verdicts | MLflow |

## Triage

- **`collect_labels` fails with DatabaseError**: PostgreSQL is down; it is tried again by itself.
- **`measure` returns 0**: nothing new was labelled in the window; look at the queue.
- **a figure is missing in MLflow**: it is *insufficient*; the run's description says which stratum
  has no label yet.
- **`publish` fails with TrackingError**: MLflow is down; it is tried again by itself, and nothing
  is published twice.
"""

from airflow.sdk import dag

from modwatch.orchestration import daily, stop


@dag(doc_md=__doc__, tags=["modwatch", "daily"], **daily("0 6 * * *"))
def monitor_collaboration():
    """Measure the trailing window; the module's docstring is the runbook."""
    collect_labels = stop("collect_labels")
    measure = stop("measure")
    publish = stop("publish")

    collect_labels() >> measure() >> publish()


monitor_collaboration()
