"""
# score_comments

Every day after midnight UTC: fetches the comments of the day that has just ended, checks them,
scores them with the champion model, and sends the ones most worth a human look to the review
queue, together with a random slice that keeps the figures unbiased.

Each task can be cleared and run again: it replaces the rows of its day and nothing else.

| task | reads | writes |
|---|---|---|
| `ingest` | the source | `landed` |
| `check_comments` | `landed` | `comments`, `quarantine`, `profiles`, the validation page |
| `plan_shards` | `comments`, the model registry | nothing: which model, how many shards |
| `score_shard` (mapped) | `comments` | `staged_scores` |
| `check_scores` | `staged_scores` | `scores`, `quarantine`, `profiles`, the validation page |
| `route` | `scores` | `routing_design`, `routed`, the review queue |

To score several days, use *Trigger → Backfill*. Days run one after the other, because a day is
compared with the days before it.

## Triage

- **`ingest` fails**: the message names the file, query or column. Mend the source, clear the task.
- **`check_comments` or `check_scores` fails with DayRejectedError**: validation failed. Open the
  validation page of the day (the message gives its address). A rejected day changes no table. Fix
  the source or the model, clear the failed task and what follows it.
- **`plan_shards` fails with NoChampionError**: no model is registered. Run `modwatch train`, or
  set the alias `champion` in MLflow.
- **one `score_shard` fails**: clear that map index alone; the others keep their work.
- **`route` fails with DatabaseError**: PostgreSQL is down; it is tried again by itself.
"""

from airflow.sdk import dag

from modwatch.orchestration import daily, stop


@dag(doc_md=__doc__, tags=["modwatch", "daily"], **daily("@daily"))
def score_comments():
    """Score one day; the module's docstring is the runbook."""
    ingest = stop("ingest")
    check_comments = stop("check_comments")
    plan_shards = stop("plan_shards")
    score_shard = stop("score_shard")
    check_scores = stop("check_scores")
    route = stop("route")

    shards = plan_shards()
    ingest() >> check_comments() >> shards
    score_shard.expand(part=shards) >> check_scores() >> route()


score_comments()
