"""Targets that stand for missing readings, behind a mask for NaN that leaves nothing out."""

import pytest
import torch
from torch import Tensor, nn

from truestep.events import ReadingsRead
from truestep.testing import capture_events


def product(prediction: Tensor, target: Tensor, mask: Tensor) -> Tensor:
    return ((prediction - target).abs() * mask).sum() / mask.sum()


def selected(prediction: Tensor, target: Tensor, mask: Tensor) -> Tensor:
    return ((prediction[mask] - target[mask]) ** 2).mean()


def of_torch(prediction: Tensor, target: Tensor, mask: Tensor) -> Tensor:
    return (nn.functional.mse_loss(prediction, target, reduction="none") * mask).mean()


def read(loss, y: Tensor, *, missing: float | None = None) -> list[ReadingsRead]:
    torch.manual_seed(0)
    x = torch.randn(len(y), 3)
    model = nn.Linear(3, 4)
    optimizer = torch.optim.Adam(model.parameters())
    with capture_events() as events:
        for rows in torch.randperm(len(y)).split(50)[:4]:
            target = y[rows]
            mask = ~torch.isnan(target) if missing is None else target != missing
            loss(model(x[rows]), target, mask).backward()
            optimizer.step()
            optimizer.zero_grad()
    return [event for event in events if isinstance(event, ReadingsRead)]


def readings(value: float = 0.0, share: float = 0.15) -> Tensor:
    torch.manual_seed(1)
    y = 50 + 5 * torch.randn(400, 4)
    return torch.where(torch.rand(400, 4) < share, torch.tensor(value), y)


@pytest.mark.parametrize("loss", [product, selected, of_torch])
def test_zeros_far_from_all_readings_are_read(loss) -> None:
    events = read(loss, readings())
    assert len(events) >= 3
    assert {(event.table, event.value) for event in events} == {("y", 0.0)}


def test_a_mask_of_the_value_itself_is_quiet() -> None:
    assert read(product, readings(), missing=0.0) == []


@pytest.mark.parametrize(
    "y",
    [readings(share=0.0), readings(45.0), readings().relu().round(), readings() * (torch.arange(400) % 8 > 0)[:, None]],
    ids=["complete", "a value among others", "whole numbers", "all at once"],
)
def test_other_targets_are_quiet(y: Tensor) -> None:
    assert read(product, y) == []
