"""Optimizers that are built again over the same parameters, with their values kept."""

import copy
from collections.abc import Callable

import pytest
import torch
from torch import nn

from truestep.events import FoldContinued, OptimizerBuilt, SchedulerBuilt
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


def one_pass(model: nn.Module, x: torch.Tensor) -> None:
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    for rows in x.split(2):
        optimizer.zero_grad()
        model(rows).sum().backward()
        optimizer.step()


def test_a_function_that_a_loop_over_epochs_calls_lasts_one_pass() -> None:
    model, x = nn.Linear(3, 1), torch.ones(8, 3)
    with capture_events() as events:
        for _ in range(3):
            one_pass(model, x)
        for task in range(3):
            one_pass(model, x + task)
    assert [event.one_pass for event in events if isinstance(event, OptimizerBuilt)] == [
        False,
        True,
        True,
        False,
        False,
        False,
    ]


def in_slices(model: nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor) -> None:
    for rows in x.split(2):
        optimizer.zero_grad()
        model(rows).sum().backward()
        optimizer.step()


def with_values(model: nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor) -> None:
    targets = model(x).detach() + 1
    for rows in torch.randperm(8).split(4):
        optimizer.zero_grad()
        (model(x[rows]) - targets[rows]).square().sum().backward()
        optimizer.step()


def test_a_pass_in_a_function_that_is_called_after_the_construction() -> None:
    model, x = nn.Linear(3, 1), torch.ones(8, 3)
    with capture_events() as events:
        for _ in range(3):
            optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
            in_slices(model, optimizer, x)
        for task in range(3):
            optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
            in_slices(model, optimizer, x + task)
        for _ in range(3):
            optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
            with_values(model, optimizer, x)
        for _ in range(3):
            optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
            in_slices(model, optimizer, x)
            in_slices(model, optimizer, x)
    made = [event.one_pass for event in events if isinstance(event, OptimizerBuilt)]
    assert made == [False, True, True] + [False] * 9


def fit(model: nn.Module, x: torch.Tensor, targets: torch.Tensor) -> None:
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    for rows in torch.randperm(8).split(4):
        optimizer.zero_grad()
        (model(x[rows]) - targets[rows]).square().sum().backward()
        optimizer.step()


def test_targets_that_the_model_makes_before_each_pass_are_another_task() -> None:
    model, x, y = nn.Linear(3, 1), torch.ones(8, 3), torch.ones(8, 1)
    with capture_events() as events:
        for _ in range(3):
            with torch.no_grad():
                values = model(x)
                targets = y + 0.9 * values
            optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
            for rows in torch.randperm(8).split(4):
                optimizer.zero_grad()
                (model(x[rows]) - targets[rows]).square().sum().backward()
                optimizer.step()
        for _ in range(3):
            targets = y + 0.9 * model(x).detach()
            fit(model, x, targets)
    assert not any(event.one_pass for event in events if isinstance(event, OptimizerBuilt))


def test_data_that_are_shuffled_or_measured_before_each_pass_are_the_same_task() -> None:
    model, x, y = nn.Linear(3, 1), torch.ones(8, 3), torch.ones(8, 1)
    with capture_events() as events:
        for _ in range(3):
            order = torch.randperm(8)
            x, y = x[order], y[order]
            size = model(x).abs().mean().item()
            optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
            for start in range(0, 8, 4):
                optimizer.zero_grad()
                ((model(x[start : start + 4]) - y[start : start + 4]) / max(size, 1)).square().sum().backward()
                optimizer.step()
        for epoch in range(3):
            x, y = x[order], y[order]
            fit(model, x, y)
    assert [event.one_pass for event in events if isinstance(event, OptimizerBuilt)] == [False, True, True] * 2


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


class KFold:
    """The class of scikit-learn, as far as its name and `split` go."""

    def split(self, rows: int) -> list[tuple[list[int], list[int]]]:
        return [(list(range(rows)), [fold]) for fold in range(3)]


def train(model: nn.Module, optimizer: torch.optim.Optimizer, steps: int = 3) -> None:
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.ones(2, 6)).square().sum().backward()
        optimizer.step()


def in_folds(
    begin: Callable[[nn.Module], nn.Module], *, late: bool = False, rate: float = 0.01, steps: int = 3
) -> list[FoldContinued]:
    """Return the folds that go on, of a loop that begins each before, or after, its optimizer is built."""
    torch.manual_seed(0)
    model: nn.Module = nn.Linear(6, 6)
    with capture_events() as events:
        for _, _ in enumerate(KFold().split(8)):
            model = model if late else begin(model)
            optimizer = torch.optim.Adam(model.parameters(), lr=rate)
            if late:
                begin(model)
            train(model, optimizer, steps)
    return [event for event in events if isinstance(event, FoldContinued)]


def reset(model: nn.Module) -> nn.Module:
    model.reset_parameters()  # type: ignore[operator]
    return model


def written(model: nn.Module) -> nn.Module:
    """Draw the weights again, past their version counters."""
    model.weight.data.uniform_(-0.4, 0.4)  # type: ignore[union-attr, operator]
    return model


FIRST = nn.Linear(6, 6).state_dict()


def loaded(model: nn.Module) -> nn.Module:
    model.load_state_dict(FIRST)
    return model


def test_folds_that_go_on_with_their_weights_are_emitted() -> None:
    assert len(in_folds(lambda model: model)) == 2
    assert len(in_folds(lambda model: model, rate=1.0)) == 2  # far from the first values


def test_folds_of_many_steps_are_seen_by_the_number_of_writes() -> None:
    """The last steps of a fold are not looked at, and the weights are far from their first values."""
    assert len(in_folds(lambda model: model, steps=150, rate=0.03)) == 2
    for begin in (reset, loaded, written):
        assert not in_folds(begin, steps=150, rate=0.03)


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("begin", [reset, loaded])
def test_folds_with_first_weights_are_not(begin: Callable[[nn.Module], nn.Module], *, late: bool) -> None:
    assert not in_folds(begin, late=late)
    assert not in_folds(begin, late=late, rate=1.0)


def test_folds_with_a_new_model_or_a_copy_are_not() -> None:
    assert not in_folds(lambda model: nn.Linear(6, 6))
    first = nn.Linear(6, 6)
    assert not in_folds(lambda model: copy.deepcopy(first))


def test_folds_by_a_variable_in_a_function_around_are_seen() -> None:
    def run(model: nn.Module) -> None:
        train(model, torch.optim.Adam(model.parameters(), lr=0.01))

    model, splitter = nn.Linear(6, 6), KFold()
    folds = list(splitter.split(8))
    with capture_events() as events:
        for _ in folds:
            run(model)
    assert sum(isinstance(event, FoldContinued) for event in events) == 2


def test_folds_of_which_one_part_is_not_read_only_cut_the_data() -> None:
    model = nn.Linear(6, 6)
    with capture_events() as events:
        for number, (_, shard) in enumerate(KFold().split(8)):
            train(model, torch.optim.Adam(model.parameters(), lr=0.01), steps=len(shard) + number)
        for rows, _ in KFold().split(8):
            train(model, torch.optim.Adam(model.parameters(), lr=0.01), steps=len(rows))
    assert not any(isinstance(event, FoldContinued) for event in events)
    with capture_events() as events:
        for rows, held in KFold().split(8):
            train(model, torch.optim.Adam(model.parameters(), lr=0.01), steps=len(rows) + len(held))
    assert sum(isinstance(event, FoldContinued) for event in events) == 2


def test_stages_within_folds_are_not_folds() -> None:
    model = nn.Linear(6, 6)
    with capture_events() as events:
        for _ in KFold().split(8):
            loaded(model)
            train(model, torch.optim.Adam(model.parameters(), lr=0.01))
            train(model, torch.optim.Adam(model.parameters(), lr=0.001))
        for _ in KFold().split(8):
            model = nn.Linear(6, 6)
            for rate in (0.01, 0.001):
                train(model, torch.optim.Adam(model.parameters(), lr=rate))
    assert not any(isinstance(event, FoldContinued) for event in events)


def test_a_loop_over_epochs_has_no_folds() -> None:
    model = nn.Linear(6, 6)
    with capture_events() as events:
        for _ in range(3):
            train(model, torch.optim.Adam(model.parameters(), lr=0.01))
        for _ in ["a", "b", "c"]:
            train(model, torch.optim.Adam(model.parameters(), lr=0.01))
    assert not any(isinstance(event, FoldContinued) for event in events)
