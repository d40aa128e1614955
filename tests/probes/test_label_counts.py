"""Labels of weighted losses: counted for each factor of positive labels, wherever the columns are."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from truestep.events import LabelsCounted
from truestep.testing import capture_events


@pytest.mark.parametrize(
    ("shape", "factors", "counts"),
    [
        ((4, 3), (3,), (4, 2, 1)),
        ((4, 3), (1, 3), (4, 2, 1)),
        ((4, 3), (), (7,)),
        ((4, 3), (1,), (7,)),
        ((4, 2, 3), (3,), (8, 4, 2)),
        ((4, 3, 2, 2), (3, 1, 1), (16, 8, 4)),
        ((4, 3, 5), (3, 1), (20, 10, 5)),
        ((4, 2, 3), (2, 3), ()),
    ],
)
def test_positive_labels_of_each_factor(
    shape: tuple[int, ...], factors: tuple[int, ...], counts: tuple[int, ...]
) -> None:
    axis = 1 if len(factors) > 1 and factors[0] == 3 else len(shape) - 1
    target = torch.zeros(shape).movedim(axis, -1)
    for column, rows in enumerate((4, 2, 1)):
        target[:rows, ..., column] = 1
    target = target.movedim(-1, axis)
    weight = torch.full(factors, 0.5)
    with capture_events() as events:
        layer = nn.Linear(shape[-1], shape[-1])
        F.binary_cross_entropy_with_logits(layer(torch.zeros(shape)), target, pos_weight=weight).backward()
    (event,) = [event for event in events if isinstance(event, LabelsCounted)]
    assert event.counts == counts
    assert event.weights == (0.5,) * len(counts)
