"""
# monitor_disagreement

Reports what people's labels tell of people: how many are slips, how far opinions differ, with whose
opinion the model agrees, and, where moderators chose groups, whether groups differ; sends alerts
of differences that are significant and large.

**Schedule:** Mondays at 07:00 UTC, over the twelve weeks to Sunday. *Trigger* reports other weeks,
or a file of anybody's annotations. Every task can be cleared and run again; a report replaces the
one of the same name, but for the comparison of moderators' groups.

| task | reads | writes |
|---|---|---|
| `collect_annotations` | the decision log | `annotations` |
| `publish_opinions` | `annotations`, `scores`, `routed`; the moderators' groups, or the file | \
MLflow, experiment *modwatch-groups*: a run with `report.html` and tables; \
`annotator_groups` |
| `measure_blindness` | the decision log | MLflow, experiment *modwatch-groups*: a run with the \
AUC of each kind; the leads' page *Team* |
| `raise_alerts` | `annotator_groups`, the alert rules | the outbox |
| `deliver_alerts` | the outbox | webhook, mail |

Labels count as they were given, each without knowledge of others; corrections and adjudications do
not count. Groups of moderators are compared every fourth week, over the labels of these four weeks:
no two reports share a label, so that the difference of two is never about few people. Groups of
fewer than ten are not shown. This comparison is published once: a task that is run again leaves it
as it is, since who joined or left a group in the meantime would show in the difference.

An alert is raised where a group's difference is significant and more than five points
(`annotator_agreement_low`, `annotator_agreement_high`, `annotator_uncertainty_diverges`). Since a
third of the people count in a group that was drawn, that is 3.3 points in the report. It is active
until the next comparison at least. A file raises none.

`measure_blindness` lets a classifier guess which of the items that moderators were served in the
last four weeks are gold items, retests and confirmations, from all that the console sent but the
texts. Nobody may be able to: people who know that a label is compared label more carefully.

## Triage

- **`collect_annotations` fails with DatabaseError**: PostgreSQL cannot be reached. The task is
  retried automatically.
- **`publish_opinions` returns 0**: there are fewer than 100 labels, or all of them are alike.
- **`publish_opinions` fails with SourceError or MetricInputError**: the file of the form cannot be
  used; the message names columns and numbers of rows. Correct it and clear the task.
- **`publish_opinions` fails with TrackingError**: MLflow cannot be reached. The task is retried
  automatically.
- **`measure_blindness` returns 1 or more**: the tag `recognised` of its run, and the page *Team*,
  name the kinds. Look how these items differ from others in language, platform, length and the time
  at which they are served: add gold comments that look like the stream.
- **`raise_alerts` fails with SettingsError**: the message names the alert rule and its field.
  Correct `alerts.toml` in `MODWATCH_CONFIG` and clear the task.
- **`deliver_alerts` fails with AlertError**: the message names the channel and its response.
  Undelivered alerts are sent again with the runs of `monitor_collaboration`.
"""

from airflow.sdk import dag

from modwatch.pipeline.airflow import single_schedule
from modwatch.pipeline.airflow.opinions import (
    FORM,
    collect_annotations,
    deliver_alerts,
    measure_blindness,
    publish_opinions,
    raise_alerts,
)


@dag(
    doc_md=__doc__,
    tags=["modwatch", "weekly"],
    params=FORM,
    **single_schedule("0 7 * * 1"),
)
def monitor_disagreement():
    """Report the labels of the last weeks; the module's docstring is the runbook."""
    measure_blindness()
    collect_annotations() >> publish_opinions() >> raise_alerts() >> deliver_alerts()


monitor_disagreement()
