"""How many values batch normalisation had, at sampled steps."""

import pytest
import torch
from torch import nn

from truestep.events import BatchStatisticsTaken
from truestep.testing import capture_events


def taken(model: nn.Module, *shapes: tuple[int, ...]) -> list[tuple[int, int, str]]:
    """Call a model with inputs of these shapes, with gradients; return layers, values and kind."""
    with capture_events() as events:
        for shape in shapes:
            model(torch.randn(shape))
    told = [event for event in events if isinstance(event, BatchStatisticsTaken)]
    return [(event.layers, event.values, event.kind) for event in told]


def test_samples_and_positions_are_counted_of_the_layer_that_has_most() -> None:
    flat = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.ReLU(), nn.BatchNorm1d(3))
    assert taken(flat, (2, 4), (5, 4), (40, 4)) == [(2, n, "BatchNorm1d") for n in (2, 5, 16)]
    wide = nn.Sequential(nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.Flatten(), nn.Linear(12, 4), nn.BatchNorm1d(4))
    assert taken(wide, (2, 1, 4, 4)) == [(2, 8, "BatchNorm2d")]


@pytest.mark.parametrize(
    "norm", [nn.LayerNorm(3), nn.BatchNorm1d(3, track_running_stats=False), nn.SyncBatchNorm(3).eval()]
)
def test_other_layers_are_not(norm: nn.Module) -> None:
    assert taken(nn.Sequential(nn.Linear(4, 3), norm), (2, 4)) == []


def test_frozen_statistics_and_evaluations_are_not() -> None:
    model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))
    model[1].eval()
    assert taken(model, (2, 4)) == []
    model.train()
    with torch.no_grad():
        assert taken(model, (2, 4)) == []


def test_a_call_that_raises_adds_nothing_to_the_next() -> None:
    class Raising(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.norm = nn.Linear(4, 3), nn.BatchNorm1d(3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = self.norm(self.layer(x))
            if len(x) == 9:
                raise ValueError("nine")
            return x

    model = Raising()
    with capture_events() as events:
        with pytest.raises(ValueError, match="nine"):
            model(torch.randn(9, 4))
        model(torch.randn(2, 4))
    assert [event.values for event in events if isinstance(event, BatchStatisticsTaken)] == [2]


def test_one_tensor_given_again_is_emitted_and_a_new_one_at_its_address_is_not() -> None:
    model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))
    x = torch.randn(6, 4)
    with capture_events() as events:
        for given in (lambda: x, lambda: x, lambda: x[:2], lambda: x[2:4]):
            model(given())
    assert [event.same_input for event in events if isinstance(event, BatchStatisticsTaken)] == [
        False,
        True,
        False,
        False,
    ]
