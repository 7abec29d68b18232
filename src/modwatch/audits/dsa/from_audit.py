"""Part 8 of a transparency report, from a finished audit and the measures of its period.

Accuracy, precision and recall refer to all decisions by automated means, also where a person
reviewed them afterwards. Decisions by people are counted separately. Values that the audit does not
provide are left blank with the reason, such as counts of notices, which Modwatch does not process.

Files are RFC 4180 in UTF-8 without byte order mark, CR LF, minimal quoting. No mark, as in the
Commission's own files: some readers take it for part of the first column's name. Rates have four
decimals, rounded half to even; intervals are rounded outwards, which does not lower their coverage.
Counts are digits.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from functools import partial
from typing import Any

from modwatch.audits.descriptions import bound_text
from modwatch.audits.dsa.cells import refuse_unusable
from modwatch.audits.dsa.vocabulary import (
    APPLICABILITY,
    COLUMNS,
    LANGUAGES,
    NAM_TOTAL,
    NAM_TRUSTED_FLAGGER,
    OWN_INITIATIVE,
    RATES,
    REQUIRED_OF,
    SECTION,
    TOTAL,
    Indicator,
    counts_of,
    indicators_of,
)
from modwatch.audits.files import written
from modwatch.statistics.audit.plan import AuditPlan
from modwatch.statistics.audit.results import LEAST_COMMENTS
from modwatch.statistics.audit.share_interval import IntervalOptions

#: Why there are no measures where the source of the comments brings no decisions.
NO_DECISIONS = (
    "the measures are unknown: the source of the comments brings no decisions of the service, and "
    "a flag of a model is no measure"
)
_NO_NOTICES = "the audited software does not process notices"
_INTERVAL = (
    "confidence interval by test inversion, allowing for violations that the score does not detect"
)
_PLACES = Decimal("0.0001")
_SOLELY = "Measures that no person took, confirmed or changed."
_NOT_SOLELY = (
    "Measures that a person took, confirmed or changed, with or without automated means; accuracy, "
    "precision and recall include the preceding automated decisions."
)
_RATES_OF = "Of all decisions by automated means, including those reviewed by a person afterwards."
_METRICS = dict(zip(RATES, ("accuracy", "precision", "recall"), strict=True))
_SIDES = {"both": "", "lower": ", lower bound only", "upper": ", upper bound only"}

#: The estimate of a metric in a result, or the reason why there is none.
_Estimate = Mapping[str, Any] | str

#: Value and context by indicator, of one scope.
_Cells = dict[Indicator, tuple[str, str]]


@dataclass(frozen=True, kw_only=True)
class Measures:
    """How comments of a period were moderated; all fields are numbers of comments."""

    comments: int = 0
    #: With a decision of the platform that is known, if only that it did nothing.
    decided: int = 0
    #: Removed or limited by a model or rule.
    solely: int = 0
    #: Removed or limited by a person, or decided in review to violate the rules.
    not_solely: int = 0
    #: Removed or limited by nobody knows whom.
    by_unknown: int = 0
    #: Decided by a person in review, whose decision stands in place of an earlier one.
    reviewed: int = 0

    @property
    def are_unknown(self) -> bool:
        """Whether there are comments, and no decision of the platform on any."""
        return bool(self.comments) and not self.decided

    def __add__(self, other: "Measures") -> "Measures":
        return Measures(**{name: n + getattr(other, name) for name, n in vars(self).items()})


def official_language(tag: str) -> str | None:
    """Return the official language of the EU of a BCP 47 tag; None for any other.

    >>> official_language("de-AT"), official_language("PT"), official_language("nb")
    ('de', 'pt', None)
    """
    code = tag.partition("-")[0].lower()
    return code if code in LANGUAGES else None


def automated_means(
    plan: AuditPlan,
    result: Mapping[str, Any],
    measures: Mapping[str, Measures],
    *,
    service: str,
    others: Sequence[str] = (),
) -> bytes:
    """Return part 8 for the period of an audit: totals, own initiative, languages, as CSV.

    A header, and a row per scope and indicator. Missing values are blank, with the reason in the
    context. `measures` are those of the period by the language tag of the comments, "" for none;
    all are own-initiative measures. `others` are sentences about other audits of the same days.

    Raises DsaReportError if the name of the service is empty or has control characters.
    """
    refuse_unusable("service", service)
    total = sum(measures.values(), Measures())
    undecided = total.comments - total.decided
    unknown = f"The decisions on {undecided} comments are unknown." if undecided else ""
    note = " ".join(filter(None, [_left_out(measures), unknown, *others]))
    remark = f"{note} Measures after notices or orders are unknown and not included.".strip()
    method = _method(plan.rule, corrected="label_errors" in result)
    counted, rates = partial(_counted, plan, method), _rates(result["figures"])
    scopes = {
        TOTAL: counted(total, rates, remark),
        OWN_INITIATIVE: counted(total, rates, note),
        NAM_TOTAL: _blanks(plan, NAM_TOTAL, _NO_NOTICES),
        NAM_TRUSTED_FLAGGER: _blanks(plan, NAM_TRUSTED_FLAGGER, _NO_NOTICES),
        **_languages(plan, result["domains"], measures, counted),
    }
    rows = [
        (
            *(APPLICABILITY[REQUIRED_OF[scope]], service, period_text(plan), SECTION),
            *(indicator.value, scope, *scopes[scope][indicator]),
        )
        for scope, indicator in _order()
    ]
    return file_of(COLUMNS, rows)


def _order() -> Iterator[tuple[str, Indicator]]:
    """Yield the rows in the order of the template: by origin, then by indicator and language."""
    for scope in REQUIRED_OF:
        if scope not in LANGUAGES:
            yield from ((scope, indicator) for indicator in indicators_of(scope))
    for indicator in indicators_of(TOTAL):
        yield from ((language, indicator) for language in LANGUAGES)


def _counted(
    plan: AuditPlan,
    method: str,
    measures: Measures,
    rates: Mapping[Indicator, _Estimate],
    note: str,
) -> _Cells:
    """Return a scope; without values where it is not known what is a measure, or whose it is."""
    if measures.are_unknown:
        return _blanks(plan, TOTAL, NO_DECISIONS)
    if unknown := measures.by_unknown:
        reason = f"the source of the comments does not say who took {unknown} measures"
        return _blanks(plan, TOTAL, reason)
    solely, not_solely = counts_of(TOTAL)
    remark = f" {_sentence(note)}" if note else ""
    return {
        solely: (str(measures.solely), f"{_SOLELY}{remark}"),
        not_solely: (str(measures.not_solely), f"{_NOT_SOLELY}{remark}"),
        **{indicator: _rate(plan, method, estimate) for indicator, estimate in rates.items()},
    }


def _rate(plan: AuditPlan, method: str, estimate: _Estimate) -> tuple[str, str]:
    """Return value and context of a rate."""
    audit, level = f"Audit: {_sentence(plan.audit)}", plan.rule.level
    if isinstance(estimate, str):
        return "", f"Left blank: {_sentence(estimate)} {audit}"
    if estimate["status"] != "ok":
        reason = _sentence(reason_of(estimate, level))
        return "", f"Left blank: {reason} Labels: {estimate['labels']}. {audit}"
    context = f"{_RATES_OF} {interval_text(estimate, level)} Method: {_sentence(method)} {audit}"
    return value_text(estimate), context


def _blanks(plan: AuditPlan, scope: str, reason: str) -> _Cells:
    """Return a scope without values, for one reason."""
    return {indicator: _rate(plan, "", reason) for indicator in indicators_of(scope)}


def reason_of(estimate: Mapping[str, Any], level: float) -> str:
    """Return why a rate has no value, with its bound.

    >>> reason_of({"reason": "3 labels", "bound": "lower", "low": 0.42137}, 0.95)
    '3 labels. The rate is at least 0.4213 (95 % confidence bound)'
    """
    reason, bound = estimate["reason"], bound_text(estimate)
    if not bound:
        return str(reason)
    return f"{reason}. The rate is {bound} ({100 * level:g} % confidence bound)"


def value_text(estimate: Mapping[str, Any]) -> str:
    """Return a rate with four decimals, rounded half to even.

    >>> value_text({"value": 0.9, "low": 0.85, "high": 0.94})
    '0.9000'
    """
    value = min(max(estimate["value"], estimate["low"]), estimate["high"])
    return _rounded(value, ROUND_HALF_EVEN)


def interval_text(estimate: Mapping[str, Any], level: float) -> str:
    """Return the interval of a rate, rounded outwards, and its number of labels.

    >>> interval_text({"low": 0.85, "high": 0.94, "labels": 300}, 0.95)
    '95 % confidence interval: 0.8500 to 0.9400. Labels: 300.'
    """
    labels = f"Labels: {estimate['labels']}."
    if estimate.get("all_labelled") and estimate["low"] == estimate["high"]:
        return (
            "All comments were labelled, so there is no sampling error; errors of the people who "
            f"labelled them are not included. {labels}"
        )
    percent = format((Decimal(repr(level)) * 100).normalize(), "f")
    low, high = _rounded(estimate["low"], ROUND_FLOOR), _rounded(estimate["high"], ROUND_CEILING)
    return f"{percent} % confidence interval: {low} to {high}. {labels}"


def _rounded(share: float, rounding: str) -> str:
    # From the shortest decimal form: 0.96, not the 0.95999… of the float.
    return str(Decimal(repr(float(share))).quantize(_PLACES, rounding=rounding))


def _sentence(text: str) -> str:
    text = text.strip()
    return text if text.endswith((".", "!", "?")) else f"{text}."


def period_text(plan: AuditPlan) -> str:
    """Return the period of an audit as the templates have it."""
    return f"{plan.first}/{plan.last}"


def file_of(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> bytes:
    """Return a file; DsaReportError for a cell with control characters."""
    for row in rows:
        for column, cell in zip(columns, row, strict=True):
            if cell:
                refuse_unusable(column.lower(), cell)
    return written(columns, rows)


def _method(rule: IntervalOptions, *, corrected: bool) -> str:
    errors = (
        "; estimate and interval allow for errors of the people who labelled, by blind second "
        "labels of a planned part of the sample"
    )
    return (
        "stratified random sample of the comments of the period, labelled blind; "
        f"{_INTERVAL}{_SIDES[rule.sides]}{errors if corrected else ''}"
    )


def _rates(figures: Iterable[Mapping[str, Any]]) -> dict[Indicator, _Estimate]:
    """Return accuracy, precision and recall."""
    estimates = {estimate["metric"]: estimate for estimate in figures}
    return {indicator: estimates[name] for indicator, name in _METRICS.items()}


def _languages(
    plan: AuditPlan,
    domains: Iterable[Mapping[str, Any]],
    measures: Mapping[str, Measures],
    counted: Callable[[Measures, Mapping[Indicator, _Estimate], str], _Cells],
) -> dict[str, _Cells]:
    """Return each official language."""
    total = sum(measures.values(), Measures())
    if total.are_unknown or not any(measures):
        reason = "the language of the comments is unknown"
        none = _blanks(plan, TOTAL, NO_DECISIONS if total.are_unknown else reason)
        return dict.fromkeys(LANGUAGES, none)
    tags: dict[str, list[str]] = defaultdict(list)
    for tag in measures:
        language = official_language(tag)
        if language is not None:
            tags[language].append(tag)
    by_tag = {
        domain["value"]: domain["figures"] for domain in domains if domain["column"] == "language"
    }
    note = ""
    if "" in measures:
        note = f"Comments of unknown language in the period: {measures[''].comments}, not included."
    scopes = {}
    for language in LANGUAGES:
        mine = sum((measures[tag] for tag in tags[language]), Measures())
        reason = _no_rates_reason(mine.comments, tags[language], by_tag)
        rates = dict.fromkeys(RATES, reason) if reason else _rates(by_tag[tags[language][0]])
        scopes[language] = counted(mine, rates, note)
    return scopes


def _no_rates_reason(comments: int, tags: list[str], by_tag: Mapping[str, Any]) -> str:
    """Return why there are no rates of a language; empty when there are."""
    if not comments:
        return "no comments of the period are known to be in this language"
    if len(tags) > 1:
        return (
            f"comments in this language have {len(tags)} different tags, which the audit estimated "
            "separately"
        )
    if tags[0] in by_tag:
        return ""
    if comments < LEAST_COMMENTS:
        return f"fewer than {LEAST_COMMENTS} comments of the period are in this language"
    return "the audit has no estimates for this language"


def _left_out(measures: Mapping[str, Measures]) -> str:
    """Return the measures that no language includes; empty without languages."""
    others = [counted for tag, counted in measures.items() if official_language(tag) is None]
    left = sum(others, Measures())
    if not left.comments or not any(measures.keys()):
        return ""
    return (
        "Not included under any language, because the language is unknown or not an official "
        f"language of the EU: {left.solely} solely by automated means and {left.not_solely} others."
    )
