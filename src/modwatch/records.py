"""The tables of the lake, as Arrow schemas, and the few words shared by every package.

Each day of each table is one partition `dt`, a UTC day, half open: [dt 00:00, dt+1 00:00).
"""

import pyarrow as pa

_UTC = pa.timestamp("us", tz="UTC")

#: What a comment carries beside its text. `label` exists only in replayed research data and in the
#: synthetic community; scoring and routing never read it.
_CONTEXT = [
    pa.field("platform", pa.string()),
    pa.field("thread_id", pa.string()),
    pa.field("parent_text", pa.string()),
    pa.field("language", pa.string()),
    pa.field("author_id", pa.string()),
    pa.field("groups", pa.list_(pa.string())),
    pa.field("label", pa.int8()),
]

#: One row as the source handed it over, before any rule. `problem` names why it could not be read
#: (`malformed_record`, `undecodable_text`, …); null when it could.
LANDED = pa.schema(
    [
        ("dt", pa.date32()),
        ("row", pa.int64()),  # ordinal within the day, from 0, in source order
        ("origin", pa.string()),  # where it came from: file and line, or query; never its text
        ("comment_id", pa.string()),
        ("created_at", _UTC),
        ("text", pa.string()),
        *_CONTEXT,
        ("problem", pa.string()),
    ]
)

#: One checked comment.
COMMENTS = pa.schema(
    [
        pa.field("dt", pa.date32(), nullable=False),
        pa.field("comment_id", pa.string(), nullable=False),
        pa.field("created_at", _UTC, nullable=False),
        pa.field("text", pa.string(), nullable=False),
        *_CONTEXT,
    ]
)

#: A row that a row-level rule refused, whole, with the rule's name. `stage` is `comments` or
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
        ("threshold", pa.float64()),  # of that model version: flagged = prob > threshold
    ]
)

#: The scores of one shard of a day, before the day is checked and published whole.
STAGED_SCORES = pa.schema([*SCORES, pa.field("shard", pa.int32(), nullable=False)])

#: One stratum of a day's sampling design. Stratum 0 is the reviewed top (sampled whole); the
#: others split the rest by review score: lower ≤ review score < upper, the last one closed.
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

#: One comment sent to people.
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

#: The moderators' standing label of one routed comment, as copied from the decision log.
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

#: One estimate of one metric of a day. `alpha` is null for metrics that have none.
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

TABLES: dict[str, pa.Schema] = {
    "landed": LANDED,
    "comments": COMMENTS,
    "quarantine": QUARANTINE,
    "staged_scores": STAGED_SCORES,
    "scores": SCORES,
    "routing_design": ROUTING_DESIGN,
    "routed": ROUTED,
    "labels": LABELS,
    "measurements": MEASUREMENTS,
}

#: Partition columns of the tables that have more than the day: shards are written at once.
PARTITIONS: dict[str, list[str]] = {"staged_scores": ["dt", "shard"]}

#: Review strategies of Kivlichan et al. (2021), section 5, and the mixture of section 7.
STRATEGIES = ("uncertainty", "toxicity", "hybrid")

#: Review fractions of Kivlichan et al. (2021), section 6.
REVIEW_FRACTIONS = (0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2)
