"""Remedies that are applied at the lines of findings: their effect there, and none elsewhere."""

import math
import os
from contextlib import ExitStack
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.optim import lr_scheduler as schedules
from torch.utils.data import DataLoader, TensorDataset

from truestep.experiments.changes import CHANGES
from truestep.experiments.changes.parts.aimed import aim_of

SOURCE = Path(__file__).read_text(encoding="utf-8").splitlines()
EVERY = "call `schedule.step()` after every `optimizer.step()`"
EPOCH = "call `schedule.step()` once per epoch, after the loop over batches"


@pytest.fixture
def stack():
    with ExitStack() as stack:
        yield stack


def aimed(stack, name, mark, help=""):
    """Install a change at the lines of this file that end with a mark."""
    lines = [number for number, line in enumerate(SOURCE, 1) if line.endswith(f"# {mark}")]
    assert lines
    change = CHANGES[name](aims=[aim_of([(__file__, line)], help, os.getcwd()) for line in lines])
    change.install(stack)
    return change


def modes(model):
    return [part.training for part in model.modules()]


class Spy(nn.Module):
    """Tells in which modes it was called."""

    def __init__(self, *parts):
        super().__init__()
        self.parts = nn.ModuleList(parts)
        self.seen = []

    def forward(self, x):
        self.seen.append((self.training, torch.is_grad_enabled()))
        if x.isnan().any():
            raise ValueError("no number")
        for part in self.parts:
            x = part(x)
        return x


def test_an_evaluation_runs_in_eval_mode_and_every_part_gets_its_mode_back(stack):
    change = aimed(stack, "evaluate-in-eval-mode", "evaluates")
    model = Spy(nn.Dropout(0.5), nn.BatchNorm1d(3).eval(), nn.Linear(3, 3))
    before, x = modes(model), torch.randn(4, 3)
    with torch.no_grad():
        model(x)
        model(x)  # evaluates
        assert modes(model) == before
        with pytest.raises(ValueError, match="no number"):
            model(x * torch.nan)  # evaluates
    assert modes(model) == before
    model(x)  # evaluates
    assert [training for training, _ in model.seen] == [True, False, False, True]
    assert change.applied == 2


def test_an_evaluation_records_no_graph_and_gradients_are_on_again_after_it(stack):
    change = aimed(stack, "evaluate-without-grad", "records")
    model, x = Spy(nn.Linear(3, 3)).eval(), torch.randn(4, 3)
    out = model(x)  # records
    assert not out.requires_grad
    assert torch.is_grad_enabled()
    with pytest.raises(ValueError, match="no number"):
        model(x * torch.nan)  # records
    assert torch.is_grad_enabled()
    assert model(x).requires_grad
    assert model.train()(x).requires_grad  # records
    assert change.applied == 2


def test_a_training_call_switches_gradients_on_until_the_script_leaves_its_context(stack):
    change = aimed(stack, "train-with-grad", "trains")
    model, x = Spy(nn.Linear(3, 3)), torch.randn(4, 3)
    with torch.no_grad():
        assert not model(x).requires_grad
        model(x).sum().requires_grad_().backward()  # trains
        assert torch.is_grad_enabled()
    assert model.parts[0].weight.grad.any()
    with torch.no_grad():
        model.eval()(x)  # trains
        assert not torch.is_grad_enabled()
    with torch.inference_mode():
        model.train()(x)  # trains
    assert change.applied == 1


def test_the_modes_of_training_come_back_and_what_was_frozen_in_eval_mode_stays(stack):
    change = aimed(stack, "restore-train-mode", "goes on")
    model, x = Spy(nn.Dropout(0.5), nn.BatchNorm1d(3), nn.Linear(3, 3)), torch.randn(4, 3)
    model.parts[1].eval()
    frozen = modes(model)
    for _ in range(3):
        model(x)  # goes on
        assert modes(model) == frozen
        model.eval()
        with torch.no_grad():
            model(x)
        assert not any(modes(model))
    assert change.applied == 2


def test_a_model_that_always_trains_in_eval_mode_does_so(stack):
    change = aimed(stack, "restore-train-mode", "in eval mode")
    model = Spy(nn.Dropout(0.5)).eval()
    model(torch.randn(4, 3))  # in eval mode
    assert (change.applied, modes(model)) == (0, [False] * 3)


class Dropping(nn.Module):
    def forward(self, x):
        return nn.functional.dropout(x, 0.5)  # drops


def test_dropout_by_a_function_follows_the_mode_of_its_module(stack):
    change = aimed(stack, "dropout-by-mode", "drops")
    model, x = Dropping(), torch.ones(100)
    assert not model(x).equal(x)
    assert change.applied == 0
    assert model.eval()(x).equal(x)
    assert change.applied == 1
    assert not nn.functional.dropout(x, 0.5).equal(x)


class Noting(nn.Module):
    def forward(self, x, width=2):
        settings = locals()
        return nn.functional.dropout(x, 0.5), settings  # drops, and notes


def test_what_locals_returned_stays_as_it_is_where_a_remedy_looks(stack):
    aimed(stack, "dropout-by-mode", "drops, and notes")
    x = torch.ones(3)
    _, settings = Noting().eval()(x)
    assert set(settings) == {"self", "x", "width"}


def test_a_state_dict_is_a_copy_where_it_was_found_and_whole(stack):
    change = aimed(stack, "copy-state", "keeps")
    model = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.BatchNorm1d(2)))
    live, kept = model.state_dict(), model.state_dict()
    kept = model.state_dict()  # keeps
    assert list(kept) == list(live)
    assert kept._metadata == live._metadata
    nn.init.zeros_(model[0].weight)
    assert not live["0.weight"].any()
    assert kept["0.weight"].any()
    assert change.applied == 1


def test_a_graph_is_freed_where_it_was_retained_for_nothing(stack):
    change = aimed(stack, "free-graph", "retains")
    x = torch.ones(3, requires_grad=True)
    (other := x.exp().sum()).backward(retain_graph=True)
    other.backward()
    (loss := x.exp().sum()).backward(retain_graph=True)  # retains
    with pytest.raises(RuntimeError, match="second time"):
        loss.backward()
    (gradient,) = torch.autograd.grad(x.exp().sum(), x, create_graph=True)  # retains
    gradient.sum().backward()
    assert change.applied == 1


def test_a_loss_that_is_kept_has_no_graph_and_one_that_is_still_needed_keeps_it(stack):
    change = aimed(stack, "cut-loss", "anything")  # anything
    x = torch.ones(3, requires_grad=True)
    losses = []
    for _ in range(3):
        loss = x.exp().sum()
        loss.backward()
        losses.append(loss)
    assert all(loss.grad_fn is None and float(loss) == pytest.approx(3 * math.e) for loss in losses)
    kept = x.exp().sum()
    kept.backward(retain_graph=True)
    kept.backward()
    assert change.applied == 4
    view = torch.stack([x.exp().sum(), x.sum()])[0]
    view.backward()  # cannot be detached in place: left alone
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    loss = x.exp().sum()
    scaler.scale(loss).backward()
    assert loss.grad_fn is None


def test_what_is_carried_to_the_next_step_comes_without_its_graph(stack):
    change = aimed(stack, "detach-carried", "carries")
    cell, carried = nn.LSTM(1, 2), None
    for number in range(4):
        output, carried = cell(torch.randn(5, 1, 1), carried)
        output.sum().backward(retain_graph=True)  # carries
        assert change.applied == 2 * number
    features = nn.Linear(1, 3)(torch.randn(2, 1))
    nn.Linear(3, 1)(features).sum().backward()
    assert change.applied == 6


def optimizer_of(model=None, lr=1.0):
    return torch.optim.SGD((model or nn.Linear(1, 1)).parameters(), lr=lr)


def rate(optimizer):
    return optimizer.param_groups[0]["lr"]


def test_a_schedule_waits_for_the_first_step_of_its_optimizer(stack):
    change = aimed(stack, "schedule-after-step", "too early")
    optimizer = optimizer_of()
    schedule, seen = schedules.ExponentialLR(optimizer, 0.5), []
    for _ in range(4):
        schedule.step()  # too early
        seen.append(rate(optimizer))
        optimizer.step()
    assert (seen, change.applied) == ([1, 0.5, 0.25, 0.125], 1)


@pytest.mark.filterwarnings("ignore:Detected call")
def test_a_schedule_that_was_resumed_takes_its_step(stack):
    change = aimed(stack, "schedule-after-step", "resumed")
    schedule = schedules.ExponentialLR(optimizer_of(), 0.5)
    schedule.load_state_dict(schedule.state_dict() | {"last_epoch": 3})
    schedule.step()  # resumed
    assert (schedule.last_epoch, change.applied) == (4, 0)


@pytest.mark.parametrize("nested", [False, True])
def test_a_second_step_of_a_schedule_is_left_out(stack, nested):
    change = aimed(stack, "schedule-once", "again")
    optimizer = optimizer_of()
    schedule, seen = schedules.ExponentialLR(optimizer, 0.5), []
    if nested:
        schedule = schedules.ChainedScheduler([schedule])
    for _ in range(3):
        optimizer.step()
        schedule.step()
        seen.append(rate(optimizer))
        schedule.step()  # again
    assert (seen, change.applied) == ([0.5, 0.25, 0.125], 3)


@pytest.mark.filterwarnings("ignore:Detected call")
def test_steps_that_bring_a_schedule_to_where_a_run_stopped_are_taken(stack):
    change = aimed(stack, "schedule-once", "forward")
    optimizer = optimizer_of()
    schedule = schedules.ExponentialLR(optimizer, 0.5)
    for _ in range(3):
        schedule.step()  # forward
    assert (rate(optimizer), change.applied) == (0.125, 0)


@pytest.mark.parametrize(("batches", "workers"), [(4, 0), (3, 0), (4, 1)])
def test_a_schedule_of_epochs_is_stepped_when_a_pass_is_over(stack, batches, workers):
    change = aimed(stack, "pace-schedule", "too often", EPOCH)
    optimizer, seen = optimizer_of(), []
    schedule = schedules.ExponentialLR(optimizer, 0.5)
    loader = DataLoader(TensorDataset(torch.ones(4)), num_workers=workers, persistent_workers=bool(workers))
    held_out = DataLoader(TensorDataset(torch.ones(2)))
    for _ in range(3):
        for number, _ in enumerate(loader):
            optimizer.step()
            next(iter(held_out))
            schedule.step()  # too often
            seen.append(rate(optimizer))
            if number + 1 == batches:
                break
    rates = [0.5**epoch for epoch in range(3) for _ in range(batches)]
    assert (seen, change.applied) == (rates, 3 * batches)
    assert rate(optimizer) == (0.125 if not workers else rate(optimizer))


def test_a_schedule_of_epochs_without_a_loader_is_left_alone(stack):
    change = aimed(stack, "pace-schedule", "no loader", EPOCH)
    optimizer = optimizer_of()
    schedule = schedules.ExponentialLR(optimizer, 0.5)
    for _ in range(3):
        optimizer.step()
        schedule.step()  # no loader
    assert (rate(optimizer), change.applied) == (0.125, 0)


@pytest.mark.parametrize("steps_itself", [False, True])
def test_a_schedule_of_steps_is_stepped_after_each_of_them(stack, steps_itself):
    change = aimed(stack, "pace-schedule", "too seldom", EVERY)
    optimizer, other = optimizer_of(), optimizer_of()
    parts = schedules.ConstantLR, schedules.ExponentialLR
    schedule = schedules.SequentialLR(optimizer, [part(optimizer, 0.5) for part in parts], [2])  # too seldom
    schedules.ExponentialLR(other, 0.5)
    seen = []
    for number in range(4):
        seen.append(rate(optimizer))
        optimizer.step()
        other.step()
        if steps_itself and number == 3:
            schedule.step()
    assert (seen, rate(other), change.applied) == ([0.5, 0.5, 1, 0.5], 1, 4)


def test_a_help_that_asks_for_another_schedule_changes_nothing(stack):
    change = aimed(stack, "pace-schedule", "as it is", "set the length of `schedule` to the number of its steps")
    optimizer = optimizer_of()
    schedule = schedules.ExponentialLR(optimizer, 0.5)  # as it is
    for _ in DataLoader(TensorDataset(torch.ones(3))):
        optimizer.step()
        schedule.step()  # as it is
    assert (rate(optimizer), change.applied) == (0.125, 0)


@pytest.mark.parametrize(("mode", "expected"), [("min", [2.0, 2.0]), ("max", [3.0, 2.0, 1.0] * 2)])
def test_a_plateau_schedule_gets_the_mean_of_an_epoch(stack, mode, expected, monkeypatch):
    given, step = [], schedules.ReduceLROnPlateau.step
    monkeypatch.setattr(
        schedules.ReduceLROnPlateau, "step", lambda s, metrics: (given.append(metrics), step(s, metrics))
    )
    change = aimed(stack, "plateau-by-epoch", "loss of a batch")
    schedule = schedules.ReduceLROnPlateau(optimizer_of(), mode=mode)
    for _ in range(2):
        for (loss,) in DataLoader(TensorDataset(torch.tensor([3.0, 2.0, 1.0]))):
            schedule.step(loss)  # loss of a batch
    assert ([float(one) for one in given], change.applied) == (expected, 6 if mode == "min" else 0)


def test_a_module_is_called_with_its_hooks_where_its_forward_was(stack):
    change = aimed(stack, "call-module", "past the hooks")
    model, calls, x = nn.Sequential(nn.Linear(2, 2)), [], torch.ones(1, 2)
    model.register_forward_hook(lambda *_: calls.append(1))
    model.forward(x)
    assert not calls
    model.forward(x)  # past the hooks
    assert (calls, change.applied) == ([1], 1)
    model(x)  # past the hooks
    assert (len(calls), change.applied) == (2, 1)


@pytest.mark.slow
def test_a_model_whose_forward_is_reached_is_compiled_whole(stack):
    aimed(stack, "call-module", "past the hooks")
    model, x = nn.Sequential(nn.Linear(2, 2)), torch.ones(1, 2)
    model.register_forward_hook(lambda *_: None)
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    assert compiled(x).equal(model(x))


def test_the_line_of_a_call_is_not_that_of_the_calls_inside_of_it(stack):
    change = aimed(stack, "evaluate-in-eval-mode", "outermost")
    inner = Spy(nn.Dropout(0.5))
    outer = Spy(inner).eval()
    inner.train()
    with torch.no_grad():
        outer(torch.ones(2))  # outermost
    assert (inner.seen, change.applied) == ([(True, False)], 0)


@pytest.mark.parametrize("name", [name for name, change in CHANGES.items() if hasattr(change, "aim")])
def test_without_a_finding_nothing_is_touched(name):
    hooks = nn.modules.module._global_forward_pre_hooks
    before = [vars(nn.Module).copy(), vars(torch.optim.lr_scheduler.LRScheduler).copy(), dict(hooks)]
    with ExitStack() as stack:
        CHANGES[name]().install(stack)
        assert [vars(nn.Module), vars(torch.optim.lr_scheduler.LRScheduler), dict(hooks)] == before
