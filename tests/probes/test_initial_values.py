"""Weights with the random values that torch's layers begin with are distinguished from trained and loaded ones."""

import pytest
import torch
from torch import nn

from truestep.events import ParametersUnchanged, StateLoaded
from truestep.probes.optimizer.sampled_measures import is_initial
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
def test_other_initialisations_are_not_recognised_by_their_values(initialise):
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


DRAWING = (
    "normal_",
    "uniform_",
    "trunc_normal_",
    "xavier_normal_",
    "xavier_uniform_",
    "kaiming_normal_",
    "orthogonal_",
)


def initialised(initialise, *, through_data=False, after=lambda net: None):
    """Return the weights with first values, those that are loaded and those that keep them, of a part left out."""
    net = nn.Sequential(nn.Embedding(40, 12), nn.Linear(12, 2))
    with capture_events() as events:
        getattr(nn.init, initialise)(net[0].weight.data if through_data else net[0].weight)
        after(net)
        optimizer = torch.optim.SGD(net[1].parameters(), lr=0.1)
        for _ in range(4):
            optimizer.zero_grad()
            net(torch.randint(0, 40, (8,))).square().sum().backward()
            optimizer.step()
    random = [one.random for one in events if isinstance(one, ParametersUnchanged)][-1]
    return len(random), [(len(one.parameters), len(one.kept)) for one in events if isinstance(one, StateLoaded)]


@pytest.mark.parametrize("initialise", DRAWING)
def test_values_that_were_drawn_in_the_run_are_first_values(initialise):
    assert initialised(initialise) == (1, [])
    assert initialised(initialise, through_data=True) == (1, [])


def test_values_that_were_written_or_loaded_later_are_not():
    def written(net):
        net[0].weight.data.copy_(torch.linspace(0, 3, 480).reshape(40, 12))

    def loaded(net):
        net.load_state_dict({name: torch.ones_like(value) for name, value in net.state_dict().items()})

    assert initialised("xavier_normal_", after=written) == (0, [])
    assert initialised("xavier_normal_", after=loaded) == (0, [(3, 0)])
    assert initialised("ones_") == (0, [])


def test_a_load_of_the_values_that_were_drawn_changes_nothing():
    def again(net):
        net.load_state_dict(net.state_dict())

    assert initialised("xavier_normal_", after=again) == (1, [(3, 1)])


def test_the_memory_of_freed_weights_says_nothing():
    with capture_events():
        weight = torch.empty(40, 12)
        nn.init.xavier_normal_(weight)
        values, place = weight.clone(), weight.data_ptr()
        del weight
        others = [values.clone() for _ in range(50)]
        net = nn.Sequential(nn.Linear(12, 40))
        again = [one for one in others if one.data_ptr() == place]
        net[0].weight.data = (again or others)[0]
        optimizer = torch.optim.SGD([net[0].bias], lr=0.1)
        with capture_events() as events:
            for _ in range(4):
                optimizer.zero_grad()
                net(torch.randn(8, 12)).square().sum().backward()
                optimizer.step()
    assert [one.random for one in events if isinstance(one, ParametersUnchanged)][-1] == ()
