"""Each formula against its definition: true labels, and the same turned round in expectation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from modwatch.errors import MetricInputError
from modwatch.metrics.collaborative import review_scores
from modwatch.metrics.corrections import FORMULAS, Draws, Totals
from modwatch.metrics.labelled import fully_labelled
from modwatch.metrics.moderator_error import ModeratorError, assumed_error

SIZE, REVIEWED = 400, 40
TOTALS = Totals(comments=SIZE, flagged=0, top=REVIEWED, strategy="uncertainty")


def metrics(prob, chance, reviewed):
    """Return every metric of comments that are positive with these chances (SIZE,), exactly."""
    flagged = prob > 0.5
    wrong = np.where(flagged, 1 - chance, chance)
    uncertainty = prob * (1 - prob)
    return {
        "prevalence": chance.mean(),
        "accuracy": 1 - wrong.mean(),
        "precision_flagged": chance[flagged].mean(),
        "recall_flagged": chance[flagged].sum() / chance.sum(),
        "auroc": area(prob, chance),
        "calibration_auroc": area(uncertainty, wrong),
        "oc_accuracy": 1 - wrong[~reviewed].sum() / SIZE,
        "review_efficiency": wrong[reviewed].mean(),
        "review_effectiveness": wrong[reviewed].sum() / wrong.sum(),
    }


def area(score, chance):
    """Return P(a positive scores higher than a negative), ties as halves."""
    higher = (score[:, None] > score) + 0.5 * (score[:, None] == score)
    pairs = chance[:, None] * (1 - chance)
    return (higher * pairs).sum() / pairs.sum()


def corrected(seen, error, flagged):
    """Return each metric as seen, corrected."""
    totals = Totals(comments=SIZE, flagged=flagged, top=REVIEWED, strategy="uncertainty")
    draws = Draws(error, totals, seed=0)

    def row(name):
        team = name.startswith(("oc_", "review_"))
        setting = ("uncertainty", REVIEWED / SIZE) if team else (None, None)
        value = seen[name]
        return {
            **dict(zip(("strategy", "alpha"), setting, strict=True)),
            **dict.fromkeys(("value", "low", "high"), value),
        }

    return {
        name: float(formula(draws.of(row(name), row(needed or name)))[0])
        for name, (formula, needed) in FORMULAS.items()
    }


@given(st.floats(0, 0.4), st.integers(0, 2**32 - 1))
def test_what_errors_did_on_average_is_undone(error, seed):
    rng = np.random.default_rng(seed)
    # Ties do not matter to the uniform ranks of turned labels in the area's formula.
    prob = rng.permutation(np.linspace(0.001, 0.9, SIZE))
    truth = (rng.random(SIZE) < prob**2).astype(float)
    uncertain = review_scores(prob, "uncertainty")
    reviewed = np.argsort(np.argsort(-uncertain)) < REVIEWED
    true = metrics(prob, truth, reviewed)
    labels = truth * (1 - error) + (1 - truth) * error
    seen = metrics(prob, labels, reviewed)
    # The team's accuracy when those who review err as well.
    true["oc_accuracy"] -= error * REVIEWED / SIZE
    found = corrected(seen, assumed_error(error), int((prob > 0.5).sum()))
    for name, value in true.items():
        # Of an area, pairs of one label each are counted; one comment is no pair with itself.
        slack = 0.02 if name.endswith("auroc") else 1e-9
        assert found[name] == pytest.approx(value, abs=slack), name


def test_top_and_rest_may_err_at_their_own_rates():
    prob = np.linspace(0.001, 0.9, SIZE)
    truth = (np.arange(SIZE) % 5 == 0).astype(float)
    reviewed = np.argsort(np.argsort(-review_scores(prob, "uncertainty"))) < REVIEWED
    rate = np.where(reviewed, 0.1, 0.01)
    seen = metrics(prob, truth * (1 - rate) + (1 - truth) * rate, reviewed)
    true = metrics(prob, truth, reviewed)
    top, rest = assumed_error(0.1).top, assumed_error(0.01).rest
    found = corrected(seen, ModeratorError(top=top, rest=rest, pooled=rest), 1)
    for name in ("review_efficiency", "review_effectiveness"):
        assert found[name] == pytest.approx(true[name], abs=1e-9)
    assert found["oc_accuracy"] == pytest.approx(true["oc_accuracy"] - 0.1 * REVIEWED / SIZE)
    assert abs(found["accuracy"] - true["accuracy"]) < abs(seen["accuracy"] - true["accuracy"])


def test_oc_accuracy_is_accuracy_and_efficiency_less_the_reviewers_errors():
    """Kivlichan et al., Eq. 2, holds between the corrected metrics as between the true ones."""
    share, e = REVIEWED / SIZE, 0.03
    seen = {"accuracy": 0.9, "review_efficiency": 0.3, "oc_accuracy": 0.9 + share * 0.3}
    seen |= dict.fromkeys(set(FORMULAS) - set(seen), 0.5)
    found = corrected(seen, assumed_error(e), 40)
    whole = found["accuracy"] + share * found["review_efficiency"]
    assert found["oc_accuracy"] == pytest.approx(whole - share * e)


def test_totals_come_from_days():
    day = fully_labelled(np.array([0.9, 0.6, 0.1]), np.array([1, 0, 0]))
    found = Totals.of([day, day], threshold=0.7, strategy="toxicity")
    assert found == Totals(comments=6, flagged=2, top=6, strategy="toxicity")


@pytest.mark.parametrize("counts", [(1, 2, 0), (1, 0, 2), (1, -1, 0), (-1, 0, 0)])
def test_impossible_totals_are_refused(counts):
    comments, flagged, top = counts
    with pytest.raises(MetricInputError, match="cannot be"):
        Totals(comments=comments, flagged=flagged, top=top, strategy="uncertainty")
