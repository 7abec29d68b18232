"""How a benchmark differs from the set-up of the paper, computed from what ran."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from modwatch.models.recipe import LOSSES, METHODS
from modwatch.statistics.collaboration.collaborative import REVIEW_FRACTIONS
from modwatch_lab.benchmark import paper
from modwatch_lab.benchmark.corpora import BenchmarkData, Comments
from modwatch_lab.benchmark.runs import Result

_NOT_STATED = "not stated"
_PRECISIONS = {
    "exact": "the sum over the training comments in one more pass, at the final weights",
    "momentum": "a moving average over the batches of training",
}


@dataclass(frozen=True, kw_only=True)
class Aspect:
    """One aspect of the set-up."""

    name: str
    #: In the paper, with its section; defaults of the authors' published code where the paper is
    #: silent.
    paper: str
    here: str
    #: Whether both are the same.
    same: bool = False


def aspects(data: BenchmarkData, results: Sequence[Result]) -> list[Aspect]:
    """Return every aspect of the set-up, of the paper and of these results."""
    return [
        *_of_data(data),
        *_of_training(results),
        *_of_methods(results),
        *_of_evaluation(data, results),
    ]


def _of_data(data: BenchmarkData) -> list[Aspect]:
    talk, civil = (
        f"{n:,} comments, {toxic / n:.1%} toxic"
        for n, toxic in (paper.WIKIPEDIA_TALK, paper.CIVIL_COMMENTS)
    )
    return [
        Aspect(
            name="Training comments",
            paper=f"Wikipedia Talk, training and test part together {talk} (section 4.2)",
            here=_described(data.train),
        ),
        Aspect(
            name="In-domain test comments",
            paper="Wikipedia Talk, test part (section 4.2)",
            here=_described(data.in_domain),
        ),
        Aspect(
            name="Out-of-domain comments",
            paper=f"CivilComments, {civil} (section 4.2: one million, 2015–2017)",
            here=_described(data.out_of_domain),
        ),
        Aspect(
            name="Label in domain",
            paper=f"{_NOT_STATED}; the share of toxic comments is that of the label “toxic”",
            here=f"training: {data.train.definition}; test: {data.in_domain.definition}",
            same=data.train.definition == data.in_domain.definition == "“toxic”",
        ),
        Aspect(
            name="Label out of domain",
            paper=f"{_NOT_STATED}; in the authors’ code more than 70 % of the raters for accuracy, "
            "ECE and calibration, but any share above 0 for AUROC, AUPRC and their collaborative "
            "versions (Keras casts the shares to true or false), and the share itself for Brier",
            here=f"{data.out_of_domain.definition}, for every metric",
        ),
        Aspect(
            name="Duplicates of tested comments in the training comments",
            paper=_NOT_STATED,
            here=_duplicates(data.train),
        ),
    ]


def _described(comments: Comments) -> str:
    text = (
        f"{comments.title}: {len(comments.texts):,} of {comments.available:,} comments, "
        f"{comments.labels.mean():.1%} toxic"
    )
    if (comments.weights != 1).any():
        text += f", by weight {comments.prevalence:.1%}"
    dropped = {name: count for name, count in comments.left_out.items() if "duplicates" not in name}
    reasons = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in dropped.items())
    return f"{text} (left out: {reasons})" if reasons else text


def _duplicates(train: Comments) -> str:
    exact, near = (
        train.left_out.get(f"{kind}_duplicates_of_tested_comments", 0) for kind in ("exact", "near")
    )
    return f"left out: {exact:,} exact and {near:,} near duplicates of the comments drawn"


def _of_training(results: Sequence[Result]) -> list[Aspect]:
    recipes = [result.recipe for result in results]
    steps = sorted(made["steps"] for result in results for made in result.networks)
    held = {result.training["held_out"] for result in results}
    used = {result.training["comments"] for result in results}
    rates = {float(recipe["head_rate"]) for recipe in recipes}
    return [
        Aspect(name="Encoder", paper=f"{paper.ENCODER} (section 5)", here=_encoder(recipes[0])),
        Aspect(
            name="Early stopping",
            paper=_NOT_STATED,
            here=f"by average precision on {_span(held)} of {_span(used)} training comments, held "
            f"out; patience {_span(recipe['patience'] for recipe in recipes)} evaluations of "
            f"{_span(recipe['evaluations'] for recipe in recipes)} an epoch",
        ),
        Aspect(
            name="Epochs",
            paper=f"{_NOT_STATED}; 5 in the authors’ code",
            here=f"at most {_span(recipe['epochs'] for recipe in recipes)}; the networks took "
            f"{_span(steps)} steps of at most {_span(recipe['batch_size'] for recipe in recipes)} "
            "comments",
        ),
        Aspect(
            name="Optimiser",
            paper=f"{_NOT_STATED}; AdamW in the authors’ code, learning rate 10⁻⁵ a batch of 128",
            here=f"AdamW, learning rate {recipes[0]['learning_rate']:g}, warm-up "
            f"{recipes[0]['warm_up']:.0%}, weight decay {recipes[0]['weight_decay']:g}",
        ),
        Aspect(
            name="Learning rate of the head",
            paper=f"{_NOT_STATED}; that of the encoder in the authors’ code",
            here=f"{_span(rates)} times that of the encoder",
            same=rates == {1.0},
        ),
        Aspect(
            name="Length of a comment",
            paper=f"{_NOT_STATED}; 512 subwords in the authors’ code",
            here=f"{_span(recipe['max_length'] for recipe in recipes)} subwords",
        ),
    ]


def _of_methods(results: Sequence[Result]) -> list[Aspect]:
    ensembles = [r.recipe["members"] for r in results if r.run.method.endswith("ensemble")]
    passes = [r.recipe["passes"] for r in results if r.run.method == "mc_dropout"]
    gammas = [r.recipe["focal_gamma"] for r in results if r.run.loss == "focal"]
    sngp = [r.recipe for r in results if r.run.method.startswith("sngp")]
    found = []
    if ensembles:
        found.append(_number("Members of an ensemble", paper.MEMBERS, "section 5", ensembles))
    if passes:
        found.append(_number("Passes of Monte Carlo dropout", paper.PASSES, "section 5", passes))
        found.append(
            Aspect(
                name="Masks of Monte Carlo dropout",
                paper=f"{_NOT_STATED}; drawn for each comment in the authors’ code, the same for "
                "all its positions; none on attention weights",
                here="the same in a pass for all comments and positions, after the embeddings, "
                "too; none on attention weights",
            )
        )
    if gammas:
        found.append(
            Aspect(
                name="Focal loss",
                paper=f"{_NOT_STATED}; γ = 5, α = 0.1 by default in the authors’ code",
                here=f"γ = {_span(gammas)}, no α",
            )
        )
    return found + (_of_sngp(sngp) if sngp else [])


def _of_sngp(recipes: Sequence[Mapping[str, Any]]) -> list[Aspect]:
    linear = all(recipe["linear_kernel"] for recipe in recipes)
    return [
        Aspect(
            name="SNGP: kernel",
            paper=f"{_NOT_STATED}; 1,024 random features of the Gaussian kernel in the authors’ "
            "code",
            here=f"{_span(recipe['random_features'] for recipe in recipes)} random features of the "
            f"Gaussian kernel{' and a linear kernel' * linear}",
            same=not linear,
        ),
        Aspect(
            name="SNGP: spectral norm",
            paper=f"{_NOT_STATED}; at most 0.95 of the pooler in the authors’ code",
            here=f"at most {_span(recipe['norm_bound'] for recipe in recipes)} of the dense layer "
            "before the head",
        ),
        Aspect(
            name="SNGP: factor λ of the mean-field logit",
            paper=f"{_NOT_STATED}; 0.1 in the authors’ code",
            here=_span(round(recipe["mean_field_factor"], 4) for recipe in recipes),
        ),
        Aspect(
            name="SNGP: Laplace precision",
            paper=f"{_NOT_STATED}; a moving average over the batches of training in the authors’ "
            "code",
            here=" and ".join(sorted({_PRECISIONS[recipe["precision"]] for recipe in recipes})),
        ),
    ]


def _encoder(recipe: dict[str, object]) -> str:
    if recipe["encoder"]:
        return f"{recipe['encoder']}, pre-trained"
    if recipe["layers"]:
        return f"BERT of {recipe['layers']} layers, {recipe['hidden_size']} wide, from scratch"
    return (
        f"bag of subwords ({recipe['vocab_size']:,} byte pairs, {recipe['hidden_size']} wide, "
        f"{recipe['pooling']} pooling), from scratch, no pre-training"
    )


def _of_evaluation(data: BenchmarkData, results: Sequence[Result]) -> list[Aspect]:
    runs = [result.run for result in results]
    seeds = list(dict.fromkeys(run.seed for run in runs))
    draws = _span(len(draws) for result in results for draws in result.draws.values())
    methods, losses = ({getattr(run, name) for run in runs} for name in ("method", "loss"))
    found = [
        _number(
            "Model runs (seeds) that are averaged", paper.SEEDS, "tables 2 and 3", [len(seeds)]
        ),
        Aspect(
            name="Intervals",
            paper="none",
            here=("Student-t over the seeds (95 %)" if len(seeds) > 1 else "none over one seed")
            + f"; of the finding also a paired bootstrap over the comments ({draws} samples)",
        ),
        Aspect(
            name="Methods and losses",
            paper=f"{len(METHODS)} methods, {len(LOSSES)} losses (section 5)",
            here=f"{', '.join(sorted(methods))}; {', '.join(sorted(losses))}",
            same=methods == set(METHODS) and losses == set(LOSSES),
        ),
        Aspect(
            name="Review fractions",
            paper="0.001 to 0.2 (section 6)",
            here=", ".join(f"{alpha:g}" for alpha in REVIEW_FRACTIONS),
            same=True,
        ),
        Aspect(
            name="Decision threshold",
            paper=_NOT_STATED,
            here="0.5, probabilities without calibration on held-out comments",
        ),
        Aspect(
            name="ECE",
            paper=f"number of bins {_NOT_STATED}; 15 in the authors’ code",
            here="15 bins of the confidence max(p, 1 − p)",
        ),
        Aspect(
            name="Collaborative metrics",
            paper="approximated with 1,000 bins in the authors’ code",
            here="exact; comments with equal scores are reviewed in part",
        ),
    ]
    if (data.in_domain.weights != 1).any():
        found.append(
            Aspect(
                name="Weights of the in-domain test comments",
                paper="none",
                here=f"comments that are not toxic count {data.in_domain.weights.max():.3g} times: "
                "the sample has all toxic comments of the test part and a part of the others, "
                "which is taken to be random",
            )
        )
    return found


def _number(name: str, published: int, section: str, here: Iterable[int]) -> Aspect:
    values = set(here)
    return Aspect(
        name=name,
        paper=f"{published} ({section})",
        here=_span(values),
        same=values == {published},
    )


def _span(values: Iterable[float]) -> str:
    """Return the values, or the smallest and largest, as text.

    >>> _span([1000, 1000]), _span([3, 1, 2])
    ('1,000', '1 to 3')
    """
    found = sorted(values)
    ends = dict.fromkeys((found[0], found[-1]))
    return " to ".join(f"{end:,g}" if end < 1_000 else f"{end:,.0f}" for end in ends)
