"""Remedies about frozen parameters, and anomaly detection: applied wherever they apply."""

from contextlib import ExitStack

import pytest
import torch
from torch import nn

from truestep.experiments.changes import CHANGES


@pytest.fixture
def install():
    with ExitStack() as stack:

        def install(name):
            change = CHANGES[name]()
            change.install(stack)
            return change

        yield install


def trainable(model):
    return [parameter.requires_grad for parameter in model.parameters()]


def test_an_attribute_of_a_module_freezes_it_and_thaws_what_it_froze(install):
    model = nn.Sequential(nn.Linear(1, 1), nn.Linear(1, 1))
    model[1].bias.requires_grad_(False)
    change = install("freeze-in-earnest")
    model.requires_grad = False
    assert (trainable(model), model.requires_grad, change.applied) == ([False] * 4, False, 3)
    model.requires_grad = True
    assert trainable(model) == [True, True, True, False]
    assert not hasattr(nn.Linear(1, 1), "requires_grad")


def test_a_misspelt_attribute_of_a_parameter_freezes_it(install):
    model = nn.Linear(1, 1)
    install("freeze-in-earnest")
    model.weight.require_grad = False
    assert trainable(model) == [False, True]


def test_a_class_that_has_the_attribute_for_itself_keeps_it(install):
    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.requires_grad = False
            self.layer = nn.Linear(1, 1)

        def forward(self, x):
            return self.layer(x) if self.requires_grad else x

    change = install("freeze-in-earnest")
    model = Own()
    model.requires_grad = False
    assert (trainable(model), change.applied) == ([True, True], 0)


def test_the_attribute_is_gone_when_the_change_is():
    with ExitStack() as stack:
        CHANGES["freeze-in-earnest"]().install(stack)
        model = nn.Linear(1, 1)
        model.requires_grad = False
    assert model.requires_grad is False
    assert "requires_grad" not in vars(nn.Module)
    assert "require_grad" not in vars(nn.Parameter)


def stepped(model, optimizer, frozen):
    """Take one step, freeze, and take another on the gradients that are there."""
    model(torch.ones(1, 1)).sum().backward()
    optimizer.step()
    frozen.requires_grad_(False)
    before = frozen.weight.clone()
    optimizer.step()
    return not frozen.weight.equal(before)


def test_a_gradient_from_before_the_freeze_moves_nothing(install):
    model = nn.Sequential(nn.Linear(1, 1), nn.Linear(1, 1))
    assert stepped(model, torch.optim.SGD(model.parameters(), 0.1), model[0])
    model = nn.Sequential(nn.Linear(1, 1), nn.Linear(1, 1))
    change = install("drop-frozen-gradients")
    assert not stepped(model, torch.optim.SGD(model.parameters(), 0.1), model[0])
    assert change.applied == 2


def test_a_gradient_of_zeros_moves_nothing(install):
    change = install("drop-frozen-gradients")
    model = nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, weight_decay=0.5)
    model(torch.ones(1, 1)).sum().backward()
    optimizer.zero_grad(set_to_none=False)
    before = model.requires_grad_(False).weight.clone()
    optimizer.step()
    assert (model.weight.equal(before), change.applied) == (True, 2)


def test_parameters_frozen_between_backward_and_step_are_moved(install):
    change = install("drop-frozen-gradients")
    model = nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(3):
        model.requires_grad_(True)
        model(torch.ones(1, 1)).sum().backward()
        before = model.requires_grad_(False).weight.clone()
        optimizer.step()
        assert not model.weight.equal(before)
    assert change.applied == 0


def test_gradients_of_frozen_parameters_that_are_set_by_hand_move_them(install):
    change = install("drop-frozen-gradients")
    model = nn.Linear(1, 1).requires_grad_(False)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(3):
        for parameter in model.parameters():
            if parameter.grad is None:
                parameter.grad = torch.ones_like(parameter)
            else:
                parameter.grad.fill_(1.0)
        before = model.weight.clone()
        optimizer.step()
        assert not model.weight.equal(before)
    assert change.applied == 0


def test_anomaly_detection_stays_off(install):
    change = install("no-anomaly-mode")
    torch.autograd.set_detect_anomaly(True)
    assert not torch.is_anomaly_enabled()
    with pytest.warns(UserWarning, match="Anomaly"), torch.autograd.detect_anomaly():
        assert not torch.is_anomaly_enabled()
    torch.autograd.set_detect_anomaly(False)
    assert change.applied == 2
