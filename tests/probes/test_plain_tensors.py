"""Tensors in plain attributes that stand for weights."""

import torch
from torch import nn

from truestep.events import PlainTensorKept
from truestep.testing import capture_events


class Mixed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.token, self.pos_embed = torch.zeros(4), 0.1 * torch.randn(4)
        self.weight, self.B = torch.tensor([1.0, 2.0, 1.0, 1.0]), torch.randn(4)
        self.unused_query, self.fixed_weight = torch.randn(4), torch.randn(4)
        self.factors = {"a": torch.randn(4, requires_grad=True), "b": torch.randn(4, requires_grad=True)}
        self.parts = [nn.Parameter(torch.ones(4)), torch.ones(4)]
        self.state_weight = torch.randn(4)
        self.layer = nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.state_weight = self.state_weight * 0.9
        x = x + self.token + self.pos_embed + self.weight + self.B + self.fixed_weight + self.state_weight
        return self.layer(x * self.factors["a"] * self.factors["b"] * self.parts[0] * self.parts[1])


def test_which_tensors_are_emitted_and_when() -> None:
    model = Mixed()
    optimizer = torch.optim.SGD([*model.parameters(), model.factors["b"]], 0.01)
    with capture_events() as events:
        for step in range(12):
            optimizer.zero_grad()
            model(torch.randn(3, 4)).square().mean().backward()
            optimizer.step()
            kept = [event for event in events if isinstance(event, PlainTensorKept)]
            assert bool(kept) == (step >= 10)
    assert {(event.name, event.gradient) for event in kept} == {
        ("token", False),
        ("pos_embed", False),
        ("factors['a']", True),
        ("parts[0]", True),
    }
    assert {event.site.line for event in kept if event.site is not None} == {13, 16, 17}
