"""Find the modules, optimizers, schedules and scalers of a program among the objects of Python's garbage collector."""

from __future__ import annotations

import gc
import weakref
from typing import Any

from truestep.experiments.instruments.state import digests

_COUNTED = ("last_epoch", "best", "num_bad_epochs", "cooldown_counter", "T_cur", "T_i")
"""Attributes of a schedule that change during the training."""
_LARGE = 65536


class Objects:
    """Training state outside of optimizers. It keeps no object alive, and calls no code of the program."""

    def __init__(self) -> None:
        self._modules: list[weakref.ref[Any]] = []
        self._schedules: list[weakref.ref[Any]] = []
        self._scalers: list[weakref.ref[Any]] = []
        self._optimizers: list[weakref.ref[Any]] = []
        self._known: weakref.WeakKeyDictionary[Any, tuple[Any, int]] = weakref.WeakKeyDictionary()

    def look(self) -> None:
        """Search again; takes about 50 ms in a large program."""
        import torch

        kinds = (
            torch.nn.Module,
            torch.optim.lr_scheduler.LRScheduler,
            torch.amp.GradScaler,
            torch.optim.Optimizer,
        )
        known: dict[type, int] = {}
        found: list[list[Any]] = [[] for _ in kinds]
        for thing in gc.get_objects():
            place = known.get(type(thing))
            if place is None:
                fits = [issubclass(type(thing), kind) for kind in kinds]
                place = known[type(thing)] = fits.index(True) if any(fits) else -1
            if place >= 0:
                found[place].append(thing)
        modules, *others = found
        below = {id(child) for module in modules for child in vars(module).get("_modules", {}).values()}
        roots = [module for module in modules if id(module) not in below and "_modules" in vars(module)]
        self._modules, self._schedules, self._scalers, self._optimizers = (
            [weakref.ref(thing) for thing in things] for things in (roots, *others)
        )

    def buffers(self) -> dict[str, list[int]]:
        """Return checksums of the buffers of trained modules, by class and name."""
        return self._of_modules(trained=True)

    def untrained(self) -> dict[str, list[int]]:
        """Return checksums of parameters outside of all optimizers, with their buffers: copies, averages."""
        return self._of_modules(trained=False)

    def _of_modules(self, *, trained: bool) -> dict[str, list[int]]:
        stepped = {
            id(parameter)
            for optimizer in _alive(self._optimizers)
            for group in optimizer.param_groups
            for parameter in group["params"]
        }
        seen: dict[str, list[int]] = {}
        for module in _alive(self._modules):
            parameters = list(module.named_parameters())
            if trained is any(id(parameter) in stepped for _, parameter in parameters):
                tensors = [*module.named_buffers()]
                tensors += [] if trained else parameters
            else:
                tensors = [item for item in parameters if id(item[1]) not in stepped] if not trained else []
            for name, tensor in tensors:
                seen.setdefault(f"{type(module).__name__}: {name}", []).append(self._checksum(tensor))
        return {name: sorted(numbers) for name, numbers in seen.items()}

    def _checksum(self, tensor: Any) -> int:
        """Return the checksum of a tensor; a large one that has not changed is not read again (frozen models)."""
        if tensor.numel() < _LARGE or tensor.is_inference():
            return digests.of_tensor(tensor)
        now = (tensor._version, tensor.data_ptr(), digests.some_of([tensor]))
        before, checksum = self._known.get(tensor, (None, 0))
        if before != now:
            checksum = digests.of_tensor(tensor)
            self._known[tensor] = (now, checksum)
        return checksum

    def names(self, parameters: list[Any]) -> list[str]:
        """Return the names of parameters in their modules; "" for a parameter outside of modules."""
        known = {id(p): name for module in _alive(self._modules) for name, p in module.named_parameters()}
        return [known.get(id(parameter), "") for parameter in parameters]

    def schedules(self) -> list[str]:
        """Return the class and position of each schedule."""
        found = []
        for schedule in _alive(self._schedules):
            moves = [f"{name} {vars(schedule)[name]}" for name in _COUNTED if name in vars(schedule)]
            found.append(f"{type(schedule).__name__} {', '.join(moves)}")
        return sorted(found)

    def scalers(self) -> list[str]:
        """Return the scale of each enabled gradient scaler, and the number of steps since its last change."""
        return sorted(
            f"scale {scaler.get_scale():g} for {scaler._get_growth_tracker()} steps"
            for scaler in _alive(self._scalers)
            if scaler.is_enabled()
        )


def _alive(references: list[weakref.ref[Any]]) -> list[Any]:
    return [thing for reference in references if (thing := reference()) is not None]
