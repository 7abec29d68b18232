import pytest

from modwatch.common.errors import AlertError
from modwatch.monitoring.incidents.channels import Retry


def test_pauses_double_and_end() -> None:
    pauses: list[float] = []
    retry = Retry(attempts=4, pause=0.5, sleep=pauses.append)
    with pytest.raises(AlertError, match=r"no luck \(busy, 4 attempts\)"):
        retry.call(lambda: "busy", failure="no luck")
    assert pauses == [0.5, 1.0, 2.0]


def test_what_goes_well_waits_for_nothing() -> None:
    pauses: list[float] = []
    Retry(sleep=pauses.append).call(lambda: "", failure="no luck")
    assert pauses == []
