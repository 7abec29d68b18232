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
from typing import TypedDict

from modwatch.ingest.corpora.corpus import LabelledTexts
from modwatch.resources import Resources


class Shard(TypedDict):
    """What a mapped scoring task is told; small enough for XCom."""

    model_version: str
    shard: int
    shards: int


def ingest(at: Resources, day: datetime.date) -> int:
    """Fetch the day from the source, as it is; return how many rows landed."""
    return at.lake.replace("landed", day, at.source.read(day))


def check_comments(at: Resources, day: datetime.date) -> int:
    """Part the landed rows into comments and quarantine; return how many comments are good.

    Raises:
        DayRejectedError: a critical rule of the day failed; no table was changed.
    """
    from modwatch import quality

    profile = quality.profile_comments(
        at.lake.read("landed", day), day=day, earlier_ids=at.earlier_ids(day)
    )
    checked = quality.check_comments(
        profile, history=at.verdicts_before("comments", day), thresholds=at.thresholds
    )
    at.keep_verdict(checked.verdict)
    refused = quality.refused_rows(at.lake.read("landed", day), checked.refusals)
    at.lake.replace("quarantine", day, refused, stage="comments")
    good = quality.accepted_rows(at.lake.read("landed", day), checked.refusals)
    return at.lake.replace("comments", day, good)


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
    """Publish the staged scores in one commit, if they are right; return how many.

    Raises:
        DayRejectedError: a critical rule failed; the published scores were not changed.
    """
    from modwatch import quality

    ids = at.lake.read("comments", day, columns=["comment_id"])
    profile = quality.profile_scores(
        at.staged_scores(day), day=day, comment_ids=(batch.column(0) for batch in ids)
    )
    checked = quality.check_scores(
        profile, history=at.verdicts_before("scores", day), thresholds=at.thresholds
    )
    at.keep_verdict(checked.verdict)
    at.lake.replace("quarantine", day, [checked.refused], stage="scores")
    good = quality.accepted_scores(at.staged_scores(day), checked)
    return at.lake.replace("scores", day, good, role="champion")


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
    """Compare the day with its references and look at its health; return how many figures.

    The queues of the window's other days are looked at again: they have changed since.
    """
    from modwatch.monitoring import measurement, profiles

    for past in at.window(day)[:-1]:
        measurement.refresh_queue(at, past)
    findings = list(measurement.day_findings(at, day))
    return at.lake.replace("drift", day, [profiles.drift_rows(day, findings)])


def raise_alerts(at: Resources, day: datetime.date) -> int:
    """Evaluate the alert rules up to the day; return how many new alerts were posted."""
    from modwatch.alerts.evaluation import evaluate
    from modwatch.tracking.links import alert_links

    settings = at.settings
    return evaluate(
        at.lake,
        at.checks,
        at.database,
        day,
        rules=at.alert_rules,
        channels=at.alert_channels,
        window_days=settings.window_days,
        links=alert_links(settings.mlflow_url, settings.console_url, settings.airflow_url),
    )


def publish(at: Resources, day: datetime.date) -> int:
    """Publish the days of the window that MLflow does not show yet; return how many days."""
    from modwatch.monitoring import publication

    settings = at.settings
    stale = publication.stale_days(
        at.lake,
        at.checks,
        {past: at.window(past) for past in at.window(day)},
        mlflow_url=settings.mlflow_url,
    )
    for past in stale:
        publication.publish(
            at.lake,
            at.checks,
            past,
            window=at.window(past),
            references={"trailing": at.days_before(past), "fixed": at.reference_days(past)},
            mlflow_url=settings.mlflow_url,
            console_url=settings.console_url,
            airflow_url=settings.airflow_url,
        )
    publication.publish_timeline(settings.mlflow_url)
    return len(stale)


def deliver_alerts(at: Resources, _day: datetime.date) -> int:
    """Send the alerts that are pending on any channel; return how many were sent.

    Raises:
        AlertError: a channel failed; its alerts stay pending.
    """
    from modwatch.alerts.delivery import deliver

    return deliver(at.database, at.alert_channels)


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
