"""The clock of phases: every moment of a step belongs to one, and to the right one."""

from contextlib import ExitStack

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from truestep.experiments.instruments.timing import clock as clock_module
from truestep.experiments.instruments.timing.clock import PHASES, PhaseClock


@pytest.fixture
def clock(monkeypatch):
    """A clock that counts its readings as time."""
    ticks = iter(range(10**9))
    monkeypatch.setattr(clock_module.time, "perf_counter", lambda: float(next(ticks)))
    made = PhaseClock()
    made.steps = []
    made.on_step(made.steps.append)
    with ExitStack() as stack:
        made.install(stack)
        yield made


def model_and_optimizer():
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    return model, torch.optim.SGD(model.parameters(), lr=0.1)


def loader(count=6):
    return DataLoader(TensorDataset(torch.randn(count * 2, 4), torch.randint(0, 2, (count * 2,))), batch_size=2)


def spent(clock, number=-1):
    return {phase for phase in PHASES if clock.steps[number][phase]}


def test_a_plain_step_has_its_four_phases_and_a_batch(clock):
    model, optimizer = model_and_optimizer()
    for x, y in loader():
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert len(clock.steps) == 6
    assert spent(clock) == {"data", "forward", "backward", "optimizer", "other"}
    assert [step["batches"] for step in clock.steps] == [1] * 6
    assert clock.now == "other"


def test_a_pass_without_backward_is_evaluation_as_a_whole(clock):
    model, optimizer = model_and_optimizer()
    for _ in range(2):
        for x, y in loader(2):
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        model.eval()
        for x, _ in loader(3):
            with torch.no_grad():
                model(x)
        model.train()
    assert spent(clock, 1) == {"data", "forward", "backward", "optimizer", "other"}
    assert "evaluation" in spent(clock, 2)
    assert clock.steps[2]["batches"] == 1, "batches of evaluation do not belong to a step"
    assert clock.steps[2]["forward"] == clock.steps[1]["forward"]


def test_without_a_loader_a_model_in_eval_mode_is_evaluation_and_a_teacher_is_not(clock):
    model, optimizer = model_and_optimizer()
    teacher = nn.Linear(4, 2).eval()
    x = torch.randn(2, 4)
    for index in range(4):
        with torch.no_grad():
            target = teacher(x)
        F.mse_loss(model(x), target).backward()
        optimizer.step()
        if index == 2:
            model.eval()
            with torch.no_grad():
                model(x)
            model.train()
    assert ["evaluation" in spent(clock, index) for index in range(4)] == [False, False, False, True]


def test_a_teacher_beside_a_loader_is_forward(clock):
    model, optimizer = model_and_optimizer()
    teacher = nn.Linear(4, 2).eval()
    for x, _ in loader():
        with torch.no_grad():
            target = teacher(x)
        F.mse_loss(model(x), target).backward()
        optimizer.step()
    assert not any(step["evaluation"] for step in clock.steps)


def test_steps_are_those_of_the_first_optimizer_and_hold_all_batches_of_a_window(clock):
    model, optimizer = model_and_optimizer()
    other = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=0.1)
    for index, (x, y) in enumerate(loader(8)):
        F.cross_entropy(model(x), y).backward()
        if index % 4 == 3:
            optimizer.step()
            other.step()
    assert [step["batches"] for step in clock.steps] == [4, 4]


def test_a_closure_is_no_time_of_the_optimizer(clock):
    model, _ = model_and_optimizer()
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3)
    x, y = torch.randn(4, 4), torch.randint(0, 2, (4,))

    def closure():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        return loss

    for _ in range(2):
        optimizer.step(closure)
    assert clock.steps[0]["forward"] >= 3
    assert clock.steps[0]["backward"] >= 3
    assert clock.now == "other"


def test_a_step_in_a_hook_of_the_backward_pass_ends_with_the_pass(clock):
    parameter = nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([parameter], lr=0.1)

    def step(_):
        optimizer.step()
        optimizer.zero_grad()

    parameter.register_post_accumulate_grad_hook(step)
    for _ in range(3):
        parameter.sum().backward()
    assert len(clock.steps) == 3
    assert spent(clock) >= {"backward", "optimizer"}


def test_an_exception_inside_a_phase_leaves_the_clock_outside_of_it(clock):
    model, optimizer = model_and_optimizer()
    with pytest.raises(RuntimeError):
        model(torch.randn(2, 5))
    with pytest.raises(RuntimeError):
        optimizer.step(lambda: model(torch.randn(2, 5)))
    assert clock.now in ("other", "optimizer")
    for _ in range(2):
        model(torch.randn(2, 4)).sum().backward()
        optimizer.step()
    assert clock.now == "other"
    assert spent(clock) >= {"forward", "backward", "optimizer"}


def test_everything_is_as_it_was_when_the_clock_is_gone():
    before = nn.Module.__call__, DataLoader.__iter__, torch.optim.Optimizer.zero_grad, torch.amp.GradScaler.step
    with ExitStack() as stack:
        PhaseClock().install(stack)
        assert nn.Module.__call__ is not before[0]
    assert before == (
        nn.Module.__call__,
        DataLoader.__iter__,
        torch.optim.Optimizer.zero_grad,
        torch.amp.GradScaler.step,
    )


def test_a_compiled_model_is_timed_and_has_no_graph_break(clock):
    model, optimizer = model_and_optimizer()
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    for _ in range(2):
        compiled(torch.randn(2, 4)).sum().backward()
        optimizer.step()
    assert clock.steps[1]["forward"] > 0


def test_a_backward_pass_is_a_step_where_there_is_no_optimizer(monkeypatch):
    monkeypatch.setattr("truestep.experiments.running.inside.steps.is_any_alive", lambda: False)
    clock, steps = PhaseClock(), []
    clock.on_step(steps.append)
    model = nn.Linear(4, 2)
    with ExitStack() as stack:
        clock.install(stack)
        for x, y in loader(3):
            model.zero_grad()
            F.cross_entropy(model(x), y).backward()
            for p in model.parameters():
                p.data.add_(p.grad, alpha=-0.1)
        model_and_optimizer()
        F.cross_entropy(model(x), y).backward()
    assert len(steps) == 3, "where there is one, its steps count"
