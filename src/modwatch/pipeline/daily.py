"""A comment's path, one function a stop, in the order in which a comment meets them.

Each loads, calls one package, and saves. `at` is the opened wiring, `day` the UTC day. Each may
be killed at any point and run again: it replaces the rows of its day and nothing else.

    ingest → check_comments → plan_shards → score_shard → check_scores → route
    (people review) → collect_labels → measure → detect_drift → raise_alerts → publish
                                                                             → deliver_alerts

`train` makes the champion that scores.
"""

import datetime
from collections.abc import Callable
from functools import partial
from typing import TypedDict

from modwatch.ingest.corpora.corpus import LabelledTexts
from modwatch.lake.schemas import SCORES
from modwatch.resources import Resources

_ONE_DAY = datetime.timedelta(days=1)


class Shard(TypedDict):
    """What a mapped scoring task is told; small enough for XCom."""

    model_version: str
    shard: int
    shards: int


def ingest(at: Resources, day: datetime.date) -> int:
    """Fetch the day from the source, as it is; return how many rows landed."""
    return at.lake.replace("landed", day, at.source.read(day))


def check_comments(at: Resources, day: datetime.date) -> int:
    """Split the landed rows into comments and quarantine; return how many comments are valid.

    Raises:
        DayRejectedError: a critical rule of the day failed; no table was changed.
    """
    from modwatch import quality

    landed = partial(at.lake.read, "landed", day)
    published = at.lake.read_between(
        "comments", datetime.date.min, day - _ONE_DAY, columns=["comment_id"]
    )
    validated = quality.validate_comments(
        landed,
        day=day,
        earlier_ids=(batch.column("comment_id") for batch in published),
        trailing=quality.trailing_profiles(at.lake, at.checks, day, at.thresholds),
        thresholds=at.thresholds,
    )
    quality.publish_result(at.checks, validated.result)
    quality.save_profile(at.lake, day, comments=validated.profile)
    invalid = quality.quarantined_rows(landed(), validated.invalid)
    at.lake.replace("quarantine", day, invalid, stage="comments")
    return at.lake.replace("comments", day, quality.valid_rows(landed(), validated.invalid))


def plan_shards(at: Resources, day: datetime.date) -> list[Shard]:
    """Return the day's shards and the model that scores all of them.

    Raises:
        NoChampionError: no model is registered.
    """
    from modwatch.scoring.shards import shard_count

    version = at.champion_version()
    shards = shard_count(at.lake.count("comments", day), at.settings.shard_rows)
    at.lake.replace("staged_scores", day, [])
    return [Shard(model_version=version, shard=k, shards=shards) for k in range(shards)]


def score_shard(
    at: Resources, day: datetime.date, *, model_version: str, shard: int, shards: int
) -> int:
    """Score one shard of the day; return how many comments it holds."""
    from modwatch.scoring.shards import in_shard, score_rows

    scorer = at.scorer(model_version)
    texts = at.lake.read("comments", day, columns=["comment_id", "text"])
    mine = (in_shard(batch, shard, shards) for batch in texts)
    scored = (score_rows(batch, scorer, day=day, shard=shard) for batch in mine)
    return at.lake.replace("staged_scores", day, scored, shard=shard)


def score(at: Resources, day: datetime.date) -> int:
    """Score all shards of the day, one after the other; return how many comments."""
    return sum(score_shard(at, day, **part) for part in plan_shards(at, day))


def check_scores(at: Resources, day: datetime.date) -> int:
    """Publish the valid staged scores in one commit; return how many.

    Raises:
        DayRejectedError: a critical rule failed; the published scores were not changed.
    """
    from modwatch import quality

    staged = partial(at.lake.read, "staged_scores", day, columns=SCORES.names)
    ids = at.lake.read("comments", day, columns=["comment_id"])
    validated = quality.validate_scores(
        staged(),
        day=day,
        comment_ids=(batch.column("comment_id") for batch in ids),
        trailing=quality.trailing_profiles(at.lake, at.checks, day, at.thresholds),
        thresholds=at.thresholds,
    )
    quality.publish_result(at.checks, validated.result)
    quality.save_profile(at.lake, day, scores=validated.profile)
    at.lake.replace("quarantine", day, [validated.quarantined], stage="scores")
    valid = quality.valid_scores(staged(), validated)
    return at.lake.replace("scores", day, valid, role="champion")


def route(at: Resources, day: datetime.date) -> int:
    """Send the top of the day and a random slice to the review queue; return how many comments.

    Some of them are queued twice, for two people. Comments that moderators have labelled before,
    and some whose label is known, come on top.

    Raises:
        DesignError: the policy is impossible.
    """
    from modwatch.monitoring import tables
    from modwatch.review.checks.queueing import queue_checks
    from modwatch.review.queue import enqueue
    from modwatch.routing.design import design

    policy, scores = at.policy, tables.day_scores(at.lake, day)
    keys = tables.sampling_keys(scores, day=day, policy=policy, salt=at.sampling_salt)
    routing = design(scores.prob, keys, policy)
    routed = tables.routed_rows(day, scores, routing)
    again = tables.second_opinions(day, routed, policy=policy, salt=at.sampling_salt)
    at.lake.replace("routing_design", day, [tables.design_rows(day, scores, policy, routing)])
    at.lake.replace("routed", day, [routed])
    items = tables.queue_items(at.lake, day, routed, scores, again)
    enqueue(at.database, items, day, lanes=at.lanes)
    queue_checks(
        at.database,
        day,
        retest_share=at.settings.retest_share,
        gold_share=at.settings.gold_share,
        salt=at.sampling_salt,
        lanes=at.lanes,
    )
    return len(routed)


def collect_labels(at: Resources, day: datetime.date) -> int:
    """Copy the moderators' labels of the trailing window; return how many there are.

    Second opinions and answers to retests and gold items are copied beside them; those of earlier
    days are asked for no longer.
    """
    from modwatch.review.checks.answers import check_answers
    from modwatch.review.checks.queueing import retire_checks
    from modwatch.review.queue import decisions, retire_second_opinions

    window = at.window(day)
    routed = [past for past in window if at.lake.count("routed", past)]
    for past in routed:
        again = decisions(at.database, past, kind="second_opinion", unaware=True)
        at.lake.replace("second_labels", past, again)
        at.lake.replace("check_answers", past, check_answers(at.database, past))
    retire_second_opinions(at.database, window[0])
    retire_checks(at.database, window[0])
    return sum(at.lake.replace("labels", past, decisions(at.database, past)) for past in routed)


def measure(at: Resources, day: datetime.date) -> int:
    """Measure the days of the window whose labels changed; return how many days.

    The windows that end with a day of the window are measured too, as far as they changed.
    """
    from modwatch.monitoring import measurement, tables
    from modwatch.monitoring.windows import windows

    changed = [past for past in at.window(day) if tables.is_unmeasured(at.lake, past)]
    for past in changed:
        measurement.measure_day(at, past)
    for window in windows(at.lake, (at.window(past) for past in at.window(day))):
        measurement.measure_window(at, window)
    return len(changed)


def detect_drift(at: Resources, day: datetime.date) -> int:
    """Compare the day with its references and measure its queue; return how many findings.

    The queue metrics of the window's other days are updated: they have changed since.
    """
    from modwatch.monitoring import drift

    for past in at.window(day)[:-1]:
        drift.refresh_queue(at.lake, at.database, past)
    fixed = drift.fixed_days(
        at.lake, day, first=at.settings.reference_first_day, days=at.settings.reference_days
    )
    references = drift.references(at.lake, at.checks, day, fixed=fixed, thresholds=at.thresholds)
    findings = drift.day_findings(
        at.lake, at.database, day, references=references, policy=at.policy
    )
    return at.lake.replace("drift", day, [drift.drift_rows(day, findings)])


def raise_alerts(at: Resources, day: datetime.date) -> int:
    """Judge the figures by the alert rules; return how many messages people have to get."""
    from modwatch.alerts import alerting

    return alerting.raise_alerts(at, day)


def publish(at: Resources, day: datetime.date) -> int:
    """Publish the days of the window that MLflow does not show yet; return how many days."""
    from modwatch.monitoring import publication

    stale = publication.stale_days(at, at.window(day))
    for past in stale:
        publication.publish(at, past)
    publication.publish_timeline(at)
    return len(stale)


def deliver_alerts(at: Resources, _day: datetime.date) -> int:
    """Send the alerts that some channel has not got yet; return how many were sent.

    Raises:
        AlertError: a channel did not take them; they are kept for the next call.
    """
    from modwatch.alerts import alerting

    return alerting.deliver(at)


def train(
    at: Resources,
    corpus: LabelledTexts,
    *,
    expected_prevalence: float | None = None,
    seed: int = 0,
    progress: Callable[[str], None] = lambda _: None,
) -> str:
    """Train the offline model on `corpus`, register it as champion; return its version."""
    from modwatch.models import champion

    return champion.train_champion(
        corpus.texts,
        corpus.labels.tolist(),
        expected_prevalence=expected_prevalence,
        seed=seed,
        name=at.settings.model_name,
        tracking_uri=at.settings.mlflow_url,
        progress=progress,
    )
