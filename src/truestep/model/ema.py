"""An exponential moving average of a model's weights."""

from __future__ import annotations

import torch
from torch import nn

from truestep.errors import BadPart, BadSettings
from truestep.model.average import Average


class EMA(Average):
    """The exponential moving average of a model's weights.

    It starts from the weights at its creation; each update sets it to `decay * average + (1 - decay) * weights`. The
    running statistics of BatchNorm are averaged in the same way; other buffers are copied.

    Args:
        model: the trained model, on its device.
        decay: decay rate of the average, in [0, 1): 0.999 averages over about 1,000 updates.
        warmup: True for a lower decay in the first updates, `min(decay, (1 + updates) / (10 + updates))`, so that the
            average forgets its initial weights.

    Raises:
        BadSettings: `decay` is out of range.
        BadPart: the model cannot be copied, or the dtype of its weights is too coarse for the average: a bfloat16
            number plus a thousandth of itself is rounded to the same number.

    Sources: Polyak and Juditsky (1992); Tarvainen and Valpola (arXiv:1703.01780); the warm-up is that of TensorFlow's
    `ExponentialMovingAverage`.

    Example:
        >>> model = nn.Linear(1, 1, bias=False)
        >>> ema = EMA(model, decay=0.5)
        >>> before = model.weight.item()
        >>> nn.init.constant_(model.weight, before + 2.0) and None
        >>> ema.update()
        >>> round(ema.model.weight.item() - before, 4), list(ema.model.state_dict())
        (1.0, ['weight'])
    """

    def __init__(self, model: nn.Module, decay: float = 0.999, *, warmup: bool = False) -> None:
        number = isinstance(decay, int | float) and not isinstance(decay, bool)
        if not number or not 0 <= decay < 1:
            raise BadSettings(f"decay must be a number in [0, 1), got {decay!r}", remedy="pass decay=0.999")
        super().__init__(model, statistics=True)
        self.decay = decay
        self.warmup = warmup
        for name, parameter in self.source.named_parameters():
            if parameter.is_floating_point() and torch.finfo(parameter.dtype).eps > 1 - decay:
                kind = str(parameter.dtype).removeprefix("torch.")
                raise BadPart(
                    f"{name} is {kind}, which rounds away updates of {1 - decay:.1g} of a change",
                    expected=f"expected a dtype with eps <= 1 - decay, got {torch.finfo(parameter.dtype).eps:.1g}",
                    remedy='keep the weights in float32 and pass precision="bf16" to Run, or lower decay',
                )

    def _share(self) -> float:
        if not self.warmup:
            return 1 - self.decay
        return 1 - min(self.decay, (1 + self.updates) / (10 + self.updates))
