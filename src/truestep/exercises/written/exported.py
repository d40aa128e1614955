"""Export a model, and compare before trusting it."""

import torch
from torch import nn


def exported(model: nn.Module, example: torch.Tensor) -> tuple[torch.export.ExportedProgram, float]:
    """Return the exported program of the model in eval mode, and its largest difference from the model on the example.

    The model is in the mode afterwards that it had before.
    """
    training = model.training
    model.eval()
    try:
        program = torch.export.export(model, (example,))
        with torch.no_grad():
            difference = (program.module()(example) - model(example)).abs().max().item()
    finally:
        model.train(training)
    return program, difference
