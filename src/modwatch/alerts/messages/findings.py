"""What a rule found, in words: headlines, and metric values with their interval."""

import re

from modwatch.alerts.incidents import LevelChange, MetricValue
from modwatch.alerts.messages.alert import header_safe, written
from modwatch.alerts.rules import AlertRule, in_words

_REFERENCES = {"fixed": "the fixed reference", "trailing": "the days before"}

#: Of metrics that follow a level: whose level it is.
_METRIC_NAMES = {"accuracy_change": "Accuracy", "oc_accuracy_change": "Accuracy with review"}


def describe_finding(rule: AlertRule, subject: str, value: MetricValue | None) -> str:
    """Return what a rule found, as a headline; the rule's title, or its name where it has none.

    >>> rule = AlertRule(name="scores_shifted", severity="info", metric="psi", direction="above",
    ...                  look_at="it", open={"bound": 0.2}, close={"bound": 0.1})
    >>> describe_finding(rule, "prob,fixed", None)
    'Scores shifted (prob, against the fixed reference)'
    """
    if not rule.title or ("{before}" in rule.title and (value is None or value.change is None)):
        return name_in_words(rule.name, subject)
    change = value.change if value else None
    number = "" if value is None or value.value is None else f"{value.value:.3g}"
    names = {
        "feature": _feature_and_reference(subject)[0],
        "value": number,
        "before": f"{change.before.value:.3f}" if change else "",
        "after": f"{change.after.value:.3f}" if change else "",
    }
    title = re.sub(r"\{(\w+)\}", lambda found: names[found[1]], rule.title)
    return " ".join(title.split())


def name_in_words(rule: str, subject: str) -> str:
    """Return the name of a rule and its subject in words.

    >>> name_in_words("scores_shifted", "prob,fixed"), name_in_words("queue_old", "")
    ('Scores shifted (prob, against the fixed reference)', 'Queue old')
    """
    feature, reference = _feature_and_reference(subject)
    against = f", against {_REFERENCES[reference]}" if reference else ""
    about = f" ({feature}{against})" if subject else ""
    return in_words(rule).capitalize() + about


def _feature_and_reference(subject: str) -> tuple[str, str]:
    """Return both parts of a subject; the latter is empty if it has none."""
    feature, comma, reference = subject.rpartition(",")
    return (feature, reference) if comma and reference in _REFERENCES else (subject, "")


def describe_value(rule: AlertRule, value: MetricValue) -> str:
    """Return a metric value with its interval and the rule's threshold, in one line.

    >>> import datetime
    >>> rule = AlertRule(name="r", severity="info", metric="psi", direction="above", look_at="it",
    ...                  open={"bound": 0.2, "compare": "low"}, close={"bound": 0.1})
    >>> day = datetime.date(2026, 1, 5)
    >>> describe_value(
    ...     rule, MetricValue(day=day, metric="psi", value=0.31, low=0.28, high=0.35, n=2000))
    'psi is 0.31 (95% CI 0.28 to 0.35, n = 2,000); threshold: lower bound > 0.2'
    """
    if value.change is not None:
        return _describe_change(value, value.change)
    name = value.metric + in_brackets(value.subject)
    if value.value is None:
        return f"{name} could not be estimated (n = {value.n:,})"
    interval = ""
    if value.low is not None and value.high is not None:
        interval = f"95% CI {value.low:.4g} to {value.high:.4g}, "
    text = f"{name} is {value.value:.4g} ({interval}n = {value.n:,})"
    if rule.open.compare == "insufficient":
        return text
    compared = {"low": "lower bound ", "high": "upper bound ", "value": ""}[rule.open.compare]
    sign = {"above": ">", "below": "<"}[rule.direction]
    return f"{text}; threshold: {compared}{sign} {rule.open.bound:g}"


def _describe_change(value: MetricValue, change: LevelChange) -> str:
    """Return levels, size and day of a change, each with its 95 % interval."""
    name = _METRIC_NAMES.get(value.metric, value.metric)
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
        f"points{ends}, since {written(change.day)}{days}"
    )


def _signed(number: float) -> str:
    return f"{number:+.1f}".replace("-", "−")


def series_name(rule: str, subject: str) -> str:
    """Return the name of the series that one rule watches for one subject.

    >>> series_name("scores_shifted", "prob,fixed"), series_name("queue_old", "")
    ('scores_shifted[prob,fixed]', 'queue_old')
    """
    return header_safe(f"{rule}[{subject}]" if subject else rule)


def in_brackets(subject: str) -> str:
    """Return a subject as it follows a name; empty if there is none.

    >>> "psi" + in_brackets("prob"), "psi" + in_brackets("")
    ('psi (prob)', 'psi')
    """
    return f" ({subject})" if subject else ""
