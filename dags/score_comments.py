"""
# score_comments

Ingests the comments of a day, validates them, scores them with the champion model, and sends the
top stratum and a random slice of the rest to the review queue. If a model has the alias
`challenger`, it scores the comments too, in shadow: nothing is routed by its scores. If the source
brings scores of its own, these are taken as they are, and no champion is needed.

**Schedule:** daily after midnight UTC, for the day before. Days that ended while Airflow was down,
at most 31, are run in order when it is back. Every task can be cleared and run again: it replaces
the rows of its day only. *Repair*, on the page Modwatch, clears a day as a whole.

| task | reads | writes |
|---|---|---|
| `ingest` | the source | `landed`, the counts of the source |
| `check_comments` | `landed` | `comments`, `quarantine`, `profiles`, the validation page |
| `plan_shards` | `comments`, the model registry | nothing; returns model version and shards |
| `score_shard` (mapped) | `comments` | `staged_scores` |
| `check_scores` | `staged_scores`, the model registry | `scores`, `quarantine`, `profiles`, \
the validation page |
| `route` | `scores` | `routing_design`, `routed`, the review queue |
| `score_challenger` | `comments`, the model registry | `scores` of the challenger |
| `hand_over` | nothing | the asset `modwatch_scored_day`, for which *monitor_collaboration* waits |

`hand_over` runs even if the day was refused: *monitor_collaboration* then collects the labels of
the days before, and reports the day as refused.

To score earlier days, use *Trigger → Backfill*. The days run one after the other, because
validation compares a day with the days before it.

## Triage

- **`ingest` fails with SourceError**: the message names the file, query or column. Correct the
  source and repair the day: press *Repair* on the page Modwatch, or run `modwatch repair DAY`.
- **`ingest` fails for a file of another day**: the file's times or its name say that it holds this
  day, too, as a file of a local day does. Correct it and repair the day.
- **`check_comments` or `check_scores` fails with DayRejectedError**: validation failed, and no
  table was changed. Open the validation page (button of the task), correct the source or the model,
  and repair the day. To clear the failed task is not enough: it reads what landed before.
- **a day had no comments**: press *No comments* on the page Modwatch, or run `modwatch repair DAY
  --empty`.
- **`plan_shards` fails with NoChampionError**: no model has the alias `champion`. Run
  `modwatch train`, or set the alias in MLflow. If the source brings scores, set
  `MODWATCH_SOURCE__OWN_SCORES` and clear `ingest` and its downstream tasks.
- **`score_shard` fails for one map index**: clear that map index only. It goes on after the last
  piece (10,000 rows) that it stored. To score everything anew, clear `plan_shards` and its
  downstream tasks.
- **`check_scores` refuses the day for double, unknown or stale scores**: an attempt of an earlier
  plan was still storing scores. Clear `plan_shards` and its downstream tasks.
- **`score_shard` stays in the state *scheduled***: the pool in `MODWATCH_SCORER_POOL` does not
  exist, or all of its slots are taken. See *Admin → Pools*.
- **`route` fails with DatabaseError**: PostgreSQL cannot be reached. The task is retried for half
  an hour; if the retries fail, check the server and repair the day.
- **`score_challenger` fails with ModelError**: the challenger cannot be loaded or returns no
  probabilities. The day is routed all the same. Remove the alias `challenger` in MLflow, or correct
  the model and clear the task.
"""

from airflow.sdk import dag

from modwatch.pipeline import daily
from modwatch.pipeline.airflow import daily_schedule, hand_over, scoring_pool, task_of
from modwatch.pipeline.airflow.links import REVIEW_QUEUE, VALIDATION_PAGE


@dag(doc_md=__doc__, tags=["modwatch", "daily"], **daily_schedule("@daily"))
def score_comments():
    """Score one day; the module's docstring is the runbook."""
    ingest = task_of(daily.ingest)
    check_comments = task_of(daily.check_comments, links=[VALIDATION_PAGE])
    plan_shards = task_of(daily.plan_shards)
    score_shard = task_of(daily.score_shard, pool=scoring_pool())
    check_scores = task_of(daily.check_scores, links=[VALIDATION_PAGE])
    route = task_of(daily.route, links=[REVIEW_QUEUE])
    score_challenger = task_of(daily.score_challenger, pool=scoring_pool())

    shards = plan_shards()
    ingest() >> check_comments() >> shards
    last = score_challenger()
    score_shard.expand(part=shards) >> check_scores() >> route() >> last
    # Also when a task before it failed, which fails the run all the same.
    last >> hand_over().as_teardown()


score_comments()
