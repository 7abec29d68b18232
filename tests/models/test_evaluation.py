"""What makes two evaluations comparable."""

from dataclasses import replace

import numpy as np
import pytest

from modwatch.common.errors import ModelError
from modwatch.models.evaluation import FrozenSet

FROZEN = FrozenSet(
    texts=["first", "second", "third"],
    label=np.array([1, 0, 0], np.int8),
    groups=[["women"], [], []],
)


@pytest.mark.parametrize(
    "other",
    [
        {"texts": ["first", "second", "another"]},
        {"label": np.array([1, 1, 0], np.int8)},
        {"groups": [["women"], ["women"], []]},
        {"groups": None},
    ],
)
def test_another_text_label_or_group_has_another_digest(other):
    assert replace(FROZEN).digest == FROZEN.digest
    assert replace(FROZEN, **other).digest != FROZEN.digest


@pytest.mark.parametrize("label", [0, 1])
def test_one_class_compares_nothing(label):
    with pytest.raises(ModelError, match="needs toxic comments and others"):
        replace(FROZEN, label=np.full(3, label, np.int8))
