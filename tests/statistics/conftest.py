"""Days with known labels, as `reviewed_days` makes them."""

import numpy as np
import pytest
from reviewed_days import community, reviewed_day


@pytest.fixture(scope="module")
def floating_point_errors_raise():
    with np.errstate(all="raise", under="ignore"):
        yield


@pytest.fixture
def make_community():
    return community


@pytest.fixture
def review():
    return reviewed_day
