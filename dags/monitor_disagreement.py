"""
# monitor_disagreement

Reports what people's labels tell of people: how many are slips, how far opinions differ, with whose
opinion the model agrees, and, where moderators chose groups, whether groups differ.

**Schedule:** Mondays at 07:00 UTC, over the twelve weeks to Sunday. *Trigger* reports other weeks,
or a file of anybody's annotations. Every task can be cleared and run again; a report replaces the
one of the same name, but for the comparison of moderators' groups.

| task | reads | writes |
|---|---|---|
| `collect_annotations` | the decision log | `annotations` |
| `publish_opinions` | `annotations`, `scores`, `routed`; the moderators' groups, or the file | \
MLflow, experiment *modwatch-groups*: a run with `report.html`, tables and figures |

Labels count as they were given, each without knowledge of others; corrections and adjudications do
not count. Groups of moderators are compared every fourth week, over the labels of these four weeks:
no two reports share a label, so that the difference of two is never about few people. Groups of
fewer than ten are not shown. This comparison is published once: a task that is run again leaves it
as it is, since who joined or left a group in the meantime would show in the difference.

## Triage

- **`collect_annotations` fails with DatabaseError**: PostgreSQL cannot be reached. The task is
  retried automatically.
- **`publish_opinions` returns 0**: there are fewer than 100 labels, or all of them are alike.
- **`publish_opinions` fails with SourceError or MetricInputError**: the file of the form cannot be
  used; the message names columns and numbers of rows. Correct it and clear the task.
- **`publish_opinions` fails with TrackingError**: MLflow cannot be reached. The task is retried
  automatically.
"""

from airflow.sdk import dag

from modwatch.orchestration import weekly_schedule
from modwatch.orchestration.opinions import FORM, collect_annotations, publish_opinions


@dag(
    doc_md=__doc__,
    tags=["modwatch", "weekly"],
    params=FORM,
    **weekly_schedule("0 7 * * 1"),
)
def monitor_disagreement():
    """Report the labels of the last weeks; the module's docstring is the runbook."""
    collect_annotations() >> publish_opinions()


monitor_disagreement()
