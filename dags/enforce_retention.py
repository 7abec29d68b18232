"""
# enforce_retention

Removes what is older than the settings `MODWATCH_KEEP_…`, deletes the files of the Delta tables
whose rows were replaced, and writes small files into larger ones.

**Schedule:** daily at 04:00 UTC; without one if the schedules have a last day. Days of comments
count back from the last day that was published, so that nothing is removed which the daily job has
yet to read. Every task can be killed, cleared and run again at any time, also while the daily DAGs
run: it leaves their days alone. `modwatch retention --dry-run` lists what would go, and what is
kept although it is old, and why; so does the return value of each task.

| task | removes | keeps |
|---|---|---|
| `remove_rows` | days of `landed`, `staged_scores`, `quarantine`, `comments`, `scores`, `routed`, \
`labels`, `confirmations`, `follow_ups`, `annotations`; texts and \
notes in the queue | the period of an open audit; texts on lease; figures |
| `remove_ended` | delivered alerts; sessions and access tokens that ended; old log-in attempts | \
alerts that a channel has not delivered, with their series; messages about decisions |
| `remove_runs` | runs of days in MLflow, with their files | reports, audits, the timeline |
| `compact` | nothing; writes several files of a day into one | the days of the window |
| `vacuum` | files whose rows were replaced or removed, and commits of a week ago | files of the \
last day, which others may still read or write |

The decision log with its messages, the evidence of audits, figures and validation pages are kept
for ever.

## Triage

- **a task fails with SettingsError**: a setting is shorter than what the daily job reads; the
  message names both. Correct it and clear the task.
- **`remove_rows` fails with AuditError**: the evidence of the audit in the message was changed, so
  it may be open. Run `modwatch audit verify NAME`; no row of a comment is removed before.
- **`remove_rows` keeps old days**: an audit of them is open. Sign it off and publish it, or cancel
  it.
- **`remove_rows` removes nothing for days**: the daily job publishes no days. See
  *monitor_collaboration*.
- **`remove_ended` keeps old alerts**: a channel did not accept them within two weeks, after which
  they are not sent any more. They are kept as a record of what nobody received.
- **`remove_ended` fails with DatabaseError**: PostgreSQL cannot be reached. The task is retried
  automatically.
- **`remove_runs` fails with TrackingError**: MLflow cannot be reached, or may not delete artifacts.
  Check its permissions and clear the task.
- **`compact` fails with LakeError**: somebody ran an old day at the same time. The task is retried
  automatically.
- **`vacuum` fails with LakeError**: a file cannot be deleted. Check the permissions of the lake.
"""

from airflow.sdk import dag

from modwatch.pipeline import retention
from modwatch.pipeline.airflow import single_schedule, task_of


@dag(doc_md=__doc__, tags=["modwatch", "daily"], **single_schedule("0 4 * * *"))
def enforce_retention():
    """Remove what is old; the module's docstring is the runbook."""
    task_of(retention.remove_rows)() >> task_of(retention.compact)() >> task_of(retention.vacuum)()
    task_of(retention.remove_ended)()
    task_of(retention.remove_runs)()


enforce_retention()
