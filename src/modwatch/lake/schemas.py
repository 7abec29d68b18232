"""Arrow schemas of the tables of the lake.

The partition `dt` is a UTC day: [dt 00:00, dt+1 00:00).
"""

from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    import pandas as pd

_UTC = pa.timestamp("us", tz="UTC")

#: Columns of a comment beside its text. Only replayed corpora and the synthetic community have a
#: `label`; scoring and routing do not read it.
_CONTEXT = [
    pa.field("platform", pa.string()),
    pa.field("thread_id", pa.string()),
    pa.field("parent_text", pa.string()),
    pa.field("language", pa.string()),
    pa.field("author_id", pa.string()),
    pa.field("groups", pa.list_(pa.string())),
    pa.field("label", pa.int8()),
]

#: One row of the source, before validation. `problem` is the reason why it could not be read
#: (`malformed_record`, `undecodable_text`, …), or null.
LANDED = pa.schema(
    [
        ("dt", pa.date32()),
        ("row", pa.int64()),  # ordinal within the day, from 0, in source order
        ("origin", pa.string()),  # file and line, or query and ordinal; no text
        ("comment_id", pa.string()),
        ("created_at", _UTC),
        ("text", pa.string()),
        *_CONTEXT,
        ("problem", pa.string()),
    ]
)

#: One validated comment.
COMMENTS = pa.schema(
    [
        pa.field("dt", pa.date32(), nullable=False),
        pa.field("comment_id", pa.string(), nullable=False),
        pa.field("created_at", _UTC, nullable=False),
        pa.field("text", pa.string(), nullable=False),
        *_CONTEXT,
    ]
)

#: One row that failed a validation rule, with the name of the rule. `stage` is `comments` or
#: `scores`.
QUARANTINE = pa.schema(
    [
        pa.field("dt", pa.date32(), nullable=False),
        pa.field("stage", pa.string(), nullable=False),
        pa.field("rule", pa.string(), nullable=False),
        ("row", pa.int64()),
        ("origin", pa.string()),
        ("comment_id", pa.string()),
        ("created_at", _UTC),
        ("text", pa.string()),
        *_CONTEXT,
    ]
)

#: One prediction. `prob` is the posterior mean of p(y=1|x); `uncertainty` is p(1−p);
#: `model_variance` is Var_W p(y=1|x,W); `flagged` is prob > threshold of that model version.
SCORES = pa.schema(
    [
        pa.field("dt", pa.date32(), nullable=False),
        pa.field("comment_id", pa.string(), nullable=False),
        pa.field("model_version", pa.string(), nullable=False),
        pa.field("role", pa.string(), nullable=False),  # champion | challenger
        pa.field("prob", pa.float32(), nullable=False),
        pa.field("uncertainty", pa.float32(), nullable=False),
        ("model_variance", pa.float32()),
        ("mutual_information", pa.float32()),
        pa.field("flagged", pa.bool_(), nullable=False),
        ("threshold", pa.float64()),  # of that model version
    ]
)

#: Scores of the shards of a day, before validation.
STAGED_SCORES = pa.schema([*SCORES, pa.field("shard", pa.int32(), nullable=False)])

#: One stratum of the sampling design of a day. Stratum 0 is the certainty stratum (all comments are
#: reviewed); the others split the rest by lower ≤ review score < upper (≤ in the last one).
ROUTING_DESIGN = pa.schema(
    [
        pa.field("dt", pa.date32(), nullable=False),
        pa.field("model_version", pa.string(), nullable=False),
        pa.field("strategy", pa.string(), nullable=False),
        pa.field("review_fraction", pa.float64(), nullable=False),
        pa.field("stratum", pa.int32(), nullable=False),
        ("lower", pa.float64()),
        ("upper", pa.float64()),
        pa.field("population", pa.int64(), nullable=False),  # N_h
        pa.field("sample", pa.int64(), nullable=False),  # n_h
    ]
)

#: One comment sent to review.
ROUTED = pa.schema(
    [
        pa.field("dt", pa.date32(), nullable=False),
        pa.field("comment_id", pa.string(), nullable=False),
        pa.field("reason", pa.string(), nullable=False),
        pa.field("stratum", pa.int32(), nullable=False),
        pa.field("inclusion_probability", pa.float64(), nullable=False),
        pa.field("rank", pa.int64(), nullable=False),  # 1 is reviewed first
        pa.field("review_score", pa.float64(), nullable=False),
        pa.field("model_version", pa.string(), nullable=False),
    ]
)

#: The current label of one routed comment, from the decision log.
LABELS = pa.schema(
    [
        pa.field("dt", pa.date32(), nullable=False),
        pa.field("comment_id", pa.string(), nullable=False),
        pa.field("label", pa.int8(), nullable=False),
        pa.field("moderator", pa.string(), nullable=False),
        pa.field("decided_at", _UTC, nullable=False),
        pa.field("seconds", pa.float64()),
    ]
)

#: Second opinions: labels of a second person, who did not see the first. Not used in estimates.
SECOND_LABELS = LABELS

#: One label of a retest or gold item, beside the known label: the first label by the same person,
#: or the gold label. Not used in estimates.
CHECK_ANSWERS = pa.schema(
    [
        pa.field("dt", pa.date32(), nullable=False),  # of the retest or gold item
        pa.field("comment_id", pa.string(), nullable=False),
        pa.field("kind", pa.string(), nullable=False),  # retest | gold
        pa.field("moderator", pa.string(), nullable=False),
        pa.field("label", pa.int8(), nullable=False),
        pa.field("known", pa.int8(), nullable=False),
        ("stratum", pa.int32()),  # of the first routing; null for gold
        ("inclusion_probability", pa.float64()),
    ]
)

#: One estimate of a metric of a day. `alpha` is null for metrics that do not depend on it.
MEASUREMENTS = pa.schema(
    [
        pa.field("dt", pa.date32(), nullable=False),
        pa.field("metric", pa.string(), nullable=False),
        ("strategy", pa.string()),
        ("alpha", pa.float64()),
        ("value", pa.float64()),
        ("low", pa.float64()),
        ("high", pa.float64()),
        pa.field("n", pa.int64(), nullable=False),
        pa.field("effective_n", pa.float64(), nullable=False),
        pa.field("status", pa.string(), nullable=False),  # ok | insufficient
        pa.field("reason", pa.string(), nullable=False),
        pa.field("labels_digest", pa.string(), nullable=False),
    ]
)

#: Counts that describe a day; the counts of several days add up to those of a reference.
#:
#:     feature      bin                  category                          count
#:     prob         0…999 over [0, 1]    null                              scores in the bin
#:     uncertainty  0…999 over [0, ¼]    null                              scores in the bin
#:     flagged      null                 null                              flagged scores
#:     language     null                 primary subtag; `und` for none    comments
#:     platform     null                 its name; `(none)` for none       comments
#:     missing      null                 an optional column                comments without it, or 0
#:     rows         null                 `comments`, `quarantined`         rows, or 0
#:
#: Bins have equal widths and exclude their upper end, except the last; empty bins are omitted.
PROFILES = pa.schema(
    [
        pa.field("dt", pa.date32(), nullable=False),
        pa.field("feature", pa.string(), nullable=False),
        ("bin", pa.int32()),
        ("category", pa.string()),
        pa.field("count", pa.int64(), nullable=False),
        ("model_version", pa.string()),  # of prob, uncertainty, flagged; null for the others
    ]
)

#: One metric of the drift, volume or queue of a day, by metric, feature and reference.
#:
#:     metric                     feature                      reference  unit
#:     psi, jensen_shannon,       prob, uncertainty            both       ≥ 0; bits in [0, 1];
#:     wasserstein, mean_shift                                            of the score; signed
#:     jensen_shannon             language, platform           both       bits in [0, 1]
#:     flagged_share_change       flagged                      both       signed, in [−1, 1]
#:     missing_share_change       an optional column           both       signed, in [−1, 1]
#:     quarantined_share_change   quarantined                  both       signed, in [−1, 1]
#:     volume_ratio               comments                     trailing   landed / trailing median
#:     flagged_share,             flagged,                     null       in [0, 1]
#:     missing_share,             an optional column,
#:     quarantined_share          quarantined
#:     cbpe_…                     prob                         null       in [0, 1]
#:     queue_completion           queue                        null       decided / queued
#:     queue_waiting              queue                        null       undecided items
#:     queue_age_median_hours,    queue                        null       hours, to a tenth
#:     queue_age_oldest_hours,
#:     queue_decision_median_hours
#:
#: `reference`: `fixed` (the first days) | `trailing` (the days before) | null (the day alone).
#: `low`, `high`: 95 % confidence interval (sampling); null where the metric has none.
#: `direction`: `higher` | `lower` | `both` (parts of the scores moved in different directions);
#: null where the metric has none, or where the change is not significant.
#: `n`, `reference_n`: number of comments (queue: items) of the day, and of the reference.
#: `status`: `ok` | `insufficient`. `reason`: why there is no value; if ok, empty or the number of
#: reference days left out because of another model version.
DRIFT = pa.schema(
    [
        pa.field("dt", pa.date32(), nullable=False),
        pa.field("metric", pa.string(), nullable=False),
        pa.field("feature", pa.string(), nullable=False),
        ("reference", pa.string()),
        ("value", pa.float64()),
        ("low", pa.float64()),
        ("high", pa.float64()),
        ("direction", pa.string()),
        pa.field("n", pa.int64(), nullable=False),
        ("reference_n", pa.int64()),
        pa.field("status", pa.string(), nullable=False),
        pa.field("reason", pa.string(), nullable=False),
    ]
)

#: One open incident at the end of a day. Its notifications are in the review database.
ALERTS = pa.schema(
    [
        pa.field("dt", pa.date32(), nullable=False),
        pa.field("rule", pa.string(), nullable=False),
        pa.field("subject", pa.string(), nullable=False),  # feature and reference; may be empty
        pa.field("severity", pa.string(), nullable=False),  # info | warning | critical
        pa.field("since", pa.date32(), nullable=False),  # first day of the incident
        pa.field("words", pa.string(), nullable=False),  # value of the day and the bound
    ]
)

#: The reliability diagram of a window: one row per bin lower < prob ≤ upper.
RELIABILITY = pa.schema(
    [
        pa.field("dt", pa.date32(), nullable=False),  # last day of the window
        pa.field("lower", pa.float64(), nullable=False),
        pa.field("upper", pa.float64(), nullable=False),
        ("mean_prob", pa.float64()),  # of all comments of the bin
        ("positive_rate", pa.float64()),
        ("low", pa.float64()),
        ("high", pa.float64()),
        pa.field("count", pa.int64(), nullable=False),  # labels
        pa.field("weight", pa.float64(), nullable=False),  # comments
        pa.field("status", pa.string(), nullable=False),  # ok | insufficient
    ]
)

#: Estimates of a window, corrected for the annotator error rate: as estimated from second opinions
#: (measured), retests and gold items, and for assumed rates.
MODERATOR_ERROR = pa.schema(
    [
        pa.field("dt", pa.date32(), nullable=False),  # last day of the window
        pa.field("source", pa.string(), nullable=False),  # measured | retest | gold | assumed
        pa.field("error_rate", pa.float64(), nullable=False),
        pa.field("metric", pa.string(), nullable=False),
        ("strategy", pa.string()),
        ("alpha", pa.float64()),
        ("value", pa.float64()),
        ("low", pa.float64()),
        ("high", pa.float64()),
        ("corrected", pa.float64()),
        ("corrected_low", pa.float64()),
        ("corrected_high", pa.float64()),
        pa.field("status", pa.string(), nullable=False),  # ok | insufficient | not_corrected
        pa.field("note", pa.string(), nullable=False),
    ]
)

TABLES: dict[str, pa.Schema] = {
    "landed": LANDED,
    "comments": COMMENTS,
    "quarantine": QUARANTINE,
    "staged_scores": STAGED_SCORES,
    "scores": SCORES,
    "routing_design": ROUTING_DESIGN,
    "routed": ROUTED,
    "labels": LABELS,
    "second_labels": SECOND_LABELS,
    "check_answers": CHECK_ANSWERS,
    "measurements": MEASUREMENTS,
    # Over the trailing window; `dt` is its last day.
    "window_measurements": MEASUREMENTS,
    "profiles": PROFILES,
    "reliability": RELIABILITY,
    "moderator_error": MODERATOR_ERROR,
    "drift": DRIFT,
    "alerts": ALERTS,
}

#: Partition columns of tables with more than `dt`: shards are written concurrently.
PARTITIONS: dict[str, list[str]] = {"staged_scores": ["dt", "shard"]}


def as_batch(frame: "pd.DataFrame", schema: pa.Schema) -> pa.RecordBatch:
    """Return the columns of `schema` in `frame`, as one batch of it."""
    # Not RecordBatch.from_pandas, which cannot take the empty columns of strings of an empty day.
    table = pa.Table.from_pandas(frame, schema=schema, preserve_index=False)
    arrays = [column.combine_chunks() for column in table.columns]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
