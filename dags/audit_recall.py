"""
# audit_recall

Audits the automated decisions of a period: people label a blind, stratified sample of its comments,
and precision and recall are estimated with confidence intervals. The results are a report and, if
the form names a service, the files for the Digital Services Act.

Press *Trigger* and fill in the form; empty fields audit the month before. On the first of every
month at 07:00 UTC an audit of the month before is planned automatically and waits for approval,
unless `MODWATCH_LAST_DAY` ends the schedules. Several audits can run at once.

| task | what it does | stored in the evidence |
|---|---|---|
| `plan` | seals period, strata and sample sizes | `plan.json` |
| `approve` | **asks for approval of the plan** | who, and when |
| `draw` | draws the sample by plan and seed, which the approval fixed, and queues it, blind | \
`sample-1.csv`, `population-1.csv` |
| `label` | waits, deferred, while people label in the console | `labels-1.csv`, `outcomes-1.csv` |
| `draw_again`, `label_again` | the second stage, if the plan has one | the files of stage 2 |
| `estimate` | computes the metrics | `result.json` |
| `sign_off` | **asks for a signature of the result** | who, and when |
| `publish` | writes the report and the DSA files | `report.html`, `publication.json`, CSV files |
| `track` | shows the audit in MLflow, experiment *modwatch-audits* | |

Questions are listed under *Required Actions* and sent to the alert channels; each can also cancel
the audit. While people label, the log of `label` shows the progress; its question stops the
labelling early, with wider intervals. Otherwise the task continues when all comments are labelled,
or at the deadline of the plan with the labels so far.

The evidence is in `_audits/NAME`, next to the Delta tables. `modwatch audit verify NAME` verifies
it; `modwatch audit verify --files FOLDER` does so anywhere, from the files alone.

Every task can be killed, retried and cleared: sealed files do not change.

## Triage

- **A task is skipped**: the audit was cancelled; the last line of `chain.jsonl` names who did. Its
  evidence stays. Trigger another.
- **`plan` fails with AuditError**: the period has no comments, a day without scores, or several
  models; the message names the day. Run *score_comments* for it, choose another period, or trigger
  the audit with *Allow missing days*, which the report then names. Or the name is in use: choose
  another.
- **`plan` fails with DesignError**: there are too few labels for the strata; the message states how
  many are required.
- **`label` waits although everyone is done**: comments may be escalated to a lead; its log counts
  them. If the log says that the progress could not be read, the database is down; the task polls
  again.
- **`label` fails with AuditError**: a person labelled a comment that they had decided as a
  moderator, or a label was changed. `modwatch audit status NAME` lists the former: have those
  labels undone in the console and clear the task, or cancel the audit.
- **`label` asks again whether to stop**: its process was killed while it acted on an answer. Answer
  again.
- **`approve` or `sign_off` fails with AuditError**: with four eyes, the planner cannot approve, and
  neither planner nor approver can sign; people who labelled can do neither. Clear the task, and
  have another person answer.
- **A metric is *insufficient***: the report states how many labels are required.
- **`publish` fails with AuditError**: a file, a label or a day was changed after it was sealed; the
  message names it. Cancel the audit and trigger another.
- **`track` fails with TrackingError**: MLflow cannot be reached. The task is retried automatically.
"""

from airflow.sdk import dag

from modwatch.pipeline.airflow import monthly_schedule
from modwatch.pipeline.airflow.audit_form import FORM
from modwatch.pipeline.airflow.audits import (
    Approval,
    AuditLabels,
    SignOff,
    draw,
    estimate,
    plan,
    publish,
    track,
)


@dag(doc_md=__doc__, tags=["modwatch", "audit"], params=FORM, **monthly_schedule("0 7 1 * *"))
def audit_recall():
    """Audit recall and precision; the module's docstring is the runbook."""
    audit = plan()
    approve = Approval(task_id="approve", audit=audit)
    label, label_again = (
        AuditLabels(task_id=name, audit=audit, stage=stage)
        for name, stage in (("label", 1), ("label_again", 2))
    )
    sign_off = SignOff(task_id="sign_off", audit=audit)
    drawn_again = draw.override(task_id="draw_again")(audit, stage=2)
    approve >> draw(audit, stage=1) >> label >> drawn_again >> label_again
    label_again >> estimate(audit) >> sign_off >> publish(audit) >> track(audit)


audit_recall()
