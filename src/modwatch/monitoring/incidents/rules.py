"""Alert rules: data in TOML files, validated when they are loaded."""

import re
import tomllib
from collections.abc import Iterable, Mapping
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from modwatch.common.errors import SettingsError
from modwatch.settings.file import read_toml, validated
from modwatch.statistics.live.figures import keys

Severity = Literal["info", "warning", "critical"]

#: In ascending order.
SEVERITIES: tuple[Severity, ...] = ("info", "warning", "critical")

#: What is compared: the value, an end of its 95 % interval, or whether the value is missing.
Compared = Literal["value", "low", "high", "insufficient"]

#: The metrics that are the size of a change of level, by the metric whose level it is.
LEVEL_CHANGES = {key: f"{key}_change" for key in keys(alert=True)}

#: How the names of metrics begin that are no estimates: labels and repairs end what they show.
_STATES = ("completion", "queue_", "checks_", "log_", "clock_", "rows_")

#: What a title may name; the remark is that of a row of `drift`.
_TITLE = re.compile(r"(?:[^{}]|\{(?:feature|value|before|after|remark)\})*")

_DIRECTIONS = {"above": 1.0, "below": -1.0}

# From the comparison that opens the fewest incidents to the one that opens the most.
_STRICTNESS = {"above": ("low", "value", "high"), "below": ("high", "value", "low")}


def in_words(rule: str) -> str:
    """Return the name of an alert rule as people read it.

    >>> in_words("volume_low")
    'volume low'
    """
    return rule.replace("_", " ")


def most_severe(severities: Iterable[Severity]) -> Severity:
    """Return the highest severity.

    >>> most_severe(["warning", "critical", "info"])
    'critical'
    """
    return max(severities, key=SEVERITIES.index)


class Condition(BaseModel):
    """A condition that opens or closes an incident."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    bound: float
    #: What is compared with the bound.
    compare: Compared = "value"
    #: Consecutive evaluated days on which the condition must be met.
    days: int = Field(1, ge=1, le=90)


class AlertRule(BaseModel):
    """Which metric is watched, and what opens and closes an incident.

    With `direction` above, an incident opens over `open.bound` and closes at or under
    `close.bound`, which is no larger; with below, the other way round. Between the bounds nothing
    changes (hysteresis).

    >>> rule = AlertRule(
    ...     name="accuracy_low", severity="critical", metric="accuracy", direction="below",
    ...     open={"bound": 0.8, "compare": "high"}, close={"bound": 0.85},
    ...     look_at="What changed since?",
    ... )
    >>> rule.open.days, rule.minimum_n
    (1, 0)
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,59}$")]
    severity: Severity
    #: A metric that `metrics.metric_values` or `annotator_values` returns.
    metric: str = Field(min_length=1)
    #: None watches every feature (or reference) of the metric separately.
    feature: str | None = None
    reference: Literal["fixed", "trailing"] | None = None
    direction: Literal["above", "below"]
    open: Condition
    close: Condition
    #: Values computed from fewer comments, labels or items than this are skipped.
    minimum_n: int = Field(0, ge=0)
    #: Days since a day's comments were routed, 1 from 12 hours on, before its values are
    #: watched, because its labels are still coming in.
    settle_days: int = Field(0, ge=0, le=30)
    #: What to investigate; may contain {feature}, and {day}, on which it began.
    look_at: str = Field(min_length=1, max_length=500)
    #: What happened, in words; may contain {feature}, {value}, {before}, {after} and {remark}.
    title: str = Field("", max_length=120)
    #: Rules with the same cause open one incident together; alone without one.
    cause: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,59}$")] | None = None
    #: Rules whose incidents explain this one's values: while one is active, and until the trailing
    #: window has no day of it, values are skipped.
    unless: tuple[str, ...] = ()

    @property
    def watches_changes(self) -> bool:
        """Whether the metric is the size of a change of level."""
        return self.metric in LEVEL_CHANGES.values()

    @property
    def watches_state(self) -> bool:
        """Whether the metric is a state that ends when people have done what is to do.

        Missing labels, a queue, a rejected day: values that are good now were bad before, whereas
        those of an estimate were wrong.
        """
        return self.metric.startswith(_STATES) or self.open.compare == "insufficient"

    @field_validator("title")
    @classmethod
    def _names_what_is_known(cls, title: str) -> str:
        if not _TITLE.fullmatch(title) or not title.isprintable():
            raise ValueError(
                "may contain {feature}, {value}, {before}, {after}, {remark} in braces, on one line"
            )
        return title

    @model_validator(mode="after")
    def _cannot_open_and_close_at_once(self) -> "AlertRule":
        sign = _DIRECTIONS[self.direction]
        if sign * self.close.bound > sign * self.open.bound:
            side = "above" if sign > 0 else "below"
            raise ValueError(f"close.bound must not be {side} open.bound")
        ends = ("insufficient" in (self.open.compare, self.close.compare), self.open.compare)
        if ends[0] and self.open.compare != self.close.compare:
            raise ValueError("open.compare and close.compare must both be insufficient, or neither")
        order = _STRICTNESS[self.direction].index
        if not ends[0] and order(self.close.compare) < order(self.open.compare):
            raise ValueError(
                f"close.compare {self.close.compare} cannot be combined with open.compare "
                f"{self.open.compare}: one value could open and close an incident"
            )
        return self

    def exceeds(self, value: float, condition: Condition) -> bool:
        """Return whether `value` lies beyond the condition's bound, in the rule's direction.

        >>> low = AlertRule(name="r", severity="info", metric="m", direction="below", look_at="it",
        ...            open={"bound": 1}, close={"bound": 2})
        >>> low.exceeds(0.5, low.open), low.exceeds(1, low.open), low.exceeds(1.5, low.close)
        (True, False, True)
        """
        sign = _DIRECTIONS[self.direction]
        return sign * value > sign * condition.bound


#: Causes of alerts of no rule, which are the topics of their messages, with their severity.
OTHER_CAUSES: dict[str, Severity] = {
    **dict.fromkeys(("failure", "heartbeat", "escalation"), "critical"),
    **dict.fromkeys(("model", "audit"), "info"),
}


class Route(BaseModel):
    """What a channel receives.

    >>> Route(name="mail", severity="critical").takes("volume", "warning")
    False
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    #: `webhook`, `mail`, the scheme of a URL, or the whole name of its channel.
    name: str = Field(min_length=1)
    #: None: all.
    causes: tuple[str, ...] | None = None
    #: The lowest severity.
    severity: Severity = "info"
    #: Whether what needs no action comes as one message a day.
    digest: bool = False

    def takes(self, cause: str, severity: Severity) -> bool:
        """Return whether the channel receives alerts of a cause."""
        known = self.causes is None or cause in self.causes
        return known and most_severe([self.severity, severity]) == severity


#: Of a channel that receives everything at once.
EVERYTHING = Route(name="*")


class _RuleFile(BaseModel):
    """A file with custom rules."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    #: Whether to keep the default rules; a rule with the name of a default replaces it.
    keep_defaults: bool = True
    #: Names of default rules to disable.
    disabled: tuple[str, ...] = ()
    rules: tuple[AlertRule, ...] = ()
    channels: tuple[Route, ...] = ()


def load_rules(path: Path | None = None) -> tuple[AlertRule, ...]:
    """Return the default rules, extended or changed by the file `path`.

    In the file, each `[[rules]]` is an `AlertRule`. A rule with the name of a default replaces it;
    `disabled = ["name"]` disables defaults, `keep_defaults = false` disables all of them.

    Raises:
        SettingsError: the file cannot be read, or a rule is invalid; the message names the rule and
            the field.

    >>> len({rule.name for rule in load_rules()}) == len(load_rules()) > 10
    True
    """
    shipped = resources.files("modwatch.monitoring.incidents") / "rules.toml"
    content = tomllib.loads(shipped.read_text("utf-8"))
    defaults = {rule.name: rule for rule in _parsed(content, "Modwatch").rules}
    if path is None:
        return tuple(defaults.values())
    own = _parsed(read_toml(path), str(path))
    if unknown := set(own.disabled) - set(defaults):
        raise SettingsError(
            f"alert rules of {path}: disabled: unknown default rule {sorted(unknown)[0]!r}; "
            f"the default rules are {', '.join(defaults)}"
        )
    kept = {name: rule for name, rule in defaults.items() if name not in own.disabled}
    return tuple(((kept if own.keep_defaults else {}) | {r.name: r for r in own.rules}).values())


def load_routes(path: Path | None = None) -> tuple[Route, ...]:
    """Return `[[channels]]` of the file that `load_rules` reads; raises SettingsError as it does.

    >>> load_routes()
    ()
    """
    return _parsed(read_toml(path), str(path)).channels if path else ()


def _parsed(plain: Mapping[str, Any], origin: str) -> _RuleFile:
    rules = validated(_RuleFile, plain, f"alert rules of {origin}")
    names = [rule.name for rule in rules.rules]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise SettingsError(f"alert rules of {origin}: rule {twice!r}: name: used more than once")
    return rules
