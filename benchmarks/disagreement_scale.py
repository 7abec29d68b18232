"""Flip rates, adjusted metrics and divergences of up to 50 million annotations.

    python benchmarks/disagreement_scale.py [--millions 0.5 5 50] [--svd 5]

Annotations by 10,000 people, four an item, of which 2 % are given again. Printed are seconds by
step and the peak memory, each in a process of its own; exit status 1 above three minutes or 6 GiB.
`--svd` fits the matrix factorisation to that many million annotations: at most ten minutes.
"""

import argparse
import contextlib
import multiprocessing
import resource
import time

import numpy as np

from modwatch.common.errors import MetricInputError
from modwatch.statistics.disagreement import (
    Annotations,
    adjusted_metrics,
    retest_flip_rates,
    svd_flip_rates,
)
from modwatch.statistics.divergence import (
    Groups,
    annotator_profiles,
    conformity_delta,
    demographic_divergence,
    group_report,
    kappa_table,
)

PEOPLE, EACH, RETESTS = 10_000, 4, 0.02


def columns(n, seed=0):
    """Return item, annotator, label (N,) and a model's probability (I,)."""
    rng = np.random.default_rng(seed)
    items = n // EACH
    toxicity = rng.beta(0.7, 1.5, items).astype(np.float32)
    item = np.repeat(np.arange(items, dtype=np.int32), EACH)
    annotator = rng.integers(0, PEOPLE, item.size, dtype=np.int32)
    threshold = rng.normal(0.5, 0.12, PEOPLE).astype(np.float32)
    again = np.flatnonzero(rng.random(item.size, np.float32) < RETESTS)
    item, annotator = (np.concatenate([value, value[again]]) for value in (item, annotator))
    primary = toxicity[item] > threshold[annotator]
    label = primary ^ (rng.random(item.size, np.float32) < 0.1)
    prob = np.clip(toxicity + rng.normal(0, 0.15, items), 0, 1)
    return item, annotator, label.astype(np.int8), prob


def measured(n, svd, queue):
    item, annotator, label, prob = columns(n)
    steps, start = {}, time.perf_counter()

    def done(name):
        nonlocal start
        steps[name] = time.perf_counter() - start
        start = time.perf_counter()

    annotations = Annotations.from_columns(item=item, annotator=annotator, label=label)
    done("columns to codes")
    if svd:
        rate = np.nan
        with contextlib.suppress(MetricInputError):  # these people share no opinions
            rate = svd_flip_rates(annotations).mean
        done("factorisation")
    else:
        rates = retest_flip_rates(annotations, by=prob)
        rate = rates.mean
        done("flip rates")
        adjusted_metrics(annotations, prob, rates)
        done("adjusted metrics")
        groups = Groups.from_annotations(
            annotations, {person: f"group {person % 8}" for person in range(PEOPLE)}
        )
        group_report(annotations, prob, groups)
        done("group report")
        conformity = conformity_delta(annotations, prob)
        profiles = annotator_profiles(conformity)
        demographic_divergence(profiles, groups.code[profiles.annotator])
        done("profiles")
        kappa_table(annotations, groups)
        done("kappa")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    queue.put((steps, peak, rate))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--millions", type=float, nargs="*", default=[0.5, 5, 50])
    parser.add_argument("--svd", type=float, default=5)
    options = parser.parse_args()
    spawn = multiprocessing.get_context("spawn")
    missed = False
    for svd, sizes in ((False, options.millions), (True, [options.svd] * (options.svd > 0))):
        for millions in sizes:
            queue = spawn.SimpleQueue()
            process = spawn.Process(target=measured, args=(int(millions * 1e6), svd, queue))
            process.start()
            process.join()
            steps, peak, rate = queue.get()
            total = sum(steps.values())
            result = ", ".join(f"{name} {seconds:.1f}" for name, seconds in steps.items())
            print(
                f"{millions:g} million: {total:.1f} s ({result}), {peak:.2f} GiB, "
                f"mean flip rate {rate:.3f}",
                flush=True,
            )
            missed |= total > (600 if svd else 180) or (not svd and peak > 6)
    raise SystemExit(missed)


if __name__ == "__main__":
    main()
