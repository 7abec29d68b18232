"""From a finished audit, and the measures of its period, to part 8 of a transparency report.

What the audit cannot know is left blank with the reason: notices do not pass through Modwatch.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from modwatch.audit.dsa.statement import AutomatedMeans, Missing, Rate, ScopeFigures
from modwatch.audit.dsa.vocabulary import (
    LANGUAGES,
    NAM_TOTAL,
    NAM_TRUSTED_FLAGGER,
    OWN_INITIATIVE,
    TOTAL,
    Provider,
)
from modwatch.audit.intervals import IntervalRule
from modwatch.audit.plan import AuditPlan
from modwatch.audit.results import LEAST_COMMENTS
from modwatch.errors import AuditError

_NO_NOTICES = "notices do not pass through the software that this audit is of"
_INTERVALS = {
    "inversion": "interval by inverting a test that allows for breaches that the score cannot see",
    "korn_graubard": "Korn–Graubard interval",
    "logit": "logit interval",
    "bootstrap": "bootstrap interval",
}
_SIDES = {"both": "", "lower": ", its lower end alone", "upper": ", its upper end alone"}


@dataclass(frozen=True, kw_only=True)
class Measures:
    """What was done about some comments of a period; all numbers of comments."""

    comments: int = 0
    #: Flagged, and no person decided.
    solely: int = 0
    #: A person decided that they break the rules, flagged or not.
    not_solely: int = 0
    #: Decided by a person, whatever the decision.
    reviewed: int = 0

    def __add__(self, other: "Measures") -> "Measures":
        return Measures(
            comments=self.comments + other.comments,
            solely=self.solely + other.solely,
            not_solely=self.not_solely + other.not_solely,
            reviewed=self.reviewed + other.reviewed,
        )


def official_language(tag: str) -> str | None:
    """Return the official language of the EU that a BCP 47 tag names; None for any other.

    >>> official_language("de-AT"), official_language("PT"), official_language("nb")
    ('de', 'pt', None)
    """
    code = tag.partition("-")[0].lower()
    return code if code in LANGUAGES else None


def automated_means(
    plan: AuditPlan, result: Mapping[str, Any], measures: Mapping[str, Measures], *, service: str
) -> AutomatedMeans:
    """Return part 8 for the period of an audit: totals, own initiative, languages.

    `measures` holds those of the period's comments by the language tag that they carry, "" for
    none; all measures are of the service's own initiative.

    Raises:
        AuditError: the result is of another plan.
        DsaReportError: the name of the service is empty, or cannot be written.
    """
    if result["plan"] != plan.digest:
        raise AuditError(f"audit {plan.audit!r}: the result is of another plan")
    method = _method(plan.rule)
    rates = _rates(result["figures"], plan.rule.level, method)
    whole = sum(measures.values(), Measures())
    note = _left_out(measures)
    total = f"{note} Measures that followed a notice or an order are not known and not in it."
    return AutomatedMeans(
        service=service,
        start=plan.first,
        end=plan.last,
        provider=Provider.VLOP,
        audit=plan.audit,
        scopes={
            TOTAL: _scope(whole, rates, total.strip()),
            OWN_INITIATIVE: _scope(whole, rates, note),
            NAM_TOTAL: ScopeFigures.missing(_NO_NOTICES),
            NAM_TRUSTED_FLAGGER: ScopeFigures.missing(_NO_NOTICES),
            **_languages(result["domains"], measures, plan.rule.level, method),
        },
        reviewed_in_rates=True,
    )


def rate_of(figure: Mapping[str, Any], level: float, method: str) -> Rate | Missing:
    """Return a figure of a result as a report states it.

    >>> few = {"status": "insufficient", "reason": "no label of 9 flagged comments", "labels": 0}
    >>> rate_of(few, 0.95, "stratified sample").reason
    'no label of 9 flagged comments'
    """
    if figure["status"] != "ok":
        # How many labels would do, the reason says: of one side, not of all labels.
        return Missing(reason=figure["reason"], labels=figure["labels"])
    low, high = figure["low"], figure["high"]
    return Rate(
        value=min(max(figure["value"], low), high),
        low=low,
        high=high,
        labels=figure["labels"],
        method=method,
        level=level,
    )


def _method(rule: IntervalRule) -> str:
    return (
        "random sample of the period's comments in strata of the score, labelled blind; "
        f"{_INTERVALS[rule.method]}{_SIDES[rule.sides]}"
    )


def _rates(figures: Any, level: float, method: str) -> dict[str, Rate | Missing]:
    """Return accuracy, precision and recall, as far as there are figures of them."""
    found = {figure["metric"]: figure for figure in figures}
    return {
        name: rate_of(found[name], level, method)
        if name in found
        else Missing(reason=f"the audit does not estimate the {name} of one language")
        for name in ("accuracy", "precision", "recall")
    }


def _no_rates(reason: str) -> dict[str, Rate | Missing]:
    return dict.fromkeys(("accuracy", "precision", "recall"), Missing(reason=reason))


def _scope(measures: Measures, rates: dict[str, Rate | Missing], note: str) -> ScopeFigures:
    return ScopeFigures(solely=measures.solely, not_solely=measures.not_solely, note=note, **rates)


def _languages(
    domains: Any, measures: Mapping[str, Measures], level: float, method: str
) -> dict[str, ScopeFigures]:
    """Return the figures of each official language."""
    if not any(measures.keys()):
        none = ScopeFigures.missing("no comment of the period tells its language")
        return dict.fromkeys(LANGUAGES, none)
    tags: dict[str, list[str]] = defaultdict(list)
    for tag in measures:
        language = official_language(tag)
        if language is not None:
            tags[language].append(tag)
    told = {each["value"]: each["figures"] for each in domains if each["column"] == "language"}
    note = ""
    if "" in measures:
        note = f"Comments of the period that tell no language: {measures[''].comments}."
        note += " None of them is counted here."
    scopes = {}
    for language in LANGUAGES:
        mine = sum((measures[tag] for tag in tags[language]), Measures())
        reason = _no_figures(mine.comments, tags[language], told)
        rates = _no_rates(reason) if reason else _rates(told[tags[language][0]], level, method)
        scopes[language] = _scope(mine, rates, note)
    return scopes


def _no_figures(comments: int, tags: list[str], told: Mapping[str, Any]) -> str:
    """Return why the audit tells no rate of a language; empty when it tells some."""
    if not comments:
        return "no comment of the period is known to be in this language"
    if len(tags) > 1:
        return (
            f"comments in this language carry {len(tags)} different tags, and the audit has "
            "estimated each by itself"
        )
    if tags[0] in told:
        return ""
    if comments < LEAST_COMMENTS:
        return f"fewer than {LEAST_COMMENTS} comments of the period are in this language"
    return "the audit has no figures of this language"


def _left_out(measures: Mapping[str, Measures]) -> str:
    """Return what the rows of languages lack to the total; empty when there are no such rows."""
    others = [each for tag, each in measures.items() if official_language(tag) is None]
    left = sum(others, Measures())
    if not left.comments or not any(measures.keys()):
        return ""
    return (
        f"In no row of a language: {left.solely} by automated means alone and {left.not_solely} "
        "others, of comments in a language that is no official one of the EU, or that is not known."
    )
