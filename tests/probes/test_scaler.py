"""GradScaler: a step is an attempt, and a skipped one has its event."""

from collections.abc import Callable

import torch
from torch import nn

from truestep.events import (
    GradientScaleRead,
    GradientsUnscaled,
    LossScaled,
    OptimizerStepped,
    ScalerBuilt,
    ScalerStepped,
    ScalerUpdated,
)
from truestep.testing import capture_events

X = torch.randn(8, 4)


def test_a_window_with_a_scaler() -> None:
    model = nn.Linear(4, 2)
    with capture_events() as events:
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
        scaler.scale(model(X).sum()).backward()
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
    kinds = [type(event) for event in events]
    wanted = [ScalerBuilt, LossScaled, GradientsUnscaled, OptimizerStepped, ScalerStepped, ScalerUpdated]
    assert [kind for kind in kinds if kind in wanted] == wanted
    (attempt,) = (event for event in events if isinstance(event, ScalerStepped))
    (step,) = (event for event in events if isinstance(event, OptimizerStepped))
    assert (attempt.skipped, step.scaler) == (False, True)


def test_a_skip_is_emitted_and_its_gradients_are_used() -> None:
    model = nn.Linear(4, 2)
    with capture_events() as events:
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
        for factor in (float("inf"), 1.0):
            scaler.scale(model(X).sum() * factor).backward()
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
    assert [event.skipped for event in events if isinstance(event, ScalerStepped)] == [True, False]
    steps = [event for event in events if isinstance(event, OptimizerStepped)]
    assert [(step.fresh, step.mixed) for step in steps] == [(2, 0)]
    assert not any(isinstance(event, GradientsUnscaled) for event in events)


def test_a_scaler_that_is_off_is_not_there() -> None:
    model = nn.Linear(4, 2)
    with capture_events() as events:
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        scaler = torch.amp.GradScaler("cpu", enabled=False)
        scaler.scale(model(X).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
    assert not any(isinstance(event, ScalerBuilt | ScalerStepped | LossScaled) for event in events)
    assert [event.scaler for event in events if isinstance(event, OptimizerStepped)] == [False]


def read(script: Callable[[nn.Module, torch.optim.Optimizer, torch.amp.GradScaler], None]) -> list[GradientScaleRead]:
    """Return the events about the scale of gradients, step by step."""
    model = nn.Linear(4, 2)
    with capture_events() as events:
        optimizer = torch.optim.SGD(model.parameters(), 1e-3)
        scaler = torch.amp.GradScaler("cpu", init_scale=64.0)
        for _ in range(3):
            optimizer.zero_grad()
            script(model, optimizer, scaler)
    return [event for event in events if isinstance(event, GradientScaleRead)]


def test_the_tape_tells_scaled_losses_from_others() -> None:
    def mixed(model: nn.Module, optimizer: torch.optim.Optimizer, scaler: torch.amp.GradScaler) -> None:
        (0.5 * scaler.scale(model(X).sum()) + scaler.scale(model(X).mean())).backward()
        scaler.scale(model(X).sum())
        model(X).sum().backward()
        scaler.step(optimizer)
        scaler.update()

    told = read(mixed)
    assert len(told) == 3
    for event in told:
        assert event.scaler
        assert event.late is None
        assert event.plain is not None
        assert event.scaled is not None
        assert event.plain.line == event.scaled.line + 2


def test_a_backward_after_unscale_is_late_only_where_its_loss_is_scaled() -> None:
    def two(factor: float) -> list[GradientScaleRead]:
        def late(model: nn.Module, optimizer: torch.optim.Optimizer, scaler: torch.amp.GradScaler) -> None:
            scaler.scale(model(X).sum()).backward()
            scaler.unscale_(optimizer)
            second = model(X).sum()
            (scaler.scale(second) if factor else second).backward()
            scaler.step(optimizer)
            scaler.update()

        return read(late)

    assert [event.late is not None for event in two(1.0)] == [True] * 3
    assert [(event.late, event.plain) for event in two(0.0)] == [(None, None)] * 3


def test_gradients_unscaled_by_hand_are_not_emitted() -> None:
    def by_hand(model: nn.Module, optimizer: torch.optim.Optimizer, scaler: torch.amp.GradScaler) -> None:
        scaler.scale(model(X).sum()).backward()
        for parameter in model.parameters():
            assert parameter.grad is not None
            parameter.grad.data.div_(scaler.get_scale())
        optimizer.step()

    assert read(by_hand) == []


def test_a_step_past_the_scaler_is_emitted() -> None:
    def past(model: nn.Module, optimizer: torch.optim.Optimizer, scaler: torch.amp.GradScaler) -> None:
        scaler.scale(model(X).sum()).backward()
        optimizer.step()

    assert [(event.scaler, event.scaled is not None) for event in read(past)] == [(False, True)] * 3
