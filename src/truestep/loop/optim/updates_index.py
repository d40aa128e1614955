"""The updates of a run by optimizer: lookup, the optimizers of one loss, and open windows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import torch

from truestep.errors import BadPart

if TYPE_CHECKING:
    from torch import nn

    from truestep.loop.optim.updates import Updates

Optimizers = torch.optim.Optimizer | Sequence[torch.optim.Optimizer] | None


class UpdatesIndex:
    """Finds the updates of optimizers.

    Args:
        updates: of the optimizers of the run, by name.
        models: of the run, by name; they give the order of parameters.
    """

    def __init__(self, updates: Mapping[str, Updates], models: Mapping[str, nn.Module]) -> None:
        self._updates, self._models = updates, models
        self._joint: dict[tuple[Updates, ...], tuple[tuple[int, ...], list[torch.nn.Parameter]]] = {}

    def of(self, optimizer: torch.optim.Optimizer | None) -> Updates:
        """Return the updates of an optimizer; None stands for the only one.

        Raises:
            BadPart: no optimizer, several of them, or one that does not belong to the run.
        """
        if optimizer is not None:
            for updates in self._updates.values():
                if updates.optimizer is optimizer:
                    return updates
            raise BadPart(
                f"this {type(optimizer).__name__} does not belong to the run",
                expected=f"expected one of {sorted(self._updates)}"
                if self._updates
                else "expected an optimizer given to run.optimizer()",
                remedy="write optimizer = run.optimizer(optimizer) before the loop",
            )
        if len(self._updates) == 1:
            return next(iter(self._updates.values()))
        if not self._updates:
            raise BadPart(
                "the run has no optimizer",
                expected="expected an optimizer given to run.optimizer()",
                remedy="write optimizer = run.optimizer(torch.optim.AdamW(model.parameters())) before the loop",
            )
        raise BadPart(
            f"the run has {len(self._updates)} optimizers",
            expected=f"expected the one to update, of {sorted(self._updates)}",
            remedy="pass the one that this loss updates, or a list: run.step(loss, optimizer=[...])",
        )

    def group(self, optimizer: Optimizers) -> tuple[Updates, ...]:
        """Return the updates of the optimizers of one loss.

        Raises:
            BadPart: an empty list, an optimizer twice, or windows of different lengths.
        """
        if not isinstance(optimizer, list | tuple):
            return self.of(optimizer).alone  # type: ignore[arg-type]
        group = tuple([self.of(one) for one in optimizer])
        if not group or len(set(group)) < len(group):
            raise BadPart(
                f"optimizer= has {len(group)} optimizers, {len(set(group))} of them different",
                expected="expected each optimizer that the loss updates, once",
                remedy="pass run.step(loss, optimizer=[first, second])",
            )
        if len({updates.window.accumulate for updates in group}) > 1:
            lengths = ", ".join(f'{updates.window.accumulate} of "{updates.name}"' for updates in group)
            raise BadPart(
                "one loss updates optimizers with windows of different lengths",
                expected=f"expected one number of micro-steps, got {lengths}",
                remedy="pass the same accumulate= for all of them",
            )
        return group

    def joint_parameters(self, group: tuple[Updates, ...]) -> list[torch.nn.Parameter]:
        """Return the parameters of several optimizers, in the order of the run's models."""
        shape = tuple(len(updates.optimizer.param_groups) for updates in group)
        known = self._joint.get(group)
        if known is None or known[0] != shape:
            own = {id(parameter): parameter for updates in group for parameter in updates.parameters()}
            of_models = (parameter for model in self._models.values() for parameter in model.parameters())
            ordered = {id(parameter): parameter for parameter in of_models if id(parameter) in own}
            known = self._joint[group] = shape, list({**ordered, **own}.values())
        return known[1]

    @property
    def open_windows(self) -> list[Updates]:
        """Updates with an open window."""
        return [updates for updates in self._updates.values() if updates.window.is_open]

    @property
    def open_groups(self) -> list[tuple[Updates, ...]]:
        """Updates with an open window, grouped by the losses that they share."""
        return list(dict.fromkeys(tuple(u for u in one.group if u.window.is_open) for one in self.open_windows))

    @property
    def waiting_micro_steps(self) -> int:
        """Number of micro-steps in the open windows."""
        return sum([updates.window.micro_steps for updates in self._updates.values()])
