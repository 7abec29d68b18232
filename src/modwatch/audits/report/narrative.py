"""The sentences of the report: who signed, answers, cost, and limits."""

from collections.abc import Sequence
from math import ceil

from modwatch.audits.descriptions import describe_missing_days, repeated
from modwatch.audits.evidence import Event
from modwatch.audits.report import formatting
from modwatch.audits.report.metrics import Result, of_metric
from modwatch.statistics.audit.plan import AuditPlan
from modwatch.statistics.audit.results import LEAST_COMMENTS
from modwatch.statistics.label_truth import RATE_BOUNDS

_COMPLETE = "all were labelled: no sampling error; errors of the annotators are not included"

_QUESTIONS = {
    "recall": ("Of 100 comments that should have been flagged,", "were flagged"),
    "precision": ("Of 100 comments that were flagged,", "should have been flagged"),
}


def signed(chain: Sequence[Event]) -> str:
    """Return in a sentence who signed an audit, and when."""
    event = next(event for event in chain if event.action == "signed_off")
    return f"Signed off by {formatting.name(event.actor)} on {formatting.at(event.at)}."


def answers(plan: AuditPlan, result: Result) -> list[str]:
    """Return the answers, recall first, one sentence each."""
    sentences = [_answer(plan, result, metric) for metric in _QUESTIONS]
    missed = of_metric(result["figures"], "prevalence_unflagged")
    unflagged = result["comments"] - result["flagged"]
    if formatting.is_exact(missed):
        positives = round(missed["value"] * unflagged)
        sentences.append(
            f"Of the {unflagged:,} comments that were not flagged, {positives:,} should have been "
            f"flagged ({_COMPLETE})."
        )
    elif missed.get("bound"):
        sentences.append(
            f"Of the {unflagged:,} comments that were not flagged, at most "
            f"{ceil(missed['high'] * unflagged):,} should have been flagged "
            f"({formatting.bound_level(plan.rule)})."
        )
    elif missed["value"] is not None:
        low, value, high = (
            formatting.rough(missed[end] * unflagged) for end in ("low", "value", "high")
        )
        span = {"lower": f"at least {low}", "upper": f"at most {high}"}.get(
            plan.rule.sides, f"{low} to {high}"
        )
        sentences.append(
            f"Of the {unflagged:,} comments that were not flagged, about {value} should have been "
            f"flagged ({formatting.level(plan.rule)}: {span})."
        )
    return [
        *sentences,
        *describe_missing_days(plan),
        *_of_errors(result),
        *_without_label(plan, result),
    ]


def _of_errors(result: Result) -> list[str]:
    """Return how many labels were confirmed and overturned, and the estimated error rates."""
    errors = result.get("label_errors")
    if errors is None:
        return []
    text = (
        f"Of the first labels, {errors['confirmed']:,} were confirmed by a second person, blind, "
        f"and {errors['overturned']:,} of these overturned: most people contradicted them."
    )
    if not errors["enough"]:
        text += (
            f" That is too few to tell how often the annotators err: the intervals allow for "
            f"false-positive rates of up to {formatting.rate(RATE_BOUNDS[0])} and false-negative "
            f"rates of up to {formatting.rate(RATE_BOUNDS[1])}, and are wide."
        )
        return [text]
    return [
        f"{text} The estimates and their intervals allow for errors of the annotators, of which a "
        f"second person repeats {repeated(errors)}: see Labels and annotators."
    ]


def _without_label(plan: AuditPlan, result: Result) -> list[str]:
    """Return how many drawn comments have no final label, and what they do to recall."""
    missing = result["drawn"] - result["labelled"]
    if not missing:
        return []
    sentence = (
        f"{formatting.noun(missing, 'drawn comment')} of {result['drawn']:,} "
        f"{'has' if missing == 1 else 'have'} no final label"
    )
    why = {
        "disputed": "disputed by two people, without a third (both labels count)",
        "passed_over": "passed over or escalated",
        "not_reached": "not reached before the end, in the random order of the draw",
    }
    parts = [f"{result['missing'][name]:,} {text}" for name, text in why.items()
             if result["missing"][name]]  # fmt: skip
    sentence += f": {', '.join(parts)}."
    unknown = result["missing"]["passed_over"]
    if unknown:
        sentence += (
            f" The intervals allow for both outcomes of the {unknown:,} that were passed over, "
            "because these may be the difficult ones."
        )
        recall = of_metric(result["figures"], "recall")
        if recall.get("low_if_random") is not None:
            sentence += (
                " Were they like the others, the interval of recall would be "
                f"{formatting.if_random(recall, plan.rule)}."
            )
    return [sentence]


def _answer(plan: AuditPlan, result: Result, metric: str) -> str:
    estimate = of_metric(result["figures"], metric)
    question, verb = _QUESTIONS[metric]
    if estimate["value"] is None:
        why = f"{metric.capitalize()} could not be estimated: {formatting.lacking(estimate)}."
        bound = formatting.bound_of(estimate).removesuffix("\u00a0%")
        if not bound:
            return why
        return f"{question} {bound} {verb} ({formatting.bound_level(plan.rule)}). {why}"
    if formatting.is_exact(estimate):
        return f"{question} {formatting.hundredths(estimate['value'], 1)} {verb} ({_COMPLETE})."
    value = formatting.hundredths(estimate["value"], 0)
    about = value if value[0].isalpha() else f"about {value}"
    span = formatting.ends(estimate["low"], estimate["high"], 0, plan.rule.sides, "")
    return f"{question} {about} {verb} ({formatting.level(plan.rule)}: {span})."


def cost(result: Result) -> str:
    """Return the labels that a random sample needs for the same standard error."""
    needed = result["random_labels"]
    # Of sampling alone, where the estimate allows for errors of the annotators.
    missed = of_metric(result["figures"], "prevalence_unflagged")
    source = " from sampling" if "label_errors" in result else ""
    if needed is None or not missed["labels"]:
        return (
            "The labels that a random sample needs could not be computed: there is no estimate of "
            "the share of positives among unflagged comments, or of its standard error."
        )
    return (
        f"The standard error{source} of the share of positives among unflagged comments is "
        f"{100 * result['sampling_error']:.2g} percentage points. A random sample needs "
        f"{needed:,} labels of unflagged comments for the same standard error. This audit used "
        f"{missed['labels']:,}, {_compared(needed / missed['labels'])}."
    )


def _compared(times: float) -> str:
    """Return how the labels compare with those of a random sample, which are `times` as many."""
    ratio = max(times, 1 / times)
    number = formatting.rough(ratio) if ratio >= 10 else f"{ratio:.2g}"
    return f"{number} times fewer" if times >= 1 else f"{number} times as many"


def limits(plan: AuditPlan, result: Result, chain: Sequence[Event]) -> list[str]:
    """Return the assumptions and limits of the estimates, one paragraph each."""
    return [
        _of_interval(plan),
        *_of_coverage(plan, result),
        *_of_labels(result, chain),
        *_of_stages(plan, chain),
        f"Values with fewer than {LEAST_COMMENTS:,} comments are not reported, because they could "
        "describe single people. With many values, some intervals miss the true value by chance: "
        "about one in 20 at the 95\u00a0% confidence level.",
        "The estimates apply to this period, model and threshold only. Other periods, models or "
        "thresholds need another audit.",
        "The files alone show that nothing was changed and that the result follows from the "
        "labels. Whether the sample is the one that the plan draws can only be verified with the "
        "scores of the whole period.",
    ]


def _of_interval(plan: AuditPlan) -> str:
    return (
        f"The interval assumes that at most {formatting.rate(plan.rule.hidden_share)} of all "
        "comments that should have been flagged are hidden, that is, have scores like those of "
        "harmless comments. If more are, recall may be below the interval."
    )


def _of_coverage(plan: AuditPlan, result: Result) -> list[str]:
    level = f"{100 * plan.rule.level:g}"
    side = (
        ""
        if plan.rule.sides == "both"
        else " It is one-sided: only the given bound is an estimate."
    )
    return [
        f"A {level}\u00a0% confidence interval is constructed to cover the true value in at least "
        f"about {level} of 100 such audits.{side}",
        *_of_annotators(result),
        "Where there are too few positives for an estimate, there is a bound: the true value is "
        f"beyond it in at most {100 - 100 * plan.rule.level:g} of 100 audits. Bound or interval, "
        "whichever an audit reports, covers the true value as often as its level says.",
    ]


def _of_annotators(result: Result) -> list[str]:
    """Return whether intervals allow for errors of the annotators, and for which."""
    if "label_errors" not in result:
        return [
            "The interval covers sampling error only. It does not cover errors of the annotators, "
            "whose labels are judgements; see the table on annotator errors. Where every comment "
            "is labelled, no sampling error is left, and the figure is as good as the labels are."
        ]
    return [
        "The interval covers the error of sampling and errors of the annotators. Errors that all "
        "annotators make on the same comment, as where a guideline is unclear, show in no "
        "disagreement; the plan states that of the errors of one person a second repeats "
        f"{repeated(result['label_errors'])}. The interval holds from none to as many. If more "
        "are shared, it does not.",
        "Labels that contradict the decision weigh most, and the plan had them confirmed first; "
        "which others were confirmed was decided by the random number of each comment. Where every "
        "comment is labelled, the interval is that of the annotators' errors alone.",
    ]


def _of_labels(result: Result, chain: Sequence[Event]) -> list[str]:
    limits_ = []
    missing = result["drawn"] - result["labelled"]
    if missing:
        limits_.append(
            "Comments that were passed over or escalated and have no label may be the difficult "
            "ones: each end of an interval assumes the label that moves it outwards. "
            "Comments that the labelling did not reach are a random part of the sample, because "
            "the order of the draw is random, and only widen the intervals."
        )
    notes = [event.note for event in chain if event.action == "labelled" and event.note]
    limits_ += [f"Note on the labelling: “{formatting.name(note)}”." for note in notes]
    return limits_


def _of_stages(plan: AuditPlan, chain: Sequence[Event]) -> list[str]:
    if not plan.second_stage_labels:
        return []
    drawn = sum(event.action == "drawn" for event in chain)
    text = (
        f"The audit is adaptive: the {plan.second_stage_labels:,} labels of the second stage were "
        "allocated to ranges of scores by the labels of the first. The first stage has a weight of "
        f"{formatting.rate(plan.first_stage_share)}, fixed before the draw."
    )
    return [text if drawn > 1 else f"{text} The second stage was not drawn."]
