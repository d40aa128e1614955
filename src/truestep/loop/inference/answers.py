"""Predictions with labels and probabilities by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from truestep.errors import BadInputs

_SHOWN = 3


@dataclass(frozen=True)
class Answer:
    """The prediction for one input.

    Attributes:
        source: the file, with the place in it.
        output: of the model for this input, on the CPU.
        probabilities: of each class by name, most probable first; {} without classes.
    """

    source: str
    output: torch.Tensor
    probabilities: dict[str, float]

    @property
    def label(self) -> str | None:
        """The most probable class; None without classes."""
        return next(iter(self.probabilities), None)

    @property
    def probability(self) -> float | None:
        """The probability of `label`."""
        return next(iter(self.probabilities.values()), None)

    def __str__(self) -> str:
        if self.probabilities:
            shown = list(self.probabilities.items())[:_SHOWN]
            said = ", ".join(f"{name} {probability:.1%}" for name, probability in shown)
        else:
            numbers = self.output.flatten()
            said = ", ".join(map(_shown, numbers[:8].tolist())) + (" ..." if len(numbers) > 8 else "")
        return f"{self.source}: {said}"


def _shown(number: float) -> str:
    return f"{number:,.0f}" if 1e5 <= abs(number) < 1e15 else f"{number:.6g}"


def answers(sources: Sequence[str], outputs: torch.Tensor, classes: Sequence[str]) -> list[Answer]:
    """Return the predictions of a batch.

    Outputs of shape (batch, classes) are logits; outputs of shape (batch,) or (batch, 1) with two classes are the logit
    of the second one. Other outputs have no classes.

    Args:
        sources: of the inputs.
        outputs: of the model, shape (batch, ...).
        classes: names of the classes; empty without classes.

    Raises:
        BadInputs: the model has another number of outputs than there are classes, or not one for each input.

    Example:
        >>> print(answers(["shirt.png"], torch.tensor([[0.0, 2.0]]), ("coat", "shirt"))[0])
        shirt.png: shirt 88.1%, coat 11.9%
    """
    outputs = outputs.detach().cpu()
    if not outputs.dim() or len(outputs) != len(sources):
        raise BadInputs(
            f"the model returns shape {tuple(outputs.shape)} for {len(sources)} inputs",
            expected=f"expected ({len(sources)}, ...), one output for each input",
            remedy="pass outputs=, a function from the result of the model to one tensor",
        )
    values = outputs.float()
    if classes and outputs.dim() == 2 and outputs.shape[1] == len(classes):
        shares = values.softmax(dim=1)
    elif len(classes) == 2 and outputs.numel() == len(outputs):
        second = values.flatten().sigmoid()
        shares = torch.stack((1 - second, second), dim=1)
    elif classes and outputs.dim() <= 2:
        raise BadInputs(
            f"the model has {outputs.shape[1] if outputs.dim() == 2 else 1} outputs",
            expected=f"expected {len(classes)}, one logit for each class of the training: {', '.join(classes[:8])}",
            remedy="load the checkpoint of this model",
        )
    else:
        return [Answer(source, output, {}) for source, output in zip(sources, outputs, strict=True)]
    ranked = [sorted(zip(classes, row, strict=True), key=lambda pair: -pair[1]) for row in shares.tolist()]
    return [Answer(*each, dict(pairs)) for each, pairs in zip(zip(sources, outputs, strict=True), ranked, strict=True)]
