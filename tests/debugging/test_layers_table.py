"""The printed tables of an inspected step."""

import torch
from torch import nn

from truestep.debugging import inspect


def test_a_parameter_without_a_gradient_is_told_apart_from_a_frozen_one():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    model.register_parameter("unused", nn.Parameter(torch.ones(3)))
    model[0].bias.requires_grad = False
    with inspect(model) as seen:
        model(torch.ones(4, 2)).sum().backward()
    rows = {line.split()[0]: line.split() for line in str(seen).splitlines() if line.strip()}
    assert "none" in rows["unused"]
    assert "frozen" in rows["0.bias"]
    assert not {"none", "frozen"} & {*rows["1.bias"]}
    assert "4" in rows["1.bias"]
