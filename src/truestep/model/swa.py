"""An equal average of weights: stochastic weight averaging."""

from __future__ import annotations

from torch import nn

from truestep.model.average import Average


class SWA(Average):
    """The equal average of the weights at each update.

    Buffers are copied: the statistics of BatchNorm belong to the weights of the last update, not to the average, until
    `update_bn()` computes them again.

    Args:
        model: the trained model, on its device.

    Raises:
        BadPart: the model cannot be copied.

    Source: Izmailov et al., Averaging Weights Leads to Wider Optima and Better Generalization (arXiv:1803.05407).

    Example:
        >>> model = nn.Linear(1, 1, bias=False)
        >>> swa = SWA(model)
        >>> for value in (1.0, 2.0, 6.0):
        ...     weight = nn.init.constant_(model.weight, value)
        ...     swa.update()
        >>> swa.model.weight.item()
        3.0
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__(model, statistics=False)

    def _share(self) -> float:
        return 1 / (self.updates + 1)
