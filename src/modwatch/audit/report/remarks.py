"""What the report says in sentences: the answer, what it cost, and what limits it."""

from collections.abc import Sequence

from modwatch.audit.evidence import Event
from modwatch.audit.plan import AuditPlan
from modwatch.audit.report import words
from modwatch.audit.report.figures import Result, of_metric
from modwatch.audit.results import LEAST_COMMENTS

_QUESTIONS = {
    "recall": ("Of 100 comments that should have been flagged,", "were"),
    "precision": ("Of 100 comments that were flagged,", "should have been"),
}


def status(chain: Sequence[Event]) -> tuple[str, str]:
    """Return the state of an audit, `draft`, `signed` or `cancelled`, and a sentence on it.

    >>> status([])
    ('draft', 'Draft: nobody has signed it off.')
    """
    last = {event.action: event for event in chain}
    if "cancelled" in last:
        event = last["cancelled"]
        return "cancelled", f"Cancelled by {words.name(event.actor)} at {words.at(event.at)}."
    if "signed_off" not in last:
        return "draft", "Draft: nobody has signed it off."
    event = last["signed_off"]
    sentence = f"Signed off by {words.name(event.actor)} at {words.at(event.at)}."
    if "published" in last:
        sentence += f" Published at {words.at(last['published'].at)}."
    return "signed", sentence


def answers(plan: AuditPlan, result: Result) -> list[str]:
    """Return what was asked, recall first, a sentence each."""
    sentences = [_answer(plan, result, metric) for metric in _QUESTIONS]
    missed = of_metric(result["figures"], "prevalence_unflagged")
    unflagged = result["comments"] - result["flagged"]
    if missed["value"] is not None:
        low, value, high = (
            words.rough(missed[end] * unflagged) for end in ("low", "value", "high")
        )
        span = {"lower": f"at least {low}", "upper": f"at most {high}"}.get(
            plan.rule.sides, f"{low} to {high}"
        )
        sentences.append(
            f"Of the {unflagged:,} comments that were not flagged, about {value} should have been "
            f"({words.level(plan.rule)} {span})."
        )
    return sentences


def _answer(plan: AuditPlan, result: Result, metric: str) -> str:
    figure = of_metric(result["figures"], metric)
    if figure["value"] is None:
        return f"{metric.capitalize()} cannot be told: {words.lacking(figure)}."
    question, verb = _QUESTIONS[metric]
    value = words.hundredths(figure["value"], 0)
    about = value if value[0].isalpha() else f"about {value}"
    span = words.ends(figure["low"], figure["high"], 0, plan.rule.sides, "")
    return f"{question} {about} {verb} ({words.level(plan.rule)} {span})."


def cost(result: Result) -> str:
    """Return what a random sample would have needed for the same standard error."""
    needed = result["random_labels"]
    missed = of_metric(result["figures"], "prevalence_unflagged")
    if needed is None or not missed["labels"]:
        return (
            "What a random sample would have needed cannot be told: the share of positives among "
            "the unflagged comments, or its standard error, is not known."
        )
    return (
        f"The standard error of the share of positives among the unflagged comments is "
        f"{100 * missed['error']:.2g} percentage points. A random sample needs {needed:,} labels "
        f"of such comments for the same; this audit took {missed['labels']:,}, "
        f"{_compared(needed / missed['labels'])}."
    )


def _compared(times: float) -> str:
    """Return how the labels compare with those of a random sample, which are `times` as many."""
    ratio = max(times, 1 / times)
    number = words.rough(ratio) if ratio >= 10 else f"{ratio:.2g}"
    return f"{number} times fewer" if times >= 1 else f"{number} times as many"


def limits(plan: AuditPlan, result: Result, chain: Sequence[Event]) -> list[str]:
    """Return what the figures suppose and do not tell, a paragraph each."""
    return [
        _of_interval(plan),
        *_of_errors(plan),
        *_of_labels(result, chain),
        *_of_stages(plan, chain),
        f"Figures of values with fewer than {LEAST_COMMENTS:,} comments are left out: figures on "
        "few comments are on single people. With many values, some intervals miss by chance: of "
        "20 at 95\u00a0%, one is to be expected.",
        "The figures are of this period, this model and this threshold. Other days, another "
        "model or another threshold need another audit.",
        "Files alone show that nothing was changed and that the result follows from the labels. "
        "That no other comment should have been drawn only a new draw shows, and it needs the "
        "scores of the whole period.",
    ]


def _of_interval(plan: AuditPlan) -> str:
    rule = plan.rule
    if rule.method != "inversion":
        return (
            "The interval takes what the labels of a range of scores showed for what the range "
            "holds. Where a large range showed no positive, the truth may lie outside of it more "
            "often than its level says."
        )
    return (
        f"The interval supposes that no more than {words.rate(rule.hidden_share)} of the positives "
        "are invisible to the score, that is, score no higher than harmless comments do. If the "
        "model is blind to more than that, recall may be lower than the interval says."
    )


def _of_errors(plan: AuditPlan) -> list[str]:
    often = f"{100 * plan.rule.level:g}"
    side = "" if plan.rule.sides == "both" else " It is a bound to one side alone."
    return [
        f"An interval at {often}\u00a0% is made so that about {often} of 100 such audits, or more, "
        f"hold the truth in theirs, as far as the chance of the draw goes.{side}",
        "Labels are people's opinions. The intervals hold the chance of the draw, not errors that "
        "people share: see the table of what errors would do.",
    ]


def _of_labels(result: Result, chain: Sequence[Event]) -> list[str]:
    remarks = []
    missing = result["drawn"] - result["labelled"]
    if missing:
        remarks.append(
            f"{words.noun(missing, 'drawn comment')} of {result['drawn']:,} "
            f"{'has' if missing == 1 else 'have'} no label that counts. The figures take them to "
            "be like the others of their range of scores; those that people find hard may not be."
        )
    notes = [event.note for event in chain if event.action == "labelled" and event.note]
    remarks += [f"The labelling was closed with the note: “{words.name(note)}”." for note in notes]
    return remarks


def _of_stages(plan: AuditPlan, chain: Sequence[Event]) -> list[str]:
    if not plan.second_stage_labels:
        return []
    drawn = sum(event.action == "drawn" for event in chain)
    text = (
        "The audit is adaptive: labels of the first stage decided which scores the "
        f"{plan.second_stage_labels:,} of the second were drawn from. The first stage has the "
        f"weight {words.rate(plan.first_stage_share)}, fixed before the draw."
    )
    return [text if drawn > 1 else f"{text} The second stage was not drawn."]
