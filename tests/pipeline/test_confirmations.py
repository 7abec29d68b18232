"""Confirmations of simulated days: how often, and at what price."""

import datetime

import numpy as np
import pyarrow as pa
import pytest

from modwatch.data.lake.day_scores import DayScores
from modwatch.routing import routed
from modwatch.routing.design import RoutingPolicy, design_routing

FIRST = datetime.date(2026, 1, 5)
THRESHOLD = 0.5


@pytest.mark.parametrize(
    ("prevalence", "false_positive", "false_negative"), [(0.01, 0.02, 0.2), (0.2, 0.0, 0.0)]
)
def test_labels_are_confirmed_by_their_probabilities_and_cost_what_is_allowed(
    prevalence, false_positive, false_negative
):
    rng = np.random.default_rng(int(1000 * prevalence + 10 * false_positive))
    policy = RoutingPolicy(review_fraction=0.1)
    top, label, chance, confirmed, differ = [], [], [], [], []
    for number in range(40):
        day = FIRST + datetime.timedelta(days=number)
        prob = rng.beta(1.5 * prevalence, 1.5 * (1 - prevalence), 3000).astype(np.float32)
        truth = rng.random(3000) < prob
        ids = pa.chunked_array([[f"c{k}" for k in range(3000)]])
        scores = DayScores(
            comment_id=ids, prob=prob, flagged=prob > THRESHOLD, threshold=THRESHOLD,
            cut=np.zeros(prob.size, bool), columns={}, model_version="3",
        )  # fmt: skip
        keys = routed.sampling_keys(scores, day=day, policy=policy, salt="salt")
        routing = design_routing(prob, keys, policy)
        rows = routed.routed_rows(day, scores, policy, routing)
        drawn = routed.confirmations(day, rows, policy=policy, salt="salt")
        sure = np.where(truth, 1 - false_negative, false_positive)[routing.row]
        first, second = rng.random((2, len(routing.row))) < sure
        for k, row in enumerate(rows.to_pylist()):
            chance.append(row[f"confirmation_probability_{int(first[k])}"])
            item = drawn.get(row["comment_id"])
            confirmed.append(item is not None and int(first[k]) in item[0]["confirms"])
        top.extend(routing.stratum == 0)
        label.extend(first)
        differ.extend(first != second)
    for part in (True, False):
        for value in (True, False):
            cell = (np.array(top) == part) & (np.array(label) == value)
            wanted, found = np.array(chance)[cell], np.array(confirmed)[cell]
            spread = np.sqrt((wanted * (1 - wanted)).sum())
            assert abs(found.sum() - wanted.sum()) <= 4 * spread + 1e-9
            if not part and value:
                assert found.all()
    further = sum(confirmed) + sum(np.array(confirmed) & np.array(differ))
    assert 0 < further <= 0.15 * len(confirmed)
