"""
# audit_recall

How much of what is harmful do the automated decisions catch, and how often are they right? People
label a blind sample of a period; out come recall and precision with intervals that hold, a report,
and the files that the Digital Services Act asks for.

Press *Trigger* and fill in the form, or leave it: then the month before is audited. On the first
of every month at 07:00 UTC an audit of the month before is planned by itself, and waits to be
approved; not where `MODWATCH_LAST_DAY` ends the schedules. Several audits may run at once.

| task | what happens | kept in the evidence |
|---|---|---|
| `plan` | population, strata, numbers of labels and seed are frozen | `plan.json` |
| `approve` | **somebody approves the plan**, or gives the audit up | who, and when |
| `draw` | the sample is drawn by the plan and queued, blind | `sample-1.csv`, `population-1.csv` |
| `label` | people label in the console; it waits for days, without a process | `labels-1.csv` |
| `draw_again`, `label_again` | the second stage, if the plan has one | the same of stage 2 |
| `estimate` | every figure is computed | `result.json` |
| `sign_off` | **somebody signs the result**, or gives the audit up | who, and when |
| `publish` | report and DSA files are written (these if the form names a service) | they |
| `track` | the audit is shown in MLflow, experiment *modwatch-audits* | |

Questions to people stand under *Required Actions*, and are told on the channels of alerts. While
people label, the log of `label` says how far they are; the same page lets you stop the labelling
early, with wider intervals, or give the audit up. Without that, it goes on when all is labelled, or
at the deadline of the plan with what there is.

The evidence lies in `_audits/NAME` beside the tables; `modwatch audit verify NAME` checks it,
`modwatch audit verify --files FOLDER` checks it anywhere, without Modwatch's databases.

Every task can be killed, retried and cleared: what is sealed stays as it is.

## Triage

- **a task is skipped**: somebody gave the audit up; the last line of `chain.jsonl` says who. Its
  evidence stays. Trigger another.
- **`plan` fails with AuditError**: the period has no comments, a day without scores, or several
  models; the message says which day. Run *score_comments* for it, or choose another period. Or the
  name is taken: choose another.
- **`plan` fails with DesignError**: too few labels for so many strata; the message says how many.
- **`label` waits although everybody is done**: some comments may wait for a lead; its log counts
  them. If it says that it cannot be told, the database is down; it looks again by itself.
- **`label` fails with AuditError**: somebody labelled a comment that they had decided as a
  moderator, or a label was changed; the message counts them, `modwatch audit status NAME` names the
  former. Have those labels taken back in the console and clear the task, or give the audit up.
- **`label` asks once more whether to stop**: its process was killed while it carried an answer out;
  answer again.
- **`sign_off` fails with AuditError**: whoever signed had labelled for the audit. Clear the task,
  and let somebody else answer.
- **a figure is *insufficient***: the report says how many labels would do.
- **`publish` fails with AuditError**: a file, a label or a day was changed since it was sealed; the
  message names it. What is sealed cannot be mended: give the audit up and trigger another.
- **`track` fails with TrackingError**: MLflow is down; it is tried again by itself.
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
