"""
# audit_recall

Estimates precision and recall of the automated decisions of a period, from a blind, stratified
sample that people label. Writes a report with confidence intervals, and the CSV files for the
Digital Services Act.

**Schedule:** monthly, on the first day at 07:00 UTC, for the month before, until
`MODWATCH_LAST_DAY`; the audit then waits for approval. For other periods, press *Trigger* and fill
in the form; an empty form audits the month before. Several audits can run at the same time.

| task | what happens | evidence |
|---|---|---|
| `plan` | freezes population, strata, numbers of labels and seed | `plan.json` |
| `approve` | **a person approves the plan**, or cancels the audit | who and when |
| `draw` | draws the sample and queues it for blind labelling | `sample-1.csv`, `population-1.csv` |
| `label` | people label in the console; the task is deferred for days | `labels-1.csv` |
| `draw_again`, `label_again` | second stage, if the plan has one | the same files of stage 2 |
| `estimate` | computes all estimates | `result.json` |
| `sign_off` | **a person signs the result**, or cancels the audit | who and when |
| `publish` | writes report and DSA files (the latter if the form names a service) | the files |
| `track` | logs the audit to MLflow, experiment *modwatch-audits* | |

Open *Required Actions* to respond to `approve` and `sign_off`; the channels of alerts are notified.
While people label, the log of `label` shows the progress. Its required action allows you to stop
labelling early, with wider intervals, or to cancel the audit. Otherwise the task ends when all
comments are labelled, or at the deadline of the plan.

The evidence is in `_audits/NAME` beside the tables. `modwatch audit verify NAME` verifies it;
`modwatch audit verify --files FOLDER` verifies it without the databases of Modwatch.

Every task can be killed, retried and cleared: sealed files do not change.

## Triage

- **a task is skipped**: the audit was cancelled; the last line of `chain.jsonl` says by whom. The
  evidence is kept. Trigger a new audit.
- **`plan` fails with AuditError**: the period has no comments, a day without scores, or several
  model versions (the message names the day), or the name is taken. Run *score_comments* for that
  day, or choose another period or name.
- **`plan` fails with DesignError**: the number of labels is too small for the number of strata; the
  message gives the minimum.
- **`label` keeps waiting although everybody has finished**: some comments may be escalated to a
  lead; the log counts them. If the log says that the progress is unknown, the database cannot be
  reached; the task tries again automatically.
- **`label` fails with AuditError**: a person labelled a comment that they had decided as a
  moderator, or a label was changed after it was sealed. `modwatch audit status NAME` lists the
  former. Undo these labels in the console and clear the task, or cancel the audit.
- **`label` asks again whether to stop**: its process was killed while it carried out the response.
  Respond again.
- **`sign_off` fails with AuditError**: the person who signed has labelled for the audit. Clear the
  task, and let another person sign.
- **an estimate is *insufficient***: the report gives the number of labels that would be required.
- **`publish` fails with AuditError**: a file, a label or a day was changed after it was sealed; the
  message names it. Sealed evidence cannot be corrected: cancel the audit and trigger a new one.
- **`track` fails with TrackingError**: MLflow cannot be reached. The task is retried automatically.
"""

from airflow.sdk import dag

from modwatch.orchestration import monthly_schedule
from modwatch.orchestration.audit_form import FORM
from modwatch.orchestration.audits import (
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
