"""Error rates from the answers that the lake holds: planted rates, weights, and days."""

import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from modwatch.lake.delta import Lake
from modwatch.lake.schemas import CHECK_ANSWERS
from modwatch.monitoring.measurement import check_errors
from modwatch.monitoring.tables import gold_answers, retest_pairs

DAY = datetime.date(2026, 1, 5)
NEXT = datetime.date(2026, 1, 6)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(root=str(tmp_path))


def keep(lake: Lake, day: datetime.date, *answers: dict[str, object]) -> None:
    rows = [
        {"dt": day, "comment_id": f"c{k}", "moderator": "ann", **answer}
        for k, answer in enumerate(answers)
    ]
    lake.replace("check_answers", day, [pa.RecordBatch.from_pylist(rows, schema=CHECK_ANSWERS)])


def retest(known: int, label: int, stratum: int = 0, chance: float = 1.0) -> dict[str, object]:
    about = {"stratum": stratum, "inclusion_probability": chance}
    return {"kind": "retest", "known": known, "label": label, **about}


def gold(known: int, label: int) -> dict[str, object]:
    return {"kind": "gold", "known": known, "label": label}


def test_without_answers_both_are_insufficient(lake: Lake) -> None:
    found = check_errors(lake, [DAY], prevalence=None)
    assert {name: error.pooled.status for name, error in found.items()} == {
        "retest": "insufficient",
        "gold": "insufficient",
    }


def test_retests_weigh_as_their_first_routing_and_gold_is_not_among_them(lake: Lake) -> None:
    keep(lake, DAY, retest(0, 1), retest(1, 1, 1, 0.5), gold(1, 0))
    keep(lake, NEXT, retest(0, 0), retest(1, 0, 2, 0.1))
    pairs = retest_pairs(lake, [DAY, NEXT])
    assert pairs.first.tolist() == [0, 1, 0, 1]
    assert pairs.second.tolist() == [1, 1, 0, 0]
    assert pairs.top.tolist() == [True, False, True, False]
    assert pairs.weight == pytest.approx([1, 1 / 3, 1, 5 / 3])
    assert len(retest_pairs(lake, [DAY]).first) == 2


def test_gold_is_counted_by_what_is_known(lake: Lake) -> None:
    keep(lake, DAY, gold(1, 1), gold(1, 0), gold(0, 0), retest(1, 0))
    keep(lake, NEXT, gold(0, 0), gold(0, 1))
    found = gold_answers(lake, [DAY, NEXT])
    assert (found.toxic, found.toxic_right, found.other, found.other_right) == (2, 1, 3, 2)


def test_planted_rates_are_found_and_each_source_by_itself(lake: Lake) -> None:
    rng = np.random.default_rng(2)
    truth = (rng.random(3000) < 0.3).astype(int)

    def said(rate: float) -> list[int]:
        return (truth ^ (rng.random(truth.size) < rate)).tolist()

    retests = [retest(*pair) for pair in zip(said(0.05), said(0.05), strict=True)]
    golds = [gold(*pair) for pair in zip(truth.tolist(), said(0.12), strict=True)]
    keep(lake, DAY, *retests, *golds)
    found = check_errors(lake, [DAY], prevalence=0.2)
    for source, rate in (("retest", 0.05), ("gold", 0.12)):
        error = found[source].pooled
        assert error.n == 3000
        assert error.low is not None
        assert error.high is not None
        assert error.low <= rate <= error.high
        assert error.high - error.low < 0.03
