"""
# train_model

Trains a model, compares it with the champion on the same labelled comments, and asks somebody
whether it replaces the champion.

Press *Trigger* and fill in the form. There is no schedule.

| task | what it does | stored in MLflow |
|---|---|---|
| `train` | trains and calibrates a model on labelled comments | a run of the experiment \
`training`, with its curves from the first step; a version; the data report |
| `evaluate` | scores MODWATCH_EVALUATION_DATA with the version and the champion | \
`evaluation_of_version_N.json` in the run of the version |
| `check` | stops if the version is worse: average precision, accuracy, Calibration AUPRC, \
OC-AUROC at the deployed review fraction, or the largest gap of a group's error rates | |
| `approve` | **asks for a decision**: champion, challenger, or rejected | the alias; the decision \
as tags of the version |

The question is listed under *Required Actions* and sent to the alert channels. A champion scores
from the next run of *score_comments* on. A challenger scores in shadow: nothing is routed by its
scores, and *monitor_collaboration* compares both on the labels of the window. The champion before
keeps the alias `previous`; `modwatch model promote previous` makes it the champion again.

Comments of the evaluation data, and similar ones, are left out of training. Every task can be
killed, retried and cleared: training goes on from its last checkpoint, also after the timeout of
two hours, and a run makes one version.

## Triage

- **`train` fails with SettingsError**: no files are named in the form or in MODWATCH_TRAINING_DATA.
- **`train` fails with SourceError**: the message names the file, row or column. Correct it and
  clear the task.
- **`train` fails with ModelError**: the recipe names a field or value that cannot be, the data has
  one class only, the encoder cannot be loaded, or the loss is not finite; the message names the
  remedy. Trigger another run.
- **`train` takes long**: its log has the time left and the page of its curves in MLflow.
- **`train` fails with ImportError**: the extra `models` is not installed where the task runs.
- **`evaluate` fails with SettingsError**: MODWATCH_EVALUATION_DATA is not set. Set it to a file of
  labelled comments (columns `text`, `label` and, for gaps between groups, `groups`) and clear the
  task.
- **`check` fails with ModelError**: the version is worse in the metrics of the message, by more
  than chance. It keeps no alias. Train another, or set the alias with `modwatch model promote` if
  you know better.
- **`approve` fails with ModelError**: another version became the champion in the meantime. Clear
  `evaluate` and its downstream tasks.
- **a task fails with TrackingError**: MLflow cannot be reached. The task is retried automatically.
"""

from airflow.sdk import dag

from modwatch.pipeline.airflow import TASK_DEFAULTS
from modwatch.pipeline.airflow.models import FORM, Promotion, check, evaluate, train


@dag(
    doc_md=__doc__,
    tags=["modwatch", "models"],
    params=FORM,
    schedule=None,
    catchup=False,
    max_active_runs=1,
    default_args=TASK_DEFAULTS,
)
def train_model():
    """Train, evaluate, ask; the module's docstring is the runbook."""
    version = train()
    approve = Promotion(task_id="approve", version=version)
    evaluate(version) >> check(version) >> approve


train_model()
