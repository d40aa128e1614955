"""Checks of `exported`: the program is that of the model in eval mode, and was compared."""

from __future__ import annotations

from types import ModuleType

import torch
from torch import nn


def _model() -> tuple[nn.Module, torch.Tensor]:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 2)), torch.randn(3, 4)


def program(answer: ModuleType) -> None:
    """It returns a program and a number"""
    model, x = _model()
    got = answer.exported(model, x)
    assert isinstance(got, tuple), f"it must be a tuple of a program and a number, got {type(got).__name__}"
    kind = type(got[0]).__name__
    assert isinstance(got[0], torch.export.ExportedProgram), f"the first must be an ExportedProgram, got {kind}"
    assert isinstance(got[1], float), f"the second must be a float, got {type(got[1]).__name__}"
    assert 0 <= got[1] < 1e-4, f"the difference on the example must be about 0, got {got[1]:.3g}"


def equal(answer: ModuleType) -> None:
    """On new inputs, the program equals the model in eval mode"""
    model, x = _model()
    made = answer.exported(model, x)[0].module()
    new = torch.randn(3, 4)
    model.eval()
    assert torch.allclose(made(new), model(new), atol=1e-5), "dropout was exported too: export in eval mode"


def restored(answer: ModuleType) -> None:
    """The model has the mode that it had before"""
    for training in (True, False):
        model, x = _model()
        model.train(training)
        answer.exported(model, x)
        assert model.training is training, f"model.training was {training}, and must be so afterwards"


CHECKS = (program, equal, restored)
