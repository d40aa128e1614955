"""Losses of an evaluation in nats, by the function of torch that computed them.

They stay on their device until they are read, after the evaluation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from truestep.probes.context.values import has_values

_MOST = 1024
_MOST_PARTS = 3
"""Equal parts of the losses: splits that one function evaluates one after the other."""


@dataclass(slots=True)
class _Loss:
    """A loss without gradients: its value on the device, and the number of its targets, if it is their sum."""

    value: Any
    targets: Any
    summed: bool
    loader: int | None


class Likelihood:
    """Collects the losses of an evaluation.

    Args:
        torch: the module.
    """

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._losses: list[_Loss] = []
        self._whole = True

    def computed(self, value: Any, target: Any, ignored: int, reduction: str, loader: int | None) -> None:
        """Enter the result of a loss on classes.

        Args:
            value: the result.
            target: the targets.
            ignored: the class that it leaves out.
            reduction: "mean", "sum" or "none".
            loader: number of the latest loader.
        """
        if len(self._losses) >= _MOST or type(value) is not self._torch.Tensor or not has_values(value):
            self._whole = False
            return
        targets = target.numel() if target.is_floating_point() else (target != ignored).sum()
        summed = reduction != "mean"
        self._losses.append(_Loss(value.detach().double().sum(), targets, summed, loader))

    def means(self) -> tuple[tuple[float, float, int], ...]:
        """Return for each evaluation, and parts of it, the mean loss in nats, the sum and the number of losses.

        The mean is that of all targets, or of the means of batches: each is an entry.
        """
        if not self._whole or not self._losses:
            return ()
        values = self._torch.stack([loss.value.reshape(()).cpu() for loss in self._losses]).tolist()
        counts = [int(loss.targets) for loss in self._losses]
        every = range(len(values))
        groups = [list(every)]
        loaders = [loss.loader for loss in self._losses]
        groups += [[place for place in every if loaders[place] == one] for one in dict.fromkeys(loaders)]
        for parts in range(2, _MOST_PARTS + 1):
            size, rest = divmod(len(values), parts)
            if not rest:
                groups += [list(every)[start : start + size] for start in range(0, len(values), size)]
        found: dict[tuple[float, float, int], None] = {}
        for group in groups:
            targets = sum(counts[place] for place in group)
            sums = [values[place] if self._losses[place].summed else values[place] * counts[place] for place in group]
            means = [
                values[place] / max(1, counts[place]) if self._losses[place].summed else values[place]
                for place in group
            ]
            total = sum(values[place] for place in group)
            found[sum(sums) / max(1, targets), total, len(group)] = None
            found[sum(means) / len(group), total, len(group)] = None
        return tuple(found)
