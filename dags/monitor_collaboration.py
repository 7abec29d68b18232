"""
# monitor_collaboration

Every day at 06:00 UTC: copies the moderators' labels of the trailing window, computes how well
model and moderators do together (OC-Acc, OC-AUROC, OC-AUPRC, Review Efficiency, calibration), on
the day and over the window, compares the day with the days before and with the first ones,
publishes it to MLflow (one run a day, and one long-lived run, *timeline*, whose step is the day),
and alerts people when a figure leaves its bounds, and when it is back.

Labels come late. A day of the window is measured again whenever its labels have changed, and left
alone otherwise, so every task can be cleared and run again at any time.

| task | reads | writes |
|---|---|---|
| `collect_labels` | the decision log | `labels`, `second_labels` |
| `measure` | scores, design, labels | `measurements`, and for the window `window_measurements`, \
`reliability`, `moderator_error` |
| `detect_drift` | `profiles`, `scores`, the queue | `drift` |
| `raise_alerts` | the tables above, validation results, the alert rules | `alerts`, the outbox |
| `publish` | the tables above, validation results | MLflow |
| `deliver_alerts` | the outbox | webhook, mail |

An incident is told once on each channel when it opens, and once when it ends. Alerts do not wait
for MLflow: they go out even when it is down.

## Triage

- **`collect_labels` fails with DatabaseError**: PostgreSQL is down; it is tried again by itself.
- **`measure` returns 0**: nothing new was labelled in the window; look at the queue.
- **a figure is missing in MLflow**: it is *insufficient*; the run's description says which stratum
  has no label yet.
- **`measure` fails with DesignError**: the day that it names was scored again and not routed; run
  `route` of *score_comments* for it.
- **a day of the past was scored again**: it is measured again by itself; clear `detect_drift` of
  its own run, too.
- **`publish` fails with TrackingError**: MLflow is down; it is tried again by itself, and nothing
  is published twice.
- **`raise_alerts` fails with SettingsError**: the message names the alert rule and its field; mend
  the file that `MODWATCH_ALERT_RULES` names.
- **`deliver_alerts` fails with AlertError**: the message names the channel and its answer. Nothing
  is lost: what a channel did not take is sent with the next run, for two weeks, and what others
  took is not sent again.
- **too many alerts, or too few**: put your own bounds into the file that `MODWATCH_ALERT_RULES`
  names; the run's tag `alerts` in MLflow shows which days a rule would mark.
"""

from airflow.sdk import dag

from modwatch.orchestration import daily, stop


@dag(doc_md=__doc__, tags=["modwatch", "daily"], **daily("0 6 * * *"))
def monitor_collaboration():
    """Measure the trailing window; the module's docstring is the runbook."""
    collect_labels = stop("collect_labels")
    measure = stop("measure")
    detect_drift = stop("detect_drift")
    raise_alerts = stop("raise_alerts")
    publish = stop("publish")
    deliver_alerts = stop("deliver_alerts")

    judged = collect_labels() >> measure() >> detect_drift() >> raise_alerts()
    judged >> [publish(), deliver_alerts()]


monitor_collaboration()
