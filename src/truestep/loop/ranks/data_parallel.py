"""Data parallelism: every rank has the whole model, and the gradients of a step are the mean over ranks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

import torch
from torch import nn

from truestep.loop.ranks.agreement import Agreement
from truestep.loop.ranks.launch import Place
from truestep.loop.ranks.reducer import Reducer, can_reduce
from truestep.loop.rng.seed import mix, seed_everything

if TYPE_CHECKING:
    from truestep.loop.optim.updates import Updates
    from truestep.loop.ranks.strategy import Number

T = TypeVar("T")
distributed: Any = torch.distributed


class DataParallel:
    """Several ranks, each with the whole model on one device.

    Gradients are averaged by the reducer of DistributedDataParallel, over the default group. Everything else is sent
    over a separate group on the CPU, so that it cannot be mixed up with the program's own operations.

    Args:
        place: rank and number of processes.
        device: device of this rank.
        seed: of the run.
        owns_group: True to destroy the process group at the end.
    """

    def __init__(self, place: Place, device: torch.device, seed: int, *, owns_group: bool) -> None:
        self.rank, self.world_size = place.rank, place.world_size
        self.weight = 1.0
        self._device, self._seed, self._owns_group = device, seed, owns_group
        self._group = distributed.new_group(backend="gloo")
        self._agreement = Agreement(self._group)
        self._reducers: WeakKeyDictionary[Updates, Reducer] = WeakKeyDictionary()
        self._sparse: set[nn.Parameter] = set()
        """Parameters with sparse gradients, which the reducer does not take."""

    def prepare(self, model: nn.Module, device: torch.device) -> None:
        """Move the model to the device."""
        model.to(device)
        sparse = [module for module in model.modules() if getattr(module, "sparse", False) is True]
        self._sparse.update(p for module in sparse for p in module.parameters(recurse=False))

    def begin(self, models: Iterable[nn.Module], *, resumed: bool) -> None:
        """Give all ranks the weights and buffers of rank 0, and each rank other random numbers."""
        with torch.no_grad():
            for model in models:
                for tensor in (*model.parameters(), *model.buffers()):
                    self._broadcast(tensor)
        if self.rank and not resumed:
            seed_everything(mix(self._seed, self.world_size, self.rank))

    def share_buffers(self, models: Iterable[nn.Module]) -> None:
        """Give all ranks the buffers of rank 0."""
        with torch.no_grad():
            for model in models:
                for tensor in model.buffers():
                    self._broadcast(tensor)

    def _broadcast(self, tensor: torch.Tensor) -> None:
        whole = tensor.detach().contiguous()
        distributed.broadcast(whole, 0, group=None if whole.is_cuda else self._group)
        if whole.data_ptr() != tensor.data_ptr():
            tensor.copy_(whole)

    # --- gradients ---

    def before_backward(self, group: Sequence[Updates], loss: torch.Tensor) -> None:
        """Average the gradients of some optimizers in the next backward pass."""
        for updates in group:
            reducer = self._reducer(updates)
            if reducer is not None:
                reducer.prepare(loss)
                updates.window.averaged = True

    def _reducer(self, updates: Updates) -> Reducer | None:
        """Return the reducer of an optimizer for its current trainable parameters; None if it cannot have one."""
        parameters = [parameter for parameter in updates.parameters() if parameter.requires_grad]
        known = self._reducers.get(updates)
        if known is not None and len(known.parameters) == len(parameters):
            if all(one is other for one, other in zip(known.parameters, parameters, strict=True)):
                return known
        if not can_reduce(parameters) or not self._sparse.isdisjoint(parameters):
            return None
        self._reducers[updates] = made = Reducer(parameters)
        return made

    def average(self, updates: Updates) -> None:
        """Average the gradients of an optimizer; one that only some ranks have counts as zero on the others."""
        parameters = [parameter for parameter in updates.parameters() if parameter.requires_grad]
        has = torch.tensor([parameter.grad is not None for parameter in parameters], dtype=torch.uint8)
        distributed.all_reduce(has, distributed.ReduceOp.MAX, group=self._group)
        dense: dict[tuple[torch.device, torch.dtype], list[torch.Tensor]] = {}
        for parameter in (parameter for parameter, one in zip(parameters, has.tolist(), strict=True) if one):
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            if parameter.grad.is_sparse:
                distributed.all_reduce(parameter.grad, group=None if parameter.is_cuda else self._group)
                parameter.grad.div_(self.world_size)
            else:
                dense.setdefault((parameter.device, parameter.grad.dtype), []).append(parameter.grad)
        for gradients in dense.values():
            flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
            distributed.all_reduce(flat, group=None if flat.is_cuda else self._group)
            parts = torch.split(flat.div_(self.world_size), [gradient.numel() for gradient in gradients])
            for gradient, part in zip(gradients, parts, strict=True):
                gradient.copy_(part.view_as(gradient))

    # --- numbers ---

    def mean(self, value: Number) -> Number:
        """Return the mean of a number over ranks; a tensor is not read."""
        if isinstance(value, torch.Tensor):
            return self.sum(value) / self.world_size
        return float(self.sum(torch.tensor(value, dtype=torch.float64))) / self.world_size

    def sum(self, values: torch.Tensor) -> torch.Tensor:
        """Return the sum of a tensor over ranks."""
        total = values.detach().clone()
        distributed.all_reduce(total, group=None if total.is_cuda else self._group)
        return total

    def of_first(self, value: T) -> T:
        """Return the value of rank 0."""
        held = [value]
        distributed.broadcast_object_list(held, 0, group=self._group)
        return held[0]

    def gathered(self, value: T) -> list[T]:
        """Return the values of all ranks, by rank."""
        held: list[Any] = [None] * self.world_size
        distributed.all_gather_object(held, value, group=self._group)
        return held

    def all_have(self, own: bool) -> bool:
        """Return True if all ranks have something."""
        has = torch.tensor([own], dtype=torch.uint8)
        distributed.all_reduce(has, distributed.ReduceOp.MIN, group=self._group)
        return bool(has)

    def agreed(self, flags: Callable[[], Sequence[int]], count: int, *, at_once: bool) -> Sequence[int]:
        """Return the largest of each flag over ranks, some steps later unless `at_once`."""
        return self._agreement.exchange(flags, count, at_once=at_once)

    def barrier(self) -> None:
        """Return when all ranks have called this."""
        distributed.barrier(group=self._group)

    def close(self) -> None:
        """Destroy the groups that were made here; the flags under way are dropped."""
        self._reducers.clear()
        self._agreement.drop()
        if not distributed.is_initialized():
            return
        distributed.destroy_process_group(self._group)
        if self._owns_group:
            distributed.destroy_process_group()
