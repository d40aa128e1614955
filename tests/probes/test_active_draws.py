"""Two calls in eval mode with different seeds: whether the results differ, and the cause."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from torch import nn

from truestep.events import CheckSkipped, DrawsCompared
from truestep.testing import capture_events


class Rows(torch.utils.data.Dataset[torch.Tensor]):
    def __len__(self) -> int:
        return 48

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.arange(3.0) + index / 48


class Network(nn.Module):
    def __init__(self, change: Callable[[nn.Module, torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.head, self.change = nn.Linear(3, 2), change

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.change(self, self.head(x))


def compared(
    change: Callable[[nn.Module, torch.Tensor], torch.Tensor],
) -> tuple[list[DrawsCompared], list[CheckSkipped]]:
    """Train a model; return the comparisons of draws, and the checks of draws that were left out."""
    torch.manual_seed(0)
    model = Network(change)
    loader: torch.utils.data.DataLoader[torch.Tensor] = torch.utils.data.DataLoader(Rows(), batch_size=8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with capture_events() as events:
        for x in loader:
            optimizer.zero_grad()
            model(x).square().sum().backward()
            optimizer.step()
    skipped = [event for event in events if isinstance(event, CheckSkipped) and event.check == "draws"]
    return [event for event in events if isinstance(event, DrawsCompared)], skipped


def test_dropout_of_its_mode_does_not_draw() -> None:
    found, _ = compared(lambda model, x: nn.functional.dropout(x, 0.5, model.training))
    assert [event.differ for event in found] == [False]


def test_dropout_without_its_mode_draws() -> None:
    ((event,), _) = compared(lambda model, x: nn.functional.dropout(x, 0.5))
    assert (event.differ, event.cause) == (True, "")


def test_a_dropout_layer_made_in_each_call_is_named() -> None:
    ((event,), _) = compared(lambda model, x: nn.Dropout(0.5)(x))
    assert (event.differ, event.cause) == (True, "module")


def test_results_that_differ_for_the_same_seed_are_not_judged() -> None:
    found, skipped = compared(lambda model, x: x + time.perf_counter_ns() % 1_000_003)
    assert found == []
    assert [event.reason.partition(": ")[2] for event in skipped] == ["its results for the same batch and seed differ"]
