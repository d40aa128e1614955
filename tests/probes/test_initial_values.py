"""Weights with the random values that torch's layers begin with are distinguished from trained and loaded ones."""

import pytest
import torch
from torch import nn

from truestep.events import ParametersUnchanged
from truestep.probes.gradients.random_values import is_drawn, is_initial
from truestep.testing import capture_events

LAYERS = (nn.Linear(2, 32), nn.Linear(64, 3), nn.Conv2d(3, 8, 3), nn.Embedding(50, 8))


@pytest.mark.parametrize("layer", LAYERS, ids=str)
def test_weights_of_new_layers_are_random(layer):
    for seed in range(20):
        torch.manual_seed(seed)
        layer.reset_parameters()
        assert is_initial(layer.weight)


@pytest.mark.parametrize(
    "initialise",
    [nn.init.xavier_uniform_, nn.init.kaiming_normal_, nn.init.orthogonal_, nn.init.eye_, nn.init.zeros_],
    ids=lambda one: one.__name__,
)
def test_other_initialisations_are_not_recognised(initialise):
    weight = torch.empty(64, 64)
    initialise(weight)
    assert not is_initial(weight)


def test_weights_left_out_of_an_optimizer_are_random_until_they_move():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 2))
    optimizer = torch.optim.SGD(list(model.parameters())[2:], lr=0.1)
    with capture_events() as events:
        for _ in range(4):
            optimizer.zero_grad()
            model(torch.randn(4, 8)).sum().backward()
            optimizer.step()
    last = [one for one in events if isinstance(one, ParametersUnchanged)][-1]
    assert len(last.random) == 1
    assert set(last.random) <= set(last.parameters)
    assert len(last.moved) == 4


DRAWN = [
    nn.init.xavier_uniform_,
    nn.init.kaiming_normal_,
    nn.init.orthogonal_,
    lambda weight: nn.init.normal_(weight, std=0.02),
    lambda weight: nn.init.trunc_normal_(weight, std=0.02),
]


@pytest.mark.parametrize("initialise", DRAWN, ids=range(len(DRAWN)))
def test_values_of_any_initialisation_look_drawn(initialise):
    for seed, shape in enumerate([(64, 64), (200, 16), (32, 16, 3, 3)]):
        torch.manual_seed(seed)
        weight = torch.empty(shape)
        initialise(weight)
        assert is_drawn(weight)


def test_trained_weights_and_constants_do_not_look_drawn():
    torch.manual_seed(0)
    x = torch.randn(500, 64) @ torch.randn(64, 64) * torch.logspace(0, -2, 64)
    _, _, directions = torch.linalg.svd(x, full_matrices=False)
    trained = 0.02 * torch.randn(64, 64) + directions[:2].T @ torch.randn(2, 64) * 0.1
    for weight in (trained, torch.zeros(64, 64), torch.eye(64), torch.randn(64, 64) + 0.5, torch.randn(4, 4)):
        assert not is_drawn(weight)
    assert not is_drawn(torch.randn(64, 64).exp())
