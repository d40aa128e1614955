"""`Mean`: a mean over samples for evaluations, correct for batches of different sizes, read once at the end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from truestep.errors import BadLogValue, NothingMeasured

Number = bool | int | float


class Mean:
    """A mean of values, each weighted by its number of samples.

    Sums are on the device in float64 (float32 on mps), so `update` does not wait for the device; `float()` reads the
    mean. The methods `update`, `compute` and `reset` are those of torchmetrics.

    Args:
        device: device of the values.
        total: returns the sum of a tensor over ranks; None for a single process.
        repeats: returns True while this rank repeats samples of another one, which count there.

    Example:
        >>> loss = Mean()
        >>> loss.update(torch.tensor(2.0), 3)  # the mean of a batch of three
        >>> loss.update(torch.tensor(6.0), 1)
        >>> correct = Mean()
        >>> correct.update(torch.tensor([True, True, False]))  # one value per sample
        >>> print(f"{loss:.1f} {correct:.0%}")
        3.0 67%
    """

    def __init__(
        self,
        device: torch.device | str = "cpu",
        total: Callable[[torch.Tensor], torch.Tensor] | None = None,
        repeats: Callable[[], bool] | None = None,
    ) -> None:
        self._total, self._repeats = total, repeats
        self._of_all: torch.Tensor | None = None
        """Sums of all ranks, until the next update: a second reading, which not all ranks may make, waits for none."""
        kind = torch.float32 if torch.device(device).type == "mps" else torch.float64
        with torch.inference_mode(False):
            self._sums = torch.zeros(2, dtype=kind, device=device)
        """Sums of weighted values and of weights, from tensors; numbers are summed separately."""
        self._sum = self._weight = 0.0
        self._updated, self._shares = False, True

    @property
    def shares(self) -> bool:
        """True if every value was True or False: the mean is the share of samples, such as an accuracy."""
        return self._updated and self._shares

    @property
    def count(self) -> float:
        """Sum of the weights so far, on this rank."""
        return float(self._sums[1]) + float(self._weight)

    def update(self, value: torch.Tensor | Number, weight: torch.Tensor | Number | None = None) -> None:
        """Add values.

        Args:
            value: a number or a tensor of one element, with `weight`; or a tensor of any shape, with weight 1 for each
                element. Bool, integer or floating point; detached.
            weight: number of samples (tokens, pixels) that a single value is the mean of; or weights of the elements,
                in a shape that broadcasts to theirs, such as a mask.

        Raises:
            BadLogValue: a single value without weight. If the last batch is smaller, the mean over batches differs from
                the mean over samples.
        """
        if weight is None and (not isinstance(value, torch.Tensor) or value.dim() == 0):
            raise BadLogValue(
                "Mean.update() of a single value needs its weight",
                expected="expected the number of samples that it is the mean of",
                remedy="write mean.update(loss, len(x)), or pass one value per sample",
            )
        if self._repeats is not None and self._repeats():
            return
        self._updated, self._of_all = True, None
        self._shares = self._shares and isinstance(value, torch.Tensor) and value.dtype == torch.bool and weight is None
        if not isinstance(value, torch.Tensor) and not isinstance(weight, torch.Tensor):
            assert weight is not None
            self._sum += value * weight
            self._weight += weight
            return
        if not isinstance(value, torch.Tensor):
            value = torch.full((), value, dtype=self._sums.dtype, device=self._sums.device)  # no copy from the host
        values = value.detach().to(self._sums)
        if weight is None:
            self._sums[0] += values.sum()
            self._weight += values.numel()
        elif isinstance(weight, torch.Tensor):
            weights = weight.detach().to(self._sums).expand_as(values)
            self._sums[0] += (values * weights).sum()
            self._sums[1] += weights.sum()
        else:
            self._sums[0].add_(values.sum(), alpha=weight)
            self._weight += weight * values.numel()

    def compute(self) -> torch.Tensor:
        """Return the mean so far, a tensor of shape () on the device; NaN if all weights are 0.

        In a run of several ranks it is the mean over all of them, and all must call this.

        Raises:
            NothingMeasured: `update` was not called.
        """
        if self._total is not None:
            if self._of_all is None:
                own = torch.tensor([self._sum, self._weight, self._updated], dtype=self._sums.dtype)
                self._of_all = self._total(torch.cat((self._sums, own.to(self._sums.device))))
            total, weights, numbers, counted, updated = self._of_all
            if updated:
                mean: torch.Tensor = (total + numbers) / (weights + counted)
                return mean
        if not self._updated:
            raise NothingMeasured(
                "Mean.compute() was called before any update()",
                expected="expected at least one update since it was created or reset",
                remedy="call mean.update(value, weight) in the loop, and check that the loop has batches",
            )
        return (self._sums[0] + self._sum) / (self._sums[1] + self._weight)

    def reset(self) -> None:
        """Reset to the initial state."""
        self._sums.zero_()
        self._sum = self._weight = 0.0
        self._updated, self._of_all = False, None
        self._shares = True

    def state_dict(self) -> dict[str, Any]:
        """Return the sums."""
        own = (self._sum, self._weight, self._updated)
        return {"sums": self._sums.clone(), "own": list(own), "shares": self._shares}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the sums of another mean."""
        self._sums.copy_(state["sums"])
        self._sum, self._weight, self._updated = state["own"]
        self._of_all = None
        self._shares = state.get("shares", False)

    def __float__(self) -> float:
        return float(self.compute())

    def __format__(self, form: str) -> str:
        return format(float(self), form)

    def __repr__(self) -> str:
        return f"Mean({float(self):g})" if self._updated else "Mean()"
