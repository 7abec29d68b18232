"""People's errors on simulated comments: independent, on hard comments, of some people, copied."""

import numpy as np

#: P(the second is wrong, given that the first is) on Civil Comments, of comments that are not toxic
#: and of toxic ones (docs/data-scientists.md).
CIVIL_COMMENTS = (0.175, 0.304)


def labels_of(generator, truth, errors, kind="independent", people=3):
    """Return the labels (n, `people`) of comments with a true label (n,).

    `errors` are the false-positive and the false-negative rate. Kinds: `independent`; `hard` and
    `harder`, where errors are concentrated on hard comments (beta-binomial) so that a second person
    repeats an error as on Civil Comments, or half of the time; `alike`, where everybody makes half
    of them; `lazy`, where one of five people always says that a comment is not toxic; `copied`,
    where every second further label copies the first.
    """
    truth = np.asarray(truth, np.int64)
    rate = np.where(truth == 1, errors[1], errors[0])[:, None]
    if kind in ("hard", "harder"):
        again = (0.5, 0.5) if kind == "harder" else CIVIL_COMMENTS
        again = np.where(truth == 1, again[1], again[0])[:, None]
        spread = np.maximum((again - rate) / (1 - rate), 1e-3)
        total = 1 / spread - 1
        rate = generator.beta(np.maximum(rate * total, 1e-9), (1 - rate) * total)
    everybody = np.zeros((truth.size, 1), np.bool_)
    if kind == "alike":
        everybody = generator.random((truth.size, 1)) < rate / 2
        rate = rate / 2 / (1 - rate / 2)
    wrong = everybody | (generator.random((truth.size, people)) < rate)
    if kind == "copied":
        copies = generator.random((truth.size, people)) < 0.5
        wrong[:, 1:] = np.where(copies[:, 1:], wrong[:, :1], wrong[:, 1:])
    found = truth[:, None] ^ wrong
    if kind == "lazy":
        place = generator.integers(0, 5, truth.size)
        here = place < people
        found[here, place[here]] = 0
    return found.astype(np.int64)
