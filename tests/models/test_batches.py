"""Batches on their way to a device."""

from collections.abc import Iterator

import torch

from modwatch.models.batches import Batch, on_device, padded


def test_batches_keep_their_order_and_are_made_when_they_are_asked_for():
    made = list[int]()

    def batches() -> Iterator[Batch]:
        for length in (1, 2, 3):
            made.append(length)
            yield padded([[5] * length], pad_id=0)

    found = on_device(batches(), torch.device("cpu"))
    assert made == []
    assert next(found).ids.tolist() == [[5]]
    assert made == [1]
    assert [batch.ids.shape[1] for batch in found] == [2, 3]


def test_a_batch_on_its_device_is_not_copied():
    batch = padded([[5]], pad_id=0)
    assert batch.to(torch.device("cpu")).ids is batch.ids
