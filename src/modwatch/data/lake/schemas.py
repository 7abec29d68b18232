"""Arrow schemas of the tables of the lake.

The partition `dt` is a UTC day: [dt 00:00, dt+1 00:00). In tables of a window, it is its last day.
"""

from collections.abc import Sequence
from functools import partial

import pyarrow as pa

from modwatch.common.columns import COLUMNS, Column, grouped

_UTC = pa.timestamp("us", tz="UTC")


def _columns(kind: pa.DataType, *names: str, nullable: bool = True) -> list[pa.Field]:
    return [pa.field(name, kind, nullable=nullable) for name in names]


_required = partial(_columns, nullable=False)


def _table(*columns: pa.Field | tuple[str, pa.DataType]) -> pa.Schema:
    """Return the schema of a table whose rows all have a day."""
    return pa.schema([*_required(pa.date32(), "dt"), *columns])


#: The decisions that are measures, and what stands for none.
RESTRICTIONS, NO_DECISION = ("removed", "limited"), "none"

#: How the types of `common.columns` are stored; all others are text.
_TYPES = {
    "names": pa.list_(pa.string()),
    "vote": pa.int8(),
    "number": pa.float64(),
    "integer": pa.int64(),
    "boolean": pa.bool_(),
    "time": _UTC,
}


def field_of(column: Column) -> pa.Field:
    """Return how a column of a comment is stored.

    >>> field_of(Column(name="subscriber", type="boolean"))
    pyarrow.Field<subscriber: bool>
    """
    return pa.field(column.name, _TYPES.get(column.type, pa.string()))


def type_of(field: pa.Field) -> str:
    """Return the type of a column that rows were stored with.

    >>> type_of(pa.field("subscriber", pa.bool_()))
    'boolean'
    """
    return next((name for name, kind in _TYPES.items() if kind == field.type), "text")


#: Columns of a comment besides its text. Only replayed corpora and the synthetic community have a
#: `label`; scoring and routing do not read it. `decision` is what the platform did: removed |
#: limited | kept, or none where it has decisions and none of the comment; `decided_by`: model |
#: rule | person.
_CONTEXT = [field_of(column) for column in COLUMNS if column.optional]

#: The score of a source that brings scores: its probability, the version that gave it, and the
#: decision. Null on days that a model scores.
_OWN_SCORE = [
    ("prob", pa.float64()),
    ("model_version", pa.string()),
    ("flagged", pa.bool_()),
]

_ROW = ("row", pa.int64())  # ordinal within the day, from 0, in source order

#: A row of the source.
_SOURCE_ROW = [
    _ROW,
    ("origin", pa.string()),  # file and line, or query and ordinal; no text
    ("comment_id", pa.string()),
    ("created_at", _UTC),
    ("text", pa.string()),
    *_CONTEXT,
    *_OWN_SCORE,
]

#: A value and its 95 % interval; null without enough data.
_ESTIMATE = _columns(pa.float64(), "value", "low", "high")

#: One row of the source, before validation. `problem` is the reason why it could not be read
#: (`malformed_record`, `undecodable_text`, …), or null. `faults` are the columns of `_CONTEXT`
#: whose value could not be read and is null, each with the reason: `views: unreadable_views`.
LANDED = pa.schema(
    [
        ("dt", pa.date32()),
        *_SOURCE_ROW,
        ("problem", pa.string()),
        ("faults", pa.list_(pa.string())),
    ]
)

#: One validated comment. `salt` is drawn at the first publication, and goes with the texts when
#: they are erased: what was committed to (`erasure.text_commitments`) cannot be guessed then.
COMMENTS = _table(
    *_required(pa.string(), "comment_id"),
    *_required(_UTC, "created_at"),
    *_required(pa.string(), "text"),
    *_CONTEXT,
    *_OWN_SCORE,
    _ROW,
    ("salt", pa.binary()),
)

#: One comment whose texts were erased, in all tables and whenever its day is read again. `part`:
#: `comment` (both texts and the author) | `parent` (the text that it answers). `commitment`: to the
#: texts as they were published first; null where the comment was not published.
ERASURES = _table(
    *_required(pa.string(), "comment_id", "part"),
    ("commitment", pa.binary()),
)

#: One row that failed a validation rule, with the name of the rule. `stage` is `comments` or
#: `scores`.
QUARANTINE = _table(*_required(pa.string(), "stage", "rule"), *_SOURCE_ROW)

#: One prediction. `prob` is the posterior mean of p(y=1|x); `uncertainty` is p(1−p), or 0.25 where
#: the model read only a part of the comment (`cut`); `model_variance` is Var_W p(y=1|x,W);
#: `flagged` is the automated decision: prob > threshold of that model version, or what the source
#: brought of that day, a decision of the platform or a flag, and then `threshold` is null.
SCORES = _table(
    *_required(pa.string(), "comment_id", "model_version"),
    *_required(pa.string(), "role"),  # champion | challenger
    *_required(pa.float32(), "prob", "uncertainty"),
    *_columns(pa.float32(), "model_variance", "mutual_information"),
    *_required(pa.bool_(), "cut", "flagged"),
    ("threshold", pa.float64()),  # of that model version; null: of the source
)

#: Scores of the shards of a day, before validation, in pieces. `digest` is a hash of what was
#: scored: of the comment's id and text, or of its id and the scores that the source brought.
STAGED_SCORES = pa.schema(
    [
        *SCORES,
        *_required(pa.int32(), "shard"),
        pa.field("piece", pa.int32()),
        pa.field("digest", pa.int64()),
    ]
)

#: One stratum of the sampling design of a day. Stratum 0 is the certainty stratum (all comments are
#: reviewed); the others divide the rest by lower ≤ review score ≤ upper and by `flagged`: only
#: flagged comments, only others, or both where it is missing.
ROUTING_DESIGN = _table(
    *_required(pa.string(), "model_version", "strategy"),
    *_required(pa.float64(), "review_fraction"),
    # By which the logits of the scores were recalibrated for their order; missing if they were not.
    *_columns(pa.float64(), "intercept", "slope"),
    ("by_variance", pa.list_(pa.float64())),  # `VarianceCalibration.coefficients`; likewise
    *_required(pa.int32(), "stratum"),
    *_columns(pa.float64(), "lower", "upper"),
    *_columns(pa.bool_(), "flagged"),
    *_required(pa.int64(), "population"),  # N_h
    *_required(pa.int64(), "sample"),  # n_h
    # Hash of the day's scores and decisions.
    ("scores_digest", pa.string()),
)

#: One comment that repeats another one with a higher review score, so that no review of the top is
#: spent on it.
COPIES = _table(*_required(pa.string(), "comment_id"))

#: Columns of ROUTED, by the first label 0, 1.
CONFIRMATION_PROBABILITIES = ("confirmation_probability_0", "confirmation_probability_1")

#: One comment sent to review.
ROUTED = _table(
    *_required(pa.string(), "comment_id", "reason"),
    *_required(pa.int32(), "stratum"),
    *_required(pa.float64(), "inclusion_probability"),
    *_required(pa.int64(), "rank"),  # 1 is reviewed first
    *_required(pa.float64(), "review_score"),
    *_required(pa.string(), "model_version"),
    # Probability in [0, 1] that a first label 0, 1 is confirmed.
    *_columns(pa.float64(), *CONFIRMATION_PROBABILITIES),
)

_LABEL = [
    *_required(pa.string(), "comment_id"),
    *_required(pa.int8(), "label"),
    *_required(pa.string(), "moderator"),
    *_required(_UTC, "decided_at"),
    pa.field("seconds", pa.float64()),
]

#: The label of one routed comment, from the decision log: as it is now, and as it was given first.
LABELS = _table(
    *_LABEL,
    # The label before any correction, and who gave it.
    pa.field("first_label", pa.int8()),
    pa.field("first_moderator", pa.string()),
)

#: One confirmation of a routed comment that has a current label: the label of a second person
#: (round 2) or, where two differ, of a third (round 3), as given and without knowledge of others.
#: Or the answer to a gold item of the day (round 0).
CONFIRMATIONS = _table(
    *_LABEL,
    *_required(pa.int8(), "round"),  # 2 | 3 | 0
    # The first label as it was given, whose `confirmation_probability` of `routed` applies; of an
    # answer the gold label.
    *_required(pa.int8(), "first_label"),
)

#: One routed comment without a label when the review of its day was over. `reason`: skipped |
#: escalated | dismissed | waiting. A random part of each `part` (slice | top_flagged | top) is
#: drawn, and followed up. Made once a day; counts while the comments of `routed_digest` are routed.
FOLLOW_UPS = _table(
    *_required(pa.string(), "comment_id", "part", "reason"),
    *_required(pa.bool_(), "drawn"),
    *_required(pa.float64(), "probability"),  # of being drawn; 0 where it was dismissed
    *_required(pa.string(), "routed_digest"),
)

#: One label as it was given, without knowledge of others; `dt` is the UTC day of `decided_at`,
#: `comment_dt` that of the comment. `source`: the kind of the item.
ANNOTATIONS = _table(
    *_required(pa.string(), "comment_id"),
    *_required(pa.date32(), "comment_dt"),
    *_required(pa.string(), "annotator"),
    *_required(pa.int8(), "label"),
    *_required(_UTC, "decided_at"),
    *_required(pa.string(), "source"),
)

#: One estimate of a figure of a day, or of the `window` that ends with it. `strategy` and `alpha`
#: are null for metrics that do not depend on them. `design`: by the design alone
#: (`statistics.live.census`). `digest`: hash of what was measured.
ESTIMATES = _table(
    *_required(pa.string(), "metric"),
    ("strategy", pa.string()),
    ("alpha", pa.float64()),
    *_ESTIMATE,
    *_required(pa.int64(), "n"),
    *_required(pa.float64(), "effective_n"),
    *_required(pa.string(), "status", "reason"),  # ok | insufficient
    *_required(pa.bool_(), "window", "design"),
    *_required(pa.string(), "digest"),
)

#: The labels of a day without its comments: how many of a score have so many labels, of which so
#: many are toxic, by the kinds of `statistics.live.sample.Sample.given`. They tell later days
#: P(toxic | score).
LABEL_COUNTS = _table(
    *_required(pa.float64(), "prob"),  # with a logit that is rounded
    *_required(pa.int64(), "kind", "given", "toxic", "comments"),
)

#: Counts that describe a day; the counts of several days add up to those of a reference.
#:
#:     feature      bin                  category                          count
#:     prob         0…999 over [0, 1]    null                              scores in the bin
#:     uncertainty  0…999 over [0, ¼]    null                              scores in the bin
#:     flagged      null                 null                              flagged scores
#:     language     null                 primary subtag; `und` for none    comments
#:     platform     null                 its name; `(none)` for none       comments
#:     length       null                 characters, in `LENGTH_BANDS`     comments
#:     script       null                 of most letters, as in Unicode    about 2,000 comments
#:     detected_language  null           ISO 639; `und` for undetermined   those without language
#:     missing      null                 an optional column                comments without it, or 0
#:     rows         null                 `comments`, `quarantined`         rows, or 0
#:     origin       null                 of a model reference: its model   1
#:
#: Bins have equal widths and exclude their upper end, except the last; empty bins are omitted.
PROFILES = _table(
    *_required(pa.string(), "feature"),
    ("bin", pa.int32()),
    ("category", pa.string()),
    *_required(pa.int64(), "count"),
    ("model_version", pa.string()),  # of prob, uncertainty, flagged; null for the others
    # Of held-out comments of the model that scored the day, as it scores them; the fixed reference.
    *_required(pa.bool_(), "held_out"),
)

#: One metric of the drift, volume or queue of a day, by metric, feature and reference.
#:
#:     metric                     feature                      reference  unit
#:     psi                        prob, uncertainty            both       ≥ 0
#:     jensen_shannon             language, platform, length,  both       bits in [0, 1]
#:                                script, detected_language
#:     flagged_share_change       flagged                      both       signed, in [−1, 1]
#:     missing_share_change       an optional column           both       signed, in [−1, 1]
#:     quarantined_share_change   quarantined                  both       signed, in [−1, 1]
#:     volume_ratio               comments                     trailing   landed / trailing median
#:     flagged_share,             flagged,                     null       in [0, 1]
#:     missing_share,             an optional column,
#:     quarantined_share          quarantined
#:     cbpe_…                     prob                         null       in [0, 1]
#:     segment_flagged,           a segment (`shift_segments`)  trailing  its part of the change of
#:     segment_prob                                                       the flagged share, or of
#:                                                                        the mean score
#:     queue_completion           queue                        null       decided / queued
#:     queue_waiting              queue                        null       undecided items
#:     queue_age_median_hours,    queue                        null       hours, to a tenth
#:     queue_age_oldest_hours,
#:     queue_decision_median_hours
#:
#: `reference`: `fixed` (held-out comments of the model, or the first days) | `trailing` (the days
#: before) | null (the day alone).
#: `low`, `high`: 95 % confidence interval (sampling); null where the metric has none.
#: `n`, `reference_n`: number of comments (queue: items) of the day, and of the reference.
#: `status`: `ok` | `insufficient`. `reason`: why there is no value; if ok, empty, a remark about
#: the reference, of a mix the category that grew most, or the segment as a sentence. Of a measure
#: at most one segment: one that explains a large part of the change, and stands out.
DRIFT = _table(
    *_required(pa.string(), "metric", "feature"),
    ("reference", pa.string()),
    *_ESTIMATE,
    *_required(pa.int64(), "n"),
    ("reference_n", pa.int64()),
    *_required(pa.string(), "status", "reason"),
)

#: Scored comments of a day by platform, language, length, thread and identities, the flagged ones
#: among them, the sum of their `prob` and of its squares; those of several days add up to those of
#: a reference. `thread`: an id, or a digest of what does not look like one; `(other)` but for the
#: largest. `identity`: those that a comment mentions, with "; " between them.
SEGMENT_COUNTS = _table(
    *_required(pa.string(), *grouped(), "length", "model_version"),
    *_required(pa.int64(), "comments", "flagged"),
    *_columns(pa.string(), "thread", "identity"),
    *_columns(pa.float64(), "prob", "prob_square"),
)

#: One open incident at the end of a day. Its notifications are in the review database.
ALERTS = _table(
    *_required(pa.string(), "rule"),
    *_required(pa.string(), "subject"),  # feature and reference; may be empty
    *_required(pa.string(), "severity"),  # info | warning | critical
    *_required(pa.date32(), "since"),  # first day of the incident
    *_required(pa.string(), "description"),  # value of the day and the bound
    ("headline", pa.string()),  # what happened, in the words of the alert
    ("segment", pa.string()),  # where most of a change of the scores is, as a sentence
)

#: The reliability diagram of a window: one row per bin lower < prob ≤ upper.
RELIABILITY = _table(
    *_required(pa.float64(), "lower", "upper"),
    ("mean_prob", pa.float64()),  # of all comments of the bin
    *_columns(pa.float64(), "positive_rate", "low", "high"),
    *_required(pa.int64(), "count"),  # labels
    *_required(pa.float64(), "weight"),  # comments
    *_required(pa.string(), "status"),  # ok | insufficient
)

#: Whether the labels of a window contradict what its estimates suppose, and with which power they
#: would: `statistics.live.assumption_checks`. Counts only: no row is about a person.
ASSUMPTION_CHECKS = _table(
    *_required(pa.string(), "check"),
    *_required(pa.int64(), "tested", "n", "found"),  # sets, labels, sets that contradict
    *_columns(pa.float64(), "p_value", "power"),
)

#: The challenger and the champion over a window: `statistics.live.paired.compare_days`.
CHALLENGER = _table(
    *_required(pa.string(), "champion_version", "challenger_version", "metric"),
    *_columns(pa.float64(), "champion", "challenger"),
    *_ESTIMATE,  # of the difference, challenger less champion, where a metric has both
    *_required(pa.int64(), "n"),
    *_required(pa.string(), "status", "reason"),  # ok | insufficient
    *_required(pa.int64(), "days"),  # that both models scored
    *_required(pa.string(), "digest"),  # of what was compared
)

#: One metric of a group of comments, compared with all others: of `scope` day, known from scores
#: and routing (`statistics.live.group_estimates.SCORE_METRICS`); of `scope` window, estimated from
#: the labels of the window that ends with the day (`LABEL_METRICS`). `attribute`: platform |
#: language | identity. `difference`: from all other comments; `p_holm`: corrected for all rows of
#: the scope.
COMMENT_GROUPS = _table(
    *_required(pa.string(), "scope", "metric"),
    *_columns(pa.string(), "attribute", "group"),  # null: all comments together
    *_ESTIMATE,
    *_columns(pa.float64(), "difference", "difference_low", "difference_high"),
    *_columns(pa.float64(), "p_value", "p_holm"),
    *_required(pa.int64(), "n", "comments"),  # comments (day) or labels (window); comments
    *_required(pa.string(), "status", "reason"),  # ok | insufficient
    *_required(pa.string(), "digest"),  # of what was compared
)

#: A figure of a group of moderators compared with all others who chose one, as it is published;
#: `dt` ends the four weeks that are compared. Of shown groups only.
ANNOTATOR_GROUPS = _table(
    *_required(pa.string(), "group", "metric"),
    *_columns(pa.float64(), "value", "difference", "p_holm"),
    *_required(pa.int64(), "annotators", "annotations"),  # rounded down to tens; labels
)

#: One verification of the decision log; all but one that `completed` have no counts.
#: `witness_age_hours`: since the last witness outside the database, of this verification or an
#: earlier one; null: there is none, or no place for one. `clock_difference_seconds`: between the
#: database and this machine; null: unknown.
LOG_VERIFICATIONS = _table(
    *_required(pa.int64(), "decisions", "problems"),
    ("witness_age_hours", pa.float64()),
    *_required(pa.bool_(), "witness_expected", "completed"),
    ("clock_difference_seconds", pa.float64()),
)

#: The result of a day as it is published, one row a day. `status`: normal | warning since … |
#: critical since … | rejected | failed. `reason`: why the day was not measured; else empty.
#: `figures`: by the metric keys of MLflow; `low` and `high` end the 95 % interval of an estimate.
#: `digest`: hash of all that its run in MLflow shows.
DAYS = _table(
    *_required(pa.string(), "status", "checks", "reason", "strategy"),
    *_required(pa.string(), "model_version", "model_origin"),
    *_required(pa.bool_(), "deterministic"),
    *_required(pa.float64(), "review_fraction"),
    *_required(pa.int64(), "landed", "comments", "quarantined", "flagged"),
    *_required(pa.int64(), "routed", "labelled", "pooled_days", "window_days"),
    pa.field("figures", pa.list_(pa.struct([("key", pa.string()), *_ESTIMATE]))),
    *_required(pa.string(), "digest"),
)

TABLES: dict[str, pa.Schema] = {
    "landed": LANDED,
    "comments": COMMENTS,
    "quarantine": QUARANTINE,
    "erasures": ERASURES,
    "staged_scores": STAGED_SCORES,
    "scores": SCORES,
    "routing_design": ROUTING_DESIGN,
    "copies": COPIES,
    "routed": ROUTED,
    "labels": LABELS,
    "confirmations": CONFIRMATIONS,
    "follow_ups": FOLLOW_UPS,
    "annotations": ANNOTATIONS,
    "estimates": ESTIMATES,
    "label_counts": LABEL_COUNTS,
    "profiles": PROFILES,
    "reliability": RELIABILITY,
    "assumption_checks": ASSUMPTION_CHECKS,
    "challenger": CHALLENGER,
    "comment_groups": COMMENT_GROUPS,
    "annotator_groups": ANNOTATOR_GROUPS,
    "drift": DRIFT,
    "segment_counts": SEGMENT_COUNTS,
    "alerts": ALERTS,
    "log_verifications": LOG_VERIFICATIONS,
    "days": DAYS,
}

#: The tables with rows of the source, which have the columns of the platform, too; and those with
#: scores, which have what review scores need.
SOURCED, SCORED = ("landed", "comments", "quarantine"), ("scores", "staged_scores")
EXTENDED = (*SOURCED, *SCORED, "segment_counts")


def schema_of(table: str, own: Sequence[Column] = ()) -> pa.Schema:
    """Return the schema of a table, with `own` columns of the platform, or of its model, last.

    >>> channel = Column(name="channel", groups_by=True)
    >>> schema_of("comments", [channel]).names[-1], schema_of("scores", [channel]) == SCORES
    ('channel', True)
    """
    more: list[pa.Field] = []
    if table in SOURCED:
        more = [field_of(column) for column in own]
    elif table in SCORED:
        # Not imported for other tables: it takes a second.
        from modwatch.statistics.collaboration.review_strategies import (  # noqa: PLC0415
            score_columns,
        )

        added = (name for name in score_columns() if name not in SCORES.names)
        more = [pa.field(name, pa.float32()) for name in added]
    elif table == "segment_counts":  # by the names of the values
        more = [pa.field(column.name, pa.string()) for column in own if column.groups_by]
    return pa.schema([*TABLES[table], *more])


#: Partition columns of tables with more than `dt`: shards are written concurrently.
PARTITIONS: dict[str, list[str]] = {"staged_scores": ["dt", "shard", "piece"]}


def brings_decisions(decision: pa.Array | pa.ChunkedArray) -> bool:
    """Return whether any comment has a decision.

    >>> brings_decisions(pa.array(["none", None])), brings_decisions(pa.array(["none", "kept"]))
    (False, True)
    """
    return bool(set(decision.unique().to_pylist()) - {None, NO_DECISION})


def measured_columns(schema: pa.Schema) -> list[str]:
    """Return the columns whose least and largest value are stored with a file: no text, no name.

    They tell readers which files to skip. Delta copies them to its log, which outlives the rows.

    >>> measured_columns(COPIES), measured_columns(FOLLOW_UPS)
    ([], ['drawn', 'probability'])
    """
    kinds = (pa.types.is_string, pa.types.is_binary, pa.types.is_nested)
    # Every table has the partition `dt`, for which Delta needs no statistics.
    return [
        field.name
        for field in schema
        if field.name != "dt" and not any(kind(field.type) for kind in kinds)
    ]
