"""Checks of `diagnostics`: each question is answered for a healthy and a broken case."""

from __future__ import annotations

from types import ModuleType

import torch
from torch import nn


def _model() -> nn.Sequential:
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(), nn.Linear(4, 2))


def old_gradients(answer: ModuleType) -> None:
    """Old gradients"""
    model = _model()
    assert answer.has_old_gradients(model) is False, "a new model must have none: `grad` is None"
    model(torch.randn(5, 3)).sum().backward()
    assert answer.has_old_gradients(model) is True, "after a backward pass, there are some"
    model.zero_grad(set_to_none=False)
    assert answer.has_old_gradients(model) is False, "zeros add nothing: `zero_grad(set_to_none=False)` clears too"


def modes(answer: ModuleType) -> None:
    """Modes of all layers"""
    model = _model()
    assert answer.is_ready_for_evaluation(model) is False, "a new model must be in train mode"
    model.eval()
    assert answer.is_ready_for_evaluation(model) is True, "after `model.eval()`, all layers are in eval mode"
    model[2].train()
    assert answer.is_ready_for_evaluation(model) is False, "one Dropout was switched to train mode: ask each layer"


def places(answer: ModuleType) -> None:
    """Devices"""
    model, batch = _model(), (torch.zeros(5, 3), torch.zeros(5))
    _same(answer.devices(model, batch), {"cpu"}, "all is on the cpu")
    _same(answer.devices(model, (batch[0].to("meta"), batch[1])), {"cpu", "meta"}, "the inputs are on another device")
    _same(answer.devices(model, (batch[0], batch[1].to("meta"))), {"cpu", "meta"}, "the targets are on another device")
    model[1].running_mean = torch.zeros(4, device="meta")
    _same(answer.devices(model, batch), {"cpu", "meta"}, "the statistics of a normalisation are buffers")


def _same(got: object, true: set[str], reason: str) -> None:
    assert got == true, f"it must be {sorted(true)}, got {got}: {reason}"


def tape(answer: ModuleType) -> None:
    """Losses that can be learned from"""
    loss = _model()(torch.randn(5, 3)).square()
    assert answer.can_learn_from(loss.mean()) is True, "a mean over results of the model has a graph"
    assert answer.can_learn_from(loss) is False, "a loss per sample is not one number: `backward()` raises"
    assert answer.can_learn_from(loss.mean().detach()) is False, "a detached loss has no graph"
    assert answer.can_learn_from(torch.tensor(loss.mean().item())) is False, "`item()` leaves the graph behind"


CHECKS = (old_gradients, modes, places, tape)
