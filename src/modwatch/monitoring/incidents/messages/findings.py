"""What a rule found, in words: headlines, and metric values with their interval."""

import datetime
import re

from modwatch.monitoring.incidents.incidents import LevelChange, MetricValue
from modwatch.monitoring.incidents.messages.alert import header_safe, written
from modwatch.monitoring.incidents.rules import AlertRule, in_words
from modwatch.statistics.live.figures import FIGURES

_REFERENCES = {"fixed": "the fixed reference", "trailing": "the days before"}


#: The end of a title that is about numbers.
_FROM_VALUE = re.compile(r"(:| from| for) \{(?:value|before|after|remark)\}.*")

#: What is the case when a metric is not 0, and when it is.
_STATES = {
    "checks_rejected": (
        "Data validation rejected the day",
        "Data validation did not reject the day",
    ),
    "checks_warned": (
        "Data validation warned",
        "Data validation did not warn",
    ),
    "rows_late": (
        "The source has {value:,.0f} comments more than landed",
        "The source has no more comments than landed",
    ),
    "rows_gone": (
        "The source has {value:,.0f} comments fewer than landed",
        "The source has not lost more comments than usual",
    ),
    "log_problems": (
        "The decision log has problems: {value:.0f}",
        "The decision log has no problems",
    ),
    "log_unverified": (
        "The decision log could not be verified",
        "The decision log was verified",
    ),
    "log_witness_missing": (
        "No witness of the decision log was written",
        "A witness of the decision log was written",
    ),
}

#: What other metrics are, as the subject of a sentence.
_METRICS = {
    "clock_difference": "The difference between the clocks, in seconds,",
    "completion": "The labelled share of the routed comments",
    "flagged_share_change": "Flagged comments",
    "flagged_share_excess": "Flagged comments, whose share more than tripled",
    "jensen_shannon": "The Jensen–Shannon divergence, in bits,",
    "missing_share_change": "Empty values",
    "psi": "The population stability index",
    "queue_age_oldest_hours": "The waiting time of the oldest comment, in hours,",
    "group_accuracy_difference": "The difference of the accuracy from that of other comments",
    "group_calibration_error_difference": "The difference of the calibration error from that "
    "of other comments",
    "group_mean_uncertainty_difference": "The difference of the mean uncertainty from that of "
    "other comments",
    "annotators_agreement_difference": "The difference of the agreement with the model from that "
    "of other moderators",
    "annotators_uncertainty_divergence": "The divergence of the uncertainty from that of the "
    "majority",
}

#: What columns of the scores are; empty: the name of the metric says it.
_FEATURES = dict.fromkeys(("comments", "flagged", "queue"), "")
_FEATURES |= {"prob": "scores", "detected_language": "detected language"}


def describe_finding(rule: AlertRule, subject: str, value: MetricValue | None) -> str:
    """Return what a rule found, as a headline; the rule's title, or its name where it has none.

    >>> rule = AlertRule(name="scores_shifted", severity="info", metric="psi", direction="above",
    ...                  look_at="it", open={"bound": 0.2}, close={"bound": 0.1})
    >>> describe_finding(rule, "prob,fixed", None)
    'Scores shifted (prob, against the fixed reference)'
    >>> fell = rule.model_copy(update={"title": "The accuracy fell from {before} to {after}"})
    >>> describe_finding(fell, "", None)
    'The accuracy fell'
    """
    change = value.change if value else None
    names = {
        "feature": _feature_and_reference(subject)[0],
        "value": "" if value is None or value.value is None else _short(value.value),
        "before": f"{change.before.value:.3f}" if change else "",
        "after": f"{change.after.value:.3f}" if change else "",
        "remark": value.remark.partition(";")[0] if value else "",
    }
    title = rule.title
    if any(f"{{{name}}}" in title and not names[name] for name in names if name != "feature"):
        title, unknown = _FROM_VALUE.subn("", title)
        title = title if unknown else ""
    filled = re.sub(r"\{(\w+)\}", lambda found: names[found[1]], title)
    return " ".join(filled.split()) or name_in_words(rule.name, subject)


def _short(value: float) -> str:
    """Return a value with three digits, or all before the point.

    >>> _short(0.4567), _short(31200.0)
    ('0.457', '31,200')
    """
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def what_to_look_at(rule: AlertRule, subject: str, since: datetime.date) -> str:
    """Return what a rule says to investigate, about a feature, since a day."""
    feature = _feature_and_reference(subject)[0]
    return rule.look_at.replace("{feature}", feature).replace("{day}", str(since))


def name_in_words(rule: str, subject: str) -> str:
    """Return the name of a rule and its subject in words.

    >>> name_in_words("scores_shifted", "prob,fixed"), name_in_words("queue_old", "")
    ('Scores shifted (prob, against the fixed reference)', 'Queue old')
    """
    return in_words(rule).capitalize() + _about(*_feature_and_reference(subject))


def _about(feature: str, reference: str) -> str:
    """Return a feature and a reference as they follow a name.

    >>> _about("prob", "fixed"), _about("", "trailing"), _about("", "")
    (' (prob, against the fixed reference)', ' (against the days before)', '')
    """
    against = f"against {_REFERENCES[reference]}" if reference else ""
    parts = ", ".join(filter(None, (feature, against)))
    return f" ({parts})" if parts else ""


def _feature_and_reference(subject: str) -> tuple[str, str]:
    """Return both parts of a subject; the latter is empty if it has none."""
    feature, comma, reference = subject.rpartition(",")
    return (feature, reference) if comma and reference in _REFERENCES else (subject, "")


def describe_value(rule: AlertRule, value: MetricValue) -> str:
    """Return a metric value with its interval and the rule's threshold, in one line.

    What is the case or not has neither.

    >>> import datetime
    >>> rule = AlertRule(name="r", severity="info", metric="psi", direction="above", look_at="it",
    ...                  open={"bound": 0.2, "compare": "low"}, close={"bound": 0.1})
    >>> day = datetime.date(2026, 1, 5)
    >>> describe_value(rule, MetricValue(
    ...     day=day, metric="psi", feature="prob", value=0.31, low=0.28, high=0.35, n=2000)
    ... ).partition("index ")[2]
    '(scores) is 0.31 (95% CI 0.28 to 0.35, n = 2,000); threshold: lower bound > 0.2'
    >>> describe_value(rule, MetricValue(day=day, metric="checks_rejected", value=1.0, n=1129))
    'Data validation rejected the day (n = 1,129)'
    """
    if value.change is not None:
        return _describe_change(value, value.change)
    if value.metric in _STATES and value.value is not None:
        bad, good = _STATES[value.metric]
        state = bad.format(value=value.value) if value.value else good
        return f"{state} (n = {value.n:,})"
    threshold = _threshold(rule)
    if value.metric == "volume_ratio" and value.value is not None:
        if value.value and value.high:  # its interval is how far volumes usually vary
            factor = value.high / value.value
            threshold = f"; on other days {1 / factor:.2g} to {factor:.2g} times"
        return f"{value.value:.4g} times the usual volume (n = {value.n:,}){threshold}"
    feature, reference = _feature_and_reference(value.subject)
    name = _metric_name(value.metric) + _about(_FEATURES.get(feature, feature), reference)
    if value.value is None:
        return f"{name} could not be estimated (n = {value.n:,})"
    interval = ""
    if value.low is not None and value.high is not None:
        interval = f"95% CI {value.low:.4g} to {value.high:.4g}, "
    what = f"{name} is {value.value:.4g}{value.remark and f', {value.remark}'}"
    if "_share_" in value.metric and value.remark:
        what = f"{name}: {value.remark}; change {value.value:.4g}"
    return f"{what} ({interval}n = {value.n:,}){threshold}"


def _metric_name(metric: str) -> str:
    """Return what a metric is; of one that the default rules do not watch, its name in words.

    >>> _metric_name("completion"), _metric_name("window_brier")
    ('The labelled share of the routed comments', 'Brier score over the window')
    """
    key = metric.removeprefix("window_").removesuffix("_change")
    if key in FIGURES:
        words = FIGURES[key].words or FIGURES[key].title
        return f"{words} over the window" if metric.startswith("window_") else words
    return _METRICS.get(metric, in_words(metric).capitalize())


def _threshold(rule: AlertRule) -> str:
    """Return the condition that opens an incident, as the end of a line; empty if it has no bound.

    >>> _threshold(AlertRule(name="r", severity="info", metric="m", direction="below", look_at="it",
    ...                      open={"bound": 1 / 3}, close={"bound": 0.5}))
    '; threshold: < 0.3333'
    """
    if rule.open.compare == "insufficient":
        return ""
    compared = {"low": "lower bound ", "high": "upper bound ", "value": ""}[rule.open.compare]
    sign = {"above": ">", "below": "<"}[rule.direction]
    return f"; threshold: {compared}{sign} {rule.open.bound:.4g}"


def _describe_change(value: MetricValue, change: LevelChange) -> str:
    """Return levels, size and day of a change, each with its 95 % interval."""
    name = _metric_name(value.metric)
    size = 100 * (value.value or 0.0)
    ends = ""
    if value.low is not None and value.high is not None:
        ends = f" (95 % interval {_signed(100 * value.low)} to {_signed(100 * value.high)})"
    days = ""
    if change.day_low < change.day_high:
        days = f" ({written(change.day_low)} to {written(change.day_high)})"
    before, after = change.before, change.after
    return (
        f"{name} fell from {before.value:.3f} ({before.low:.3f} to {before.high:.3f}) to "
        f"{after.value:.3f} ({after.low:.3f} to {after.high:.3f}), a change of {_signed(size)} "
        f"points{ends}, since {written(change.day)}{days}{_by_chance(change.evidence)}"
    )


def _by_chance(days: float) -> str:
    """Return how rare evidence is without a change, in quarters; nothing where it is not.

    >>> _by_chance(540.0), _by_chance(1e9), _by_chance(80.0)
    ('; by chance at most once in 6 quarters', '; by chance at most once in 1,000 quarters', '')
    """
    quarters = min(int(days / 90), 1000)
    return f"; by chance at most once in {quarters:,} quarters" if quarters > 1 else ""


def _signed(number: float) -> str:
    return f"{number:+.1f}".replace("-", "−")


def series_name(rule: str, subject: str) -> str:
    """Return the name of the series that one rule watches for one subject.

    >>> series_name("scores_shifted", "prob,fixed"), series_name("queue_old", "")
    ('scores_shifted[prob,fixed]', 'queue_old')
    """
    return header_safe(f"{rule}[{subject}]" if subject else rule)
