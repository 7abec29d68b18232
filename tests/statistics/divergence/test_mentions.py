"""AUCs of identity mentions, against the published definition by pairs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from modwatch.common.errors import MetricInputError
from modwatch.statistics.divergence import bnsp_auc, bpsn_auc, calibration_gap, subgroup_auc

ROWS = st.lists(
    st.tuples(
        st.integers(0, 1), st.sampled_from([0.1, 0.4, 0.6, 0.9]), st.booleans(), st.integers(1, 3)
    ),
    min_size=1,
    max_size=25,
)


@given(rows=ROWS)
def test_they_are_shares_of_pairs(rows: list[tuple[int, float, bool, int]]) -> None:
    y, p, m, w = (np.array(column) for column in zip(*rows, strict=True))

    def share(positive: np.ndarray, negative: np.ndarray) -> float | None:
        up, down = p[positive][:, None], p[negative][None, :]
        pairs = w[positive][:, None] * w[negative][None, :]
        won = (up > down) + 0.5 * (up == down)
        return float((won * pairs).sum() / pairs.sum()) if pairs.size else None

    parts = {
        subgroup_auc: ((y == 1) & m, (y == 0) & m),
        bpsn_auc: ((y == 1) & ~m, (y == 0) & m),
        bnsp_auc: ((y == 1) & m, (y == 0) & ~m),
    }
    for metric, (positive, negative) in parts.items():
        wanted = share(positive, negative)
        found = metric(y, p, m, sample_weight=w)
        assert found == (None if wanted is None else pytest.approx(wanted))


def test_the_gap_of_calibration() -> None:
    y, p = [1, 0, 1, 0], [0.9, 0.5, 0.9, 0.1]
    assert calibration_gap(y, p, [True, True, False, False]) == pytest.approx(0.2)
    weighted = calibration_gap(y, p, [True, True, False, False], sample_weight=[1, 3, 1, 1])
    assert weighted == pytest.approx((-0.1 + 3 * 0.5) / 4)
    assert calibration_gap(y, p, [True] * 4) is None


def test_bad_mentions_are_named() -> None:
    with pytest.raises(MetricInputError, match="mentions contains values other than 0 and 1"):
        subgroup_auc([0, 1], [0.1, 0.9], [0.5, 1])
    with pytest.raises(MetricInputError, match="inconsistent numbers"):
        bpsn_auc([0, 1], [0.1, 0.9], [True])
