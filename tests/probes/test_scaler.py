"""GradScaler: a step is an attempt, and a skipped one is told as such."""

import torch
from torch import nn

from truestep.events import GradientsUnscaled, LossScaled, OptimizerStepped, ScalerBuilt, ScalerStepped, ScalerUpdated
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


def test_a_skip_is_told_and_its_gradients_are_used() -> None:
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
