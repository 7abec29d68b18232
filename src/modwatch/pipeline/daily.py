"""The path of a day's comments, one function a step, in the order in which a comment meets them.

Each loads, computes, and saves. `day` is a UTC day. Each step may be killed at any point and run
again: it replaces the rows of the days that it covers.

    ingest → check_comments → plan_shards → score_shard → check_scores → route → score_challenger
    (people review) → collect_labels → follow_up → measure
                 → compare_challenger, compare_groups, detect_drift → raise_alerts → publish
                                                                                   → deliver_alerts
                                    verify_log → raise_alerts → deliver_alerts

`pipeline.model` makes the champion that scores, and the challenger that is compared with it.

Imports stand inside the steps: DAG files and the command line import this module at start, and a
task pays only for what it uses (0.1 s for this module, 1 to 4 s for the packages of a step).
"""

import datetime
import logging
from collections.abc import Callable, Iterable
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, TypedDict

from modwatch.common import days
from modwatch.common.account import Account
from modwatch.common.errors import LakeError, SettingsError, SourceError

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from modwatch.installation.resources import Resources

_log = logging.getLogger(__name__)

#: Day of the week on which groups of comments are compared by labels: Sunday.
_LABELS_COMPARED_ON = 7

#: Days whose rows in the source are counted again.
_COUNTED_DAYS = 14


class Shard(TypedDict):
    """Arguments of a mapped scoring task; small enough for XCom."""

    model_version: str
    shard: int
    #: Its comments are the rows of the source with first ≤ number < end.
    first: int
    end: int


def ingest(resources: "Resources", day: datetime.date, *, allow_empty: bool = False) -> int:
    """Read the day from the source, unchanged; return how many rows landed.

    The account of the source says where all that was read ended. Then earlier days are counted in
    the source: the alerts report rows that have arrived since.

    Raises:
        SettingsError: the day has not begun, or is before the first day, or `allow_empty` is not
            set and the source has no rows where some landed before, or the lake belongs to another
            review database; no table was changed.
        SourceError: the source cannot be read, and nobody declared the day empty; or the account
            does not close.
        StackError, DatabaseError: from `require_environment`; no table was changed.
    """
    from modwatch.data.lake.erasure import erased_again
    from modwatch.installation.environment import require_environment

    days.require_possible(day, resources.settings.first_day)
    require_environment(resources)
    account, source, lake = Account(), resources.source, resources.lake
    batches = iter(source.read(day, account))
    try:
        first = list(islice(batches, 1))
    except SourceError:  # such as no file
        if not _declared_empty_by(resources, day):
            raise
        first = []
    before = 0 if first or allow_empty else lake.count("landed", day)
    if before and not _declared_empty_by(resources, day):
        raise SettingsError(
            f"{source.name} has no rows of {day} any more, and {before:,} landed before; correct "
            f"the source, or run `modwatch run ingest {day} --allow-empty` to empty the day"
        )
    landed = lake.replace("landed", day, erased_again(lake, day, chain(first, batches)))
    account.count("landed", landed)
    account.close(source.name)
    resources.checks.save_account(day, account)
    try:
        _count_source(resources, day)
    except (LakeError, SourceError) as error:  # the day has landed all the same
        _log.warning("Late rows were not looked for: %s", error)
    return landed


def _count_source(resources: "Resources", day: datetime.date) -> None:
    """Count what the source has now of the days up to the newest one, and what had landed of them.

    Those are the days of two weeks, and earlier ones that differed when they were last counted.
    """
    from modwatch.data.sources.landing import CountedSource

    checks, source = resources.checks, resources.source
    if not isinstance(source, CountedSource):
        return
    counted = ((past, checks.load_counts(past)) for past in reversed(checks.days()))
    before, last = next((found for found in counted if found[1]), (day, {}))
    newest = max(day, before)
    differing = {past for past, (rows, landed) in last.items() if rows != landed}
    landed = {
        past: sum(account.places[place] for place in ("landed", "repeated", "deleted"))
        for past in sorted({*days.trailing(newest, _COUNTED_DAYS), *differing})
        if (account := checks.load_account(past))
    }
    found = source.counts([*landed])
    checks.save_counts(newest, {past: (number, landed[past]) for past, number in found.items()})


def check_comments(resources: "Resources", day: datetime.date) -> int:
    """Split the landed rows into comments and quarantine; return how many comments are valid.

    If the source brings scores, these are validated, too, and every comment needs one. A day
    without rows is fine if somebody declared it empty.

    Raises:
        DayRejectedError: validation of the day failed; no table was changed.
        SettingsError: an expectation of expectations.json cannot be evaluated.
    """
    from modwatch.data.lake.erasure import salted
    from modwatch.data.validation import profiles, rows
    from modwatch.data.validation.comments import validate_comments
    from modwatch.data.validation.page import publish_result
    from modwatch.monitoring.measurements.references import trailing_days

    lake, checks, thresholds = resources.lake, resources.checks, resources.thresholds
    landed, plan = partial(lake.read, "landed", day), resources.reference_plan
    account, elsewhere = checks.load_account(day), ""
    if account and (number := account.places["unusual_day"]):
        elsewhere = (
            f"the source has {number:,} of days in the future, or long ago, the first in "
            f"{account.first.get('unusual_day', 'a row without a place')}"
        )
    validated = validate_comments(
        landed,
        day=day,
        earlier_ids=profiles.earlier_ids(lake, day),
        later_ids=profiles.later_ids(lake, day),
        trailing=[*trailing_days(lake, checks, day, "comments", plan=plan).values()],
        volumes=profiles.seasonal_volumes(lake, day, day),
        calendar=resources.calendar,
        thresholds=thresholds,
        own_scores=resources.settings.own_scores,
        expectations=resources.expectations,
        declared_empty_by=None if lake.count("landed", day) else _declared_empty_by(resources, day),
        elsewhere=elsewhere,
        own=lake.columns,
    )
    first = rows.first_origins(landed(columns=["row", "origin"]), validated.invalid)
    result = validated.result.with_account(account, first)
    publish_result(checks, result)
    profiles.save_profile(lake, day, comments=validated.profile)
    invalid = rows.quarantined_rows(landed(), validated.invalid, lake.schema("quarantine"))
    lake.replace("quarantine", day, invalid, stage="comments")
    valid = rows.valid_rows(landed(), validated.invalid, lake.schema("comments"))
    return lake.replace("comments", day, salted(lake, day, valid))


def plan_shards(resources: "Resources", day: datetime.date) -> list[Shard]:
    """Return the day's shards and the model that scores all of them, or scored them at the source.

    A day without comments has an empty one: Airflow skips what follows a task without shards.

    Raises:
        NoChampionError: the source brought no scores, and no model is registered.
    """
    from modwatch.models.scoring.shards import shards

    lake, settings = resources.lake, resources.settings
    texts = lake.read("comments", day, columns=["row", "text"])
    planned = shards(texts, shard_tokens=settings.shard_tokens)
    version = _own_version(resources, day)
    if version is None and (planned or not settings.own_scores):
        version = resources.planned_version()
    lake.replace("staged_scores", day, [])
    return [
        Shard(model_version=version or "", shard=number, first=rows.start, end=rows.stop)
        for number, rows in enumerate(planned or [range(0)])
    ]


def score_shard(
    resources: "Resources",
    day: datetime.date,
    *,
    model_version: str,
    shard: int,
    first: int,
    end: int,
) -> int:
    """Score one shard of the day; return how many comments it holds.

    Its pieces are stored as they are scored: after a failure, those that are stored are not scored
    again, if they have exactly the comments of this plan, with the same texts. Scores that the
    source brought are taken as they are.

    Raises:
        SettingsError: the review strategy needs a column that the model does not return.
    """
    from modwatch.models.scoring.shards import ScoresOnce, own_scores, score_rows, store_shard
    from modwatch.routing.ordering import check_columns

    columns = _scored_columns(resources, day)

    def scoring() -> Callable[["pa.RecordBatch"], "pa.RecordBatch"]:
        if "prob" in columns:
            return partial(own_scores, day=day)
        scorer = ScoresOnce(resources.scorer(model_version))
        check_columns(resources.policy.strategy, scorer.columns, model_version)
        return partial(score_rows, scorer=scorer, day=day)

    return store_shard(
        resources.lake,
        day,
        shard,
        range(first, end),
        model_version=model_version,
        columns=columns,
        scoring=scoring,
    )


def score(resources: "Resources", day: datetime.date) -> int:
    """Score all shards of the day, one after the other; return how many comments."""
    return sum(score_shard(resources, day, **part) for part in plan_shards(resources, day))


def check_scores(resources: "Resources", day: datetime.date) -> int:
    """Publish the valid staged scores in one commit; return how many.

    Raises:
        DayRejectedError: validation failed; the published scores were not changed.
    """
    from modwatch.data.lake.erasure import kept_scores
    from modwatch.data.validation.page import publish_result
    from modwatch.data.validation.profiles import save_profile
    from modwatch.data.validation.scores import valid_scores, validate_scores
    from modwatch.models.scoring.shards import digests, stale_scores
    from modwatch.monitoring.measurements.references import model_reference, trailing_days

    lake, checks, thresholds = resources.lake, resources.checks, resources.thresholds
    version = _keep_model_reference(resources, day)

    def staged() -> "Iterable[pa.RecordBatch]":
        columns = lake.schema("scores").names
        return kept_scores(lake, day, lake.read("staged_scores", day, columns=columns))

    ids = lake.read("comments", day, columns=["comment_id"])
    scored = lake.read("staged_scores", day, columns=["digest"])
    comments = lake.read("comments", day, columns=_scored_columns(resources, day))
    trailing = trailing_days(
        lake, checks, day, "scores", plan=resources.reference_plan, model_version=version
    )
    validated = validate_scores(
        staged(),
        day=day,
        comment_ids=(batch.column("comment_id") for batch in ids),
        stale=stale_scores((batch.column("digest") for batch in scored), map(digests, comments)),
        trailing=[*trailing.values()],
        held_out=model_reference(lake, day),
        thresholds=thresholds,
        expectations=resources.expectations,
    )
    publish_result(checks, validated.result)
    save_profile(lake, day, scores=validated.profile)
    lake.replace("quarantine", day, [validated.quarantined], stage="scores")
    valid = valid_scores(staged(), validated)
    return lake.replace("scores", day, valid, role="champion")


def route(resources: "Resources", day: datetime.date) -> int:
    """Send the top of the day and a random slice to the review queue; return how many comments.

    Confirmations are queued with them, and open with the first labels that they confirm. Retests
    and gold items come on top.

    Raises:
        DesignError: the routing policy is invalid.
    """
    from modwatch.data.lake.day_scores import day_scores
    from modwatch.monitoring.measurements.tables import recalibration
    from modwatch.review.quality_control.queueing import queue_quality_control
    from modwatch.review.queue.intake import enqueue
    from modwatch.routing import routed
    from modwatch.routing.design import design_routing
    from modwatch.routing.ordering import copies_of, deployed_scores
    from modwatch.statistics.collaboration.review_strategies import copies_last

    lake, policy, salt = resources.lake, resources.policy, resources.sampling_salt
    scores = day_scores(lake, day)
    keys = routed.sampling_keys(scores, day=day, policy=policy, salt=salt)
    known = recalibration(lake, day, scores.model_version)
    score = deployed_scores(lake, day, scores, policy, known)
    copies = copies_of(lake, day, scores, policy, score)
    routing = design_routing(
        scores.prob,
        keys,
        policy,
        flagged=scores.flagged,
        cut=scores.cut,
        y_score=copies_last(score, copies),
    )
    recent = routed.recent_labels(lake, _window(resources, day)[:-1])
    rows = routed.routed_rows(day, scores, policy, routing, toxic_labels=recent)
    rows = routed.as_routed_before(lake, day, rows)
    confirmations = routed.confirmations(day, rows, policy=policy, salt=salt)
    design = routed.design_rows(day, scores, policy, routing, keys, known)
    lake.replace("copies", day, [routed.copy_rows(day, scores, copies)])
    lake.replace("routing_design", day, [design])
    lake.replace("routed", day, [rows])
    items = routed.queue_items(lake, day, rows, scores, confirmations)
    enqueue(resources.database, items, day, lanes=resources.lanes)
    queue_quality_control(
        resources.database,
        day,
        retest_share=resources.settings.retest_share,
        gold_share=resources.settings.gold_share,
        salt=salt,
        lanes=resources.lanes,
    )
    return len(rows)


def score_challenger(resources: "Resources", day: datetime.date) -> int:
    """Score the day with the challenger, for comparison only; return how many comments.

    Nothing is routed by these scores. Without a challenger, or if it scored the day as champion,
    there are none. It is compared with the scores of the source where that brought them.

    Raises:
        ModelError: the challenger cannot be loaded, or returns no probabilities.
    """
    from modwatch.data.lake.day_scores import day_scores
    from modwatch.data.lake.erasure import kept_scores
    from modwatch.models.scoring.shards import probabilities_only, score_rows

    lake, version = resources.lake, resources.registry.challenger_version()
    champion = day_scores(lake, day)
    if version is None or (version == champion.model_version and champion.threshold is not None):
        return lake.replace("scores", day, [], role="challenger")
    scorer = resources.scorer(version)
    texts = lake.read("comments", day, columns=["comment_id", "text"])
    scored = (score_rows(batch, scorer, day=day, role="challenger") for batch in texts)
    kept = kept_scores(lake, day, map(probabilities_only, scored), role="challenger")
    return lake.replace("scores", day, kept, role="challenger")


def collect_labels(resources: "Resources", day: datetime.date) -> int:
    """Copy the moderators' labels of the trailing window; return how many there are.

    Confirmations and answers to gold items are copied with them; open ones of earlier days are
    withdrawn.
    """

    from modwatch.review.log.labels import confirming_labels, current_labels
    from modwatch.review.quality_control.comparisons import gold_answers
    from modwatch.review.queue.intake import withdraw_expired
    from modwatch.review.queue.statements import settle_days

    lake, database, window = resources.lake, resources.database, _window(resources, day)
    routed = [past for past in window if lake.count("routed", past)]
    settle_days(database, routed)
    for past in routed:
        further = chain(confirming_labels(database, past), gold_answers(database, past))
        lake.replace("confirmations", past, further)
    withdraw_expired(database, window[0])
    return sum(lake.replace("labels", past, current_labels(database, past)) for past in routed)


def follow_up(resources: "Resources", day: datetime.date) -> int:
    """Draw follow-ups on the days of the window whose review is over; return how many are open.

    A day is drawn once, when half of the top and of the slice has a label, and again when other
    comments are routed. What is drawn comes first in the queue until it is labelled.
    """
    from modwatch.data.lake.day_scores import day_scores
    from modwatch.monitoring.measurements.windows import is_ripe
    from modwatch.review.queue.intake import serve_first
    from modwatch.review.queue.metrics import unlabelled
    from modwatch.routing.follow_ups import drawn_follow_ups, follow_up_rows

    lake, database, policy = resources.lake, resources.database, resources.policy
    count = 0
    for past in (past for past in _window(resources, day) if lake.count("routed", past)):
        drawn = drawn_follow_ups(lake, past)
        reasons = None if len(drawn) else unlabelled(database, past)
        if reasons and policy.follow_up_share and is_ripe(lake, past):
            scores, salt = day_scores(lake, past), resources.sampling_salt
            rows = follow_up_rows(lake, past, scores, reasons, policy, salt)
            lake.replace("follow_ups", past, [rows])
            drawn = drawn_follow_ups(lake, past)
        ids = drawn.filter(drawn.column("drawn")).column("comment_id").to_pylist()
        count += serve_first(database, past, ids) if ids else 0
    return count


def measure(resources: "Resources", day: datetime.date) -> int:
    """Measure the days of the window whose labels changed; return how many days.

    The windows that end with a day of the window are measured too if they changed.
    """
    from modwatch.monitoring.measurements.measurement import measure_day, measure_window
    from modwatch.monitoring.measurements.tables import is_unmeasured
    from modwatch.monitoring.measurements.windows import windows

    lake, policy, window = resources.lake.steady(), resources.policy, _window(resources, day)
    measured = windows(lake, (_window(resources, past) for past in window))
    changed = 0
    for past in window:  # in order: a window tells the next day of people's error rates
        if is_unmeasured(lake, past):
            measure_day(lake, past, policy)
            changed += 1
        measure_window(lake, next(measured), policy)
    return changed


def compare_challenger(resources: "Resources", day: datetime.date) -> int:
    """Compare the challenger with the champion over the window; return how many days both scored.

    On the labels that both share: which comments they decide differently, and paired differences of
    the metrics.
    """
    from modwatch.monitoring.measurements.challenger import compare_window
    from modwatch.monitoring.measurements.windows import windows

    lake = resources.lake.steady()
    (window,) = windows(lake, [_window(resources, day)])
    return compare_window(lake, window, resources.policy)


def compare_groups(resources: "Resources", day: datetime.date) -> int:
    """Compare the day's groups of comments by uncertainty, flags and reviews; return how many.

    On Sundays they are also compared by the model's errors, by the labels of the window, where
    these suffice: that takes a second a group.
    """
    from modwatch.monitoring.measurements import comment_groups
    from modwatch.monitoring.measurements.windows import windows

    lake, terms = resources.lake.steady(), resources.identity_terms
    if day.isoweekday() == _LABELS_COMPARED_ON:
        (window,) = windows(lake, [_window(resources, day)])
        comment_groups.compare_window(lake, window, resources.policy, terms)
    return comment_groups.compare_day(lake, day, terms)


def detect_drift(resources: "Resources", day: datetime.date) -> int:
    """Compare the day with its references and measure its queue; return how many findings.

    The segments are ranked that explain a change of the flagged share, or of the mean score.
    The queue metrics of the window's other days are updated: they have changed since.
    """
    from modwatch.monitoring.measurements import drift, segments
    from modwatch.monitoring.measurements.references import references

    lake, checks, database = resources.lake.steady(), resources.checks, resources.database
    plan, terms = resources.reference_plan, resources.identity_terms
    for past in _window(resources, day)[:-1]:
        drift.refresh_queue(lake, database, past)
    known = references(lake, checks, day, plan=plan)
    findings = drift.day_findings(lake, database, day, references=known, policy=resources.policy)
    explained = segments.segment_findings(
        segments.day_segments(lake, checks, day, plan=plan, terms=terms)
    )
    return lake.replace("drift", day, [drift.drift_rows(day, [*findings, *explained])])


def verify_log(resources: "Resources", day: datetime.date) -> int:
    """Verify the decision log against its last witness; return how many problems there are.

    An intact log gets a new witness, if MODWATCH_WITNESS_FOLDER names a place. The problems are
    what `modwatch queue verify-log` prints; here they are counted, for the alert. Nothing waits for
    it but an evaluation of the alert rules of its own.
    """
    from modwatch.review.log.witnesses import verify_decision_log

    return verify_decision_log(
        resources.lake,
        resources.database,
        day,
        resources.witness_folder,
        resources.authority,
        clock=partial(datetime.datetime.now, datetime.UTC),
    )


def raise_alerts(resources: "Resources", day: datetime.date) -> int:
    """Evaluate the alert rules up to the day; return how many new alerts were posted."""
    from modwatch.common.mlflow_client import alert_links
    from modwatch.monitoring.incidents.evaluation import evaluate

    return evaluate(
        resources.lake.steady(),
        resources.checks,
        resources.database,
        day,
        rules=resources.alert_rules,
        channels=resources.alert_channels,
        calendar=resources.calendar,
        window_days=resources.settings.window_days,
        links=alert_links(resources.site),
    )


def publish(resources: "Resources", day: datetime.date) -> int:
    """Publish the days that are new or changed, to the table `days` and to MLflow; return how many.

    Days that were rejected or failed are published as such.
    """
    from modwatch.monitoring.incidents.store import failures
    from modwatch.monitoring.measurements.tables import served_days
    from modwatch.monitoring.publishing.publication import publish_days

    lake, settings, oldest = resources.lake.steady(), resources.settings, _window(resources, day)[0]
    published = publish_days(
        lake,
        resources.checks,
        day,
        plan=resources.reference_plan,
        window_days=settings.window_days,
        keep_runs=settings.keep_runs,
        rules=resources.alert_rules,
        site=resources.site,
        failed={failed.since: failed.headline for failed in failures(resources.database, oldest)},
    )
    resources.registry.record_service(served_days(lake))
    return published


def deliver_alerts(resources: "Resources", day: datetime.date) -> int:
    """Send the alerts that are pending on any channel, with digests; return how many were sent.

    Raises:
        AlertError: a channel failed; its alerts stay pending.
    """
    from modwatch.monitoring.incidents.delivery import deliver

    return deliver(resources.database, resources.alert_channels, digest_of=day)


def plan_labels(resources: "Resources", day: datetime.date, **wanted: Any) -> "pd.DataFrame":
    """Return how to split labels between the random slice and confirmations.

    Computed from the window that ends with `day`; empty when it has no interval yet. `wanted` are
    the widths, budget and error rates of `routing.label_plan.plan_labels`.
    """
    from modwatch.monitoring.measurements.measurement import window_plan

    return window_plan(resources.lake, _window(resources, day), resources.policy, **wanted)


def _window(resources: "Resources", day: datetime.date) -> list[datetime.date]:
    """Return the trailing days that are measured again with `day`, oldest first."""
    return days.trailing(day, resources.settings.window_days)


def _declared_empty_by(resources: "Resources", day: datetime.date) -> str | None:
    """Return who declared that the day has no comments: a person or the calendar."""
    from modwatch.review.empty_days import declared_empty

    person = declared_empty(resources.database, day, day).get(day)
    return person or ("the calendar" if resources.calendar.explanation(day, 0.0) else None)


def _own_version(resources: "Resources", day: datetime.date) -> str | None:
    """Return the model version of scores that the source brought; None: a model scores the day."""
    from modwatch.models.scoring.shards import own_version

    return own_version(resources.lake.read("comments", day, columns=["model_version"]))


def _scored_columns(resources: "Resources", day: datetime.date) -> tuple[str, ...]:
    """Return the columns of the day's comments that its scores are made from."""
    from modwatch.models.scoring.shards import DECISION_COLUMNS, MODEL_COLUMNS, OWN_COLUMNS

    columns = MODEL_COLUMNS if _own_version(resources, day) is None else OWN_COLUMNS
    return (*columns, *(DECISION_COLUMNS if _has_decisions(resources, day) else ()))


def _has_decisions(resources: "Resources", day: datetime.date) -> bool:
    """Return whether the platform decided on any of the day's comments.

    A column without any decision, as an export may have, does not say that all was kept.
    """
    from modwatch.data.lake.schemas import brings_decisions

    batches = resources.lake.read("comments", day, columns=["decision"])
    return any(brings_decisions(batch.column(0)) for batch in batches)


def _keep_model_reference(resources: "Resources", day: datetime.date) -> str | None:
    """Keep the reference that the model of the staged scores brings; return its version.

    None: nothing is staged. Scores of the source have no model that could bring one. Where the
    platform decides, its share of restricted comments is not that of the model's flags.
    """
    from modwatch.data.lake.day_scores import DEMONSTRATION, ORIGIN
    from modwatch.data.validation.profiles import profile_rows
    from modwatch.models.reference import INVENTED, of_origin

    lake, source = resources.lake, resources.settings.source
    staged = lake.read("staged_scores", day, columns=["model_version"])
    version = next((batch.column(0)[0].as_py() for batch in staged if len(batch)), None)
    own = _own_version(resources, day) is not None
    brought = None if version is None or own else resources.model_reference(version)
    origin = "" if brought is None else next(iter(brought.categories.get(ORIGIN, ())), "")
    if origin == INVENTED and not (source and source.invented):
        brought = of_origin(DEMONSTRATION)
    elif brought is not None and _has_decisions(resources, day):
        brought = of_origin(origin)
    rows = [] if brought is None else [profile_rows(day, brought, held_out=True)]
    lake.replace("profiles", day, rows, held_out=True)
    return version


#: The steps that take a day and nothing else, in order.
STEPS: tuple[Callable[["Resources", datetime.date], int], ...] = (
    ingest,
    check_comments,
    score,
    check_scores,
    route,
    score_challenger,
    collect_labels,
    follow_up,
    measure,
    compare_challenger,
    compare_groups,
    detect_drift,
    verify_log,
    raise_alerts,
    publish,
    deliver_alerts,
)
