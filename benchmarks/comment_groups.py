"""Coverage of the figures of groups of comments where few comments have labels, and people err.

    python benchmarks/comment_groups.py [--repetitions 63] [--comments 2000] [--processes 2]
                                        [--no-additional-event] [--inferred once]

Each repetition simulates two weeks as `coverage.py` does. A part of the comments belongs to a
group, in which toxicity is twice as frequent (cell `differs`), which is drawn at random (cell
`alike`), or of which the score says nothing (cell `blind`). The true values are the window's own,
of the group and of all other comments; those of prediction sets are the coverage, and the share
that are not one label, of the sets of all comments.
Printed by cell, metric and size of the group: coverage of the 95 % intervals of the figure and of
its difference, bias in standard errors, the width in units of the error's standard deviation, how
often there is a figure, and how often a difference is called significant (Holm) that is none. With
`--no-additional-event` intervals assume no event beyond those observed, to show what that costs.
The part of a total that labels do not show is inferred from the part that they do, and varies with
it: `--inferred once` leaves out what the sampling error and the posterior both count of that, and
`--inferred apart` takes the two parts as independent.
"""

import argparse
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product

import numpy as np
import pandas as pd
from conformal import sets_of_all
from coverage import DAYS, ERRORS, POLICY, THRESHOLD, Team, comments

from modwatch import statistics as metrics
from modwatch.statistics.divergence import bnsp_auc, bpsn_auc
from modwatch.statistics.intervals import _POINTS, PartialTotal, _beta_points
from modwatch.statistics.live import sample as sampling
from modwatch.statistics.live.conformal import has_enough_labels
from modwatch.statistics.live.group_estimates import GroupedDay, _side, measure_groups
from modwatch.statistics.live.sample import Sample

_SHOWN = ["held", "held_difference", "bias", "width", "figure", "significant"]
CELLS = list(product(("differs", "alike", "blind"), (0.1, 0.4), ERRORS[1:4:2]))


def day(rng, size, cell):
    """Return scores, labels and membership of a day."""
    kind, share, _ = cell
    inside = rng.random(size) < share
    prob, label = np.empty(size), np.empty(size, int)
    rates = (0.1, 0.05) if kind == "differs" else (0.06, 0.06)
    for part, rate in zip((inside, ~inside), rates, strict=True):
        prob[part], label[part] = comments(rng, int(part.sum()), rate, 1.0)
    if kind == "differs":  # the model does not know that the group differs
        odds = prob[inside] / (1 - prob[inside]) / 2
        prob[inside] = odds / (1 + odds)
    if kind == "blind":  # the score says nothing of the group
        prob[inside] = rng.permutation(prob[inside])
    return prob, label, inside


def exact(prob, label):
    return {
        "accuracy": metrics.accuracy(label, prob),
        "prevalence": metrics.prevalence(label),
        "precision_flagged": metrics.precision(label, prob),
        "recall_flagged": metrics.recall(label, prob),
        "auroc": metrics.auroc(label, prob),
        "brier": metrics.brier_score(label, prob),
        "calibration_error": float(prob.mean() - label.mean()),
    }


def true_sets(days, inside, truth, seed):
    """Return the true values of prediction sets, by side: those of the sample, of all comments."""
    both = (inside, [~item for item in inside])
    sides = [_side(days, member, threshold=THRESHOLD) for member in both]
    pooled = Sample(sides)
    part = np.repeat([0, 1], [int(side.labelled.sum()) for side in sides])
    toxic = pooled.true_labels(seed=seed, part=part).mean
    enough = has_enough_labels(pooled.weight, toxic, part)
    found = {}
    for number, side in enumerate(sides):
        label = np.concatenate(
            [y[rows == (number == 0)] for (_, y, _), rows in zip(truth, inside, strict=True)]
        )
        top, own = side.stratum == 0, np.full(label.size, number)
        together = sets_of_all(pooled, toxic, side.prob, top)
        apart = sets_of_all(pooled, toxic, side.prob, top, group=part, new_group=own)
        apart = np.where(enough[number], apart, together)
        for prefix, sets in (("", together), ("own_", apart)):
            hit = sets[np.arange(label.size), label]
            for name, rows in (("", label >= 0), ("_harmless", label == 0), ("_toxic", label == 1)):
                found.setdefault(f"{prefix}set_coverage{name}", []).append(float(hit[rows].mean()))
        found.setdefault("unsure_share", []).append(float((apart.sum(axis=1) != 1).mean()))
    return found


def without_additional_event(total, event):
    """Return the lower confidence distribution of the rate of an event, in place of the upper."""
    if total.span == 0:
        return (np.zeros(_POINTS.size),) * 2
    rate = float(np.dot(total.share, event))
    return (_beta_points(rate, total._variance(event)),) * 2


def once(whole, evident, spread=sampling._spread):
    """Return the factor of the sampling error without the variance of the inferred part alone."""
    return (2 * spread(whole, evident) - 1) ** 0.5


def apart(_whole, _evident):
    """Return the factor of the sampling error of the evident part alone."""
    return 1.0


INFERRED = {"with": sampling._spread, "once": once, "apart": apart}


def repetition(seed, size, cell, additional=True, inferred="with"):
    sampling._spread = INFERRED[inferred]
    if not additional:
        PartialTotal._bounds = without_additional_event
    rng = np.random.default_rng(seed)
    truth = [day(rng, size, cell) for _ in range(DAYS)]
    team = Team(rng, cell[2], "independent", 1.0)
    days = []
    for prob, label, _ in truth:
        labelled = team.review(prob, label)
        days.append(grouped(labelled, team.strata))
    members = [(("identity", "group"), [inside for *_, inside in truth])]
    table = measure_groups(days, members, threshold=THRESHOLD, seed=seed)
    table = table[table["group"] == "group"].set_index("metric")
    prob, label, inside = (np.concatenate(part) for part in zip(*truth, strict=True))
    own, others = exact(prob[inside], label[inside]), exact(prob[~inside], label[~inside])
    top = np.concatenate([day.stratum == 0 for day in days])
    wrong = (prob > THRESHOLD) != label
    for values, rows in ((own, inside), (others, ~inside)):
        values["overturn_rate"] = float(wrong[rows & top].mean())
    for metric, values in true_sets(days, members[0][1], truth, seed).items():
        own[metric], others[metric] = values
    mixed = {
        "bpsn_auc": bpsn_auc(label, prob, inside),
        "bnsp_auc": bnsp_auc(label, prob, inside),
    }
    table["truth"] = pd.Series(own | mixed, dtype=float)
    table["true_difference"] = pd.Series({name: own[name] - others[name] for name in own})
    kind, share, errors = cell
    rates = f"{100 * errors[0]:g}/{100 * errors[1]:g}"
    return table.assign(cell=kind, share=share, errors=rates).reset_index()


def grouped(labelled, strata):
    routed = labelled.stratum >= 0
    return GroupedDay(labelled=labelled, stratum=strata, routed=routed)


def covered(frame, prefix, truth):
    low, high = (frame[name] for name in prefix)
    inside = (low <= frame[truth] + 1e-9) & (frame[truth] <= high + 1e-9)
    return inside.where(low.notna())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=63)
    parser.add_argument("--comments", type=int, default=2_000)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--no-additional-event", action="store_true")
    parser.add_argument("--inferred", choices=INFERRED, default="with")
    asked = parser.parse_args()
    frames = []
    with ProcessPoolExecutor(asked.processes) as pool:
        for cell in CELLS:
            additional = not asked.no_additional_event
            run = partial(
                repetition,
                size=asked.comments,
                cell=cell,
                additional=additional,
                inferred=asked.inferred,
            )
            frames += pool.map(run, range(asked.repetitions), chunksize=5)
    frame = pd.concat(frames, ignore_index=True)
    frame["held"] = covered(frame, ("low", "high"), "truth")
    frame["held_difference"] = covered(
        frame, ("difference_low", "difference_high"), "true_difference"
    )
    frame["bias"] = (frame["value"] - frame["truth"]) / ((frame["high"] - frame["low"]) / 3.92)
    half = (frame["high"] - frame["low"]) / 3.92
    frame["width"] = half / (frame["value"] - frame["truth"]).groupby(frame["metric"]).transform(
        "std"
    )
    frame["figure"] = frame["status"] == "ok"
    frame["significant"] = frame["p_holm"] < 0.05
    by = ["cell", "metric", "share", "errors"]
    shown = frame.groupby(by)[_SHOWN].agg(lambda values: values.astype(float).mean())
    print(
        f"{asked.repetitions} windows of {DAYS} days of {asked.comments} a cell, "
        f"review fraction {POLICY.review_fraction}"
    )
    print(shown.round(3).to_string())
    for by in ("metric", ["share", "metric"]):
        over_all = frame.groupby(by)[["held", "held_difference", "width", "figure"]].agg(
            lambda values: values.astype(float).mean()
        )
        print(over_all.round(3).to_string())


if __name__ == "__main__":
    main()
