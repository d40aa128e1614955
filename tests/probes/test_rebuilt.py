"""Optimizers that are built again over the same parameters, with their values kept."""

from collections.abc import Callable

import torch
from torch import nn

from truestep.events import OptimizerBuilt, SchedulerBuilt
from truestep.testing import capture_events


def built(between: Callable[[nn.Module], object], steps: int = 2) -> list[OptimizerBuilt]:
    """Return the optimizers that a loop builds, with a call before each."""
    torch.manual_seed(0)
    model = nn.Linear(3, 1)
    with capture_events() as events:
        for _ in range(4):
            between(model)
            optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
            for _ in range(steps):
                optimizer.zero_grad()
                model(torch.ones(2, 3)).sum().backward()
                optimizer.step()
    return [event for event in events if isinstance(event, OptimizerBuilt)]


def nothing(model: nn.Module) -> None:
    """Leave the weights alone."""


def test_each_replaces_the_one_before() -> None:
    made = built(nothing)
    assert [event.replaces for event in made] == [None, 1, 2, 3]
    assert all(event.remembers for event in made)


def test_one_for_each_pass_over_slices_is_distinguished_from_one_for_each_task() -> None:
    model, x = nn.Linear(3, 1), torch.ones(8, 3)
    with capture_events() as events:
        for _ in range(3):
            optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
            for rows in torch.randperm(8).split(4):
                model(x[rows]).sum().backward()
                optimizer.step()
    assert [event.one_pass for event in events if isinstance(event, OptimizerBuilt)] == [False, True, True]
    assert not any(event.one_pass for event in built(nothing))


def test_weights_that_are_loaded_are_another_beginning() -> None:
    state = nn.Linear(3, 1).state_dict()
    assert {event.replaces for event in built(lambda model: model.load_state_dict(state))} == {None}


def test_weights_that_are_written_past_the_version_are_seen_from_the_second_time_on() -> None:
    def write(model: nn.Module) -> None:
        for parameter in model.parameters():
            parameter.data.zero_()

    assert [event.replaces for event in built(write)][2:] == [None, None]


def test_plain_sgd_remembers_nothing() -> None:
    model = nn.Linear(3, 1)
    with capture_events() as events:
        torch.optim.SGD(model.parameters(), lr=0.1)
        torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    assert [event.remembers for event in events if isinstance(event, OptimizerBuilt)] == [False, True]


def test_a_schedule_that_no_line_steps() -> None:
    with capture_events() as events:
        decay = torch.optim.lr_scheduler.StepLR(torch.optim.SGD(nn.Linear(3, 1).parameters(), lr=0.1), 3)
        later = torch.optim.lr_scheduler.StepLR(torch.optim.SGD(nn.Linear(3, 1).parameters(), lr=0.1), 3)
    if decay.last_epoch:
        later.step()
    made = [event for event in events if isinstance(event, SchedulerBuilt)]
    assert [(event.name, event.called) for event in made] == [("decay", False), ("later", True)]
