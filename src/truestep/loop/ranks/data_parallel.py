"""Data parallelism: every rank has the whole model, and the gradients of a step are the mean over ranks."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

import torch
from torch import nn

from truestep.loop.process.signals import spare_once
from truestep.loop.ranks.agreement import Agreement
from truestep.loop.ranks.heartbeat import REGULAR, Heartbeat
from truestep.loop.ranks.joint_norm import Members, join_statistics
from truestep.loop.ranks.launch import Place
from truestep.loop.ranks.reducer import Reducer, can_reduce
from truestep.loop.ranks.silence import GAVE_UP, explained, is_of_ranks
from truestep.loop.rng.seed import mix, seed_everything

if TYPE_CHECKING:
    from truestep.loop.optim.updates import Updates
    from truestep.loop.ranks.strategy import Number
    from truestep.model.blocks import Kinds

T = TypeVar("T")
Args = ParamSpec("Args")
distributed: Any = torch.distributed
_LAUNCHER_WAITS_S = 30.0
"""Seconds between SIGTERM and SIGKILL of torchrun."""


def together(function: Callable[Args, T]) -> Callable[Args, T]:
    """Return a method for an operation over all ranks, which names those that do not answer."""

    @functools.wraps(function)
    def method(*args: Args.args, **kwargs: Args.kwargs) -> T:
        strategy: Any = args[0]
        strategy._heartbeat.begin()
        try:
            return function(*args, **kwargs)
        except RuntimeError as error:
            strategy.explain(error)
            raise

    return method


class DataParallel:
    """Several ranks, each with the whole model on one device.

    Gradients are averaged by the reducer of DistributedDataParallel, over the default group. Everything else is sent
    over a separate group on the CPU, so that it cannot be mixed up with the program's own operations.

    Args:
        place: rank and number of processes.
        device: device of this rank.
        seed: of the run.
        timeout_s: time that ranks wait for one another.
        owns_group: True to destroy the process group at the end.
    """

    shards = False

    def __init__(self, place: Place, device: torch.device, seed: int, timeout_s: float, *, owns_group: bool) -> None:
        self.rank, self.world_size = place.rank, place.world_size
        self.weight = 1.0
        self._device, self._seed, self._owns_group = device, seed, owns_group
        self._heartbeat = Heartbeat(place.rank, place.world_size)
        self._group = distributed.new_group(backend="gloo", timeout=timedelta(seconds=timeout_s))
        self._agreement = Agreement(self._group)
        self._members = Members(self, self._group) if place.world_size > 1 else Members()
        self._reducers: WeakKeyDictionary[Updates, Reducer] = WeakKeyDictionary()
        self._prepared: list[Reducer] = []
        """Reducers of the backward pass under way."""
        self._sparse: set[nn.Parameter] = set()
        """Parameters with sparse gradients, which the reducer does not take."""

    def prepare(self, model: nn.Module, device: torch.device, kinds: Kinds | None = None) -> None:
        """Move the model to the device."""
        model.to(device)
        sparse = [module for module in model.modules() if getattr(module, "sparse", False) is True]
        self._sparse.update(p for module in sparse for p in module.parameters(recurse=False))

    def join_statistics(self, model: nn.Module) -> None:
        """Make layers of batch normalisation compute their statistics over all ranks."""
        join_statistics(model, self._members)

    def check_optimizer(self, optimizer: torch.optim.Optimizer) -> None:
        """Do nothing: gradients of any optimizer are averaged."""

    @together
    def begin(self, models: Iterable[nn.Module], *, resumed: bool) -> None:
        """Give all ranks the weights and buffers of rank 0, and each rank other random numbers."""
        with torch.no_grad():
            for model in models:
                for tensor in (*model.parameters(), *model.buffers()):
                    self._broadcast(tensor)
        if self.rank and not resumed:
            seed_everything(mix(self._seed, self.world_size, self.rank))

    @together
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

    # --- ranks that do not answer ---

    def explain(self, error: BaseException) -> None:
        """Raise an error that names the ranks that did not answer, if `error` of torch is about these.

        Raises:
            RankDoesNotAnswer: with the reason, and the line of the script.
        """
        if not is_of_ranks(error):
            return
        spare_once(_LAUNCHER_WAITS_S)  # a launcher that misses another one ends its ranks at once
        reason = explained(error, self._heartbeat)
        self._heartbeat.end(GAVE_UP)
        raise reason from error

    def ended(self, how: str) -> None:
        """Write for the other ranks how the run of this one has ended."""
        self._heartbeat.end(how)

    # --- gradients ---

    def before_backward(self, group: Sequence[Updates], loss: torch.Tensor, *, last: bool) -> None:
        """Average the gradients of some optimizers in the next backward pass if it is the last of a window."""
        if not last:
            return
        self._heartbeat.begin()
        self._prepared = []  # a backward pass that failed has left its own
        for updates in group:
            reducer = self._reducer(updates)
            if reducer is not None:
                reducer.prepare()
                self._prepared.append(reducer)
                updates.window.averaged = True

    def after_backward(self, group: Sequence[Updates]) -> None:
        """Wait for the averages of the gradients."""
        prepared, self._prepared = self._prepared, []
        for reducer in prepared:
            reducer.finish()

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

    def leaves(self, parameters: list[torch.Tensor]) -> list[torch.Tensor]:
        """Return the parameters."""
        return parameters

    def discard(self, updates: Updates) -> None:
        """Do nothing: gradients that wait are those of the parameters."""

    def even(self, batches: Iterator[T]) -> Iterator[T]:
        """Return the batches: ranks call their whole models alone."""
        return batches

    @together
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

    @together
    def sum(self, values: torch.Tensor) -> torch.Tensor:
        """Return the sum of a tensor over ranks."""
        total = values.detach().clone()
        distributed.all_reduce(total, group=None if total.is_cuda else self._group)
        return total

    @together
    def of_first(self, value: T) -> T:
        """Return the value of rank 0."""
        held = [value]
        distributed.broadcast_object_list(held, 0, group=self._group)
        return held[0]

    @together
    def gathered(self, value: T) -> list[T]:
        """Return the values of all ranks, by rank."""
        held: list[Any] = [None] * self.world_size
        distributed.all_gather_object(held, value, group=self._group)
        return held

    @together
    def all_have(self, own: bool) -> bool:
        """Return True if all ranks have something."""
        has = torch.tensor([own], dtype=torch.uint8)
        distributed.all_reduce(has, distributed.ReduceOp.MIN, group=self._group)
        return bool(has)

    @together
    def agreed(self, flags: Callable[[], Sequence[int]], count: int, *, at_once: bool) -> Sequence[int]:
        """Return the largest of each flag over ranks, some steps later unless `at_once`."""
        return self._agreement.exchange(flags, count, at_once=at_once)

    @together
    def barrier(self) -> None:
        """Return when all ranks have called this."""
        distributed.barrier(group=self._group)

    def close(self) -> None:
        """Destroy the groups that were made here; the flags under way are dropped."""
        self._heartbeat.end(REGULAR)
        self._reducers.clear()
        self._prepared.clear()
        self._agreement.drop()
        self._members.strategy = None  # a model that is used after the run is one of this process
        if not distributed.is_initialized():
            return
        distributed.destroy_process_group(self._group)
        if self._owns_group:
            distributed.destroy_process_group()
