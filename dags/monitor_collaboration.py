"""
# monitor_collaboration

Measures how well model and moderators decide together. It verifies the decision log against its
last witness; copies the labels of the trailing window from it; draws follow-ups among comments
without a label whose review is over; estimates OC-Acc, OC-AUROC,
OC-AUPRC, Review Efficiency and calibration for each day and for the window; compares the
challenger, if there is one, with the champion, and groups of comments with all others; measures
drift against the model's reference and the preceding days; publishes the results to MLflow (one run
per day, and the run *timeline*, whose step is the day); and sends alerts.

**Schedule:** whenever *score_comments* has ended a day, on time or late, also one that it refused:
it updates the asset `modwatch_scored_day`, and the day is the partition key of the run. To measure
a day again, press *Trigger* and enter the day, YYYY-MM-DD, as the partition key. Labels arrive
late, so a day of the window is measured again when its labels have changed. Every task can be
cleared and run again at any time.

| task | reads | writes |
|---|---|---|
| `verify_log` | the decision log, its last witness | a new witness, `log_verifications` |
| `collect_labels` | the decision log | `labels`, `confirmations` |
| `follow_up` | routed comments, labels, the queue | `follow_ups`; their order in the queue |
| `measure` | scores, design, labels, follow-ups | `estimates` of the day and the window, \
`label_counts`; for the window `reliability`, `assumption_checks` |
| `compare_challenger` | scores of both models, design, labels | `challenger` |
| `compare_groups` | comments, scores, design, labels | `comment_groups` |
| `detect_drift` | `profiles`, `comments`, `scores`, the queue | `drift`, `segment_counts` |
| `raise_alerts` | the tables above, validation results, the alert rules | `alerts`, the outbox |
| `publish` | the tables above, validation results | MLflow |
| `deliver_alerts` | the outbox | webhook, mail |
| `raise_log_alerts`, `deliver_log_alerts` | the same | the same, once `verify_log` has ended |

No other task waits for `verify_log`, however long it takes. If it fails, the alert
*decision_log_unverified* says so. Each channel is notified when an incident opens, when its
severity rises, and when it ends. Alerts do not depend on MLflow.

## Triage

- **a task fails with SettingsError, the run has no day**: the run was triggered without a partition
  key. Trigger another one, with the day.
- **a day has no run**: *score_comments* has not ended it. See the run of the day there; if this DAG
  was paused then, trigger a run with the day as its partition key.
- **`collect_labels` fails with DatabaseError**: PostgreSQL cannot be reached. The task is retried
  automatically.
- **`verify_log` fails**: whatever a row contains, it names the row and goes on. So the database is
  lost or lacks a table, or the lake cannot be written: the error says which. Clear the task.
- **`verify_log` returns more than 0**: the log, or what it binds, was changed. Run `modwatch queue
  verify-log`: it names the rows. Keep a copy of the database and the witnesses before you mend
  anything.
- **`measure` returns 0**: no labels of the window have changed. Check the review queue.
- **`measure` fails with DesignError**: the day in the message was scored again but not routed. Run
  `route` of *score_comments* for that day.
- **a metric is missing in MLflow**: its estimate is *insufficient*. The description of the run
  names the stratum without labels.
- **`compare_groups` fails with SettingsError**: `identities.toml` in `MODWATCH_CONFIG` cannot be
  read. Correct it and clear the task.
- **a past day was scored again**: `hand_over` of *score_comments* starts another run of that day.
  If it was not cleared, trigger a run with the day as its partition key.
- **`publish` fails with TrackingError**: MLflow cannot be reached. The task is retried
  automatically, and publishes nothing twice.
- **`raise_alerts` fails with SettingsError**: the message names the alert rule and its field.
  Correct `alerts.toml` in `MODWATCH_CONFIG` and clear the task.
- **`deliver_alerts` fails with AlertError**: the message names the channel and its response.
  Undelivered alerts are sent again with the following runs for two weeks; delivered ones are not
  sent again.
- **too many or too few alerts**: set bounds of your own in `alerts.toml` in `MODWATCH_CONFIG`. The
  tag `alerts` of each MLflow run lists the rules that the day violates.
"""

from airflow.sdk import dag

from modwatch.pipeline import daily
from modwatch.pipeline.airflow import after_scoring, task_of
from modwatch.pipeline.airflow.links import MLFLOW_RUN, REVIEW_QUEUE


@dag(doc_md=__doc__, tags=["modwatch", "daily"], **after_scoring())
def monitor_collaboration():
    """Measure the trailing window; the module's docstring is the runbook."""
    collect_labels = task_of(daily.collect_labels)
    verify_log = task_of(daily.verify_log)
    follow_up = task_of(daily.follow_up)
    measure = task_of(daily.measure)
    compare_challenger = task_of(daily.compare_challenger)
    compare_groups = task_of(daily.compare_groups)
    detect_drift = task_of(daily.detect_drift)
    raise_alerts = task_of(daily.raise_alerts)
    publish = task_of(daily.publish, links=[MLFLOW_RUN, REVIEW_QUEUE])
    deliver_alerts = task_of(daily.deliver_alerts)

    comparisons = [compare_challenger(), compare_groups(), detect_drift()]
    collect_labels() >> follow_up() >> measure() >> comparisons >> (alerts := raise_alerts())
    alerts >> [publish(), deliver_alerts()]
    # Also when it failed. The figures wait for no verification.
    found = raise_alerts.override(task_id="raise_log_alerts", trigger_rule="all_done")()
    verify_log() >> found >> deliver_alerts.override(task_id="deliver_log_alerts")()


monitor_collaboration()
