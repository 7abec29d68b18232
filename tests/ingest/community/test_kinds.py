import numpy as np
import pytest

from modwatch.errors import SourceError
from modwatch.ingest.community.kinds import KINDS, kind_shares, toxic_share


def test_shares_of_each_side_add_up():
    for side in (True, False):
        assert sum(k.share for k in KINDS if k.hostile is side) == pytest.approx(1)


@pytest.mark.parametrize("prevalence", [0.03, 0.09, 0.5])
def test_the_mixture_has_the_prevalence_asked_for(prevalence):
    shares = kind_shares(prevalence)
    assert shares.sum() == pytest.approx(1)
    assert shares @ np.array([toxic_share(k) for k in KINDS]) == pytest.approx(prevalence)


@pytest.mark.parametrize("prevalence", [0.0, 0.99, -1.0, float("nan")])
def test_a_prevalence_out_of_reach_is_refused_with_the_range(prevalence):
    with pytest.raises(SourceError, match="choose one from 0"):
        kind_shares(prevalence)
