"""Fully sharded data parallelism: every rank has a part of each parameter, of its gradient and of its optimizer state.

The engine is FSDP2, `torch.distributed.fsdp.fully_shard`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import ref

import torch
from torch import nn

from truestep.errors import BadLoss, BadPart
from truestep.loop.ranks.data_parallel import DataParallel, together
from truestep.loop.ranks.launch import Place
from truestep.loop.ranks.policies import Policies
from truestep.loop.ranks.sharding import (
    Copier,
    check_shardable,
    groups_of,
    parameters_of,
    set_whole,
    shard,
    units_of,
)
from truestep.model.blocks import Kinds
from truestep.seams.divided import is_divided
from truestep.seams.wrappers import uncompiled

if TYPE_CHECKING:
    from truestep.loop.optim.updates import Updates

T = TypeVar("T")
distributed: Any = torch.distributed
_END = object()


class FullySharded(DataParallel):
    """Several ranks, each with a part of the model.

    A backward pass gathers the parameters of one unit after the other, and averages their gradients over ranks; each
    rank keeps its part. In the earlier micro-steps of a window, gradients stay whole on each rank.

    Args:
        place: rank and number of processes.
        device: device of this rank.
        seed: of the run.
        timeout_s: time that ranks wait for one another.
        owns_group: True to destroy the process group at the end.
        policies: types and place of the parts.
    """

    shards = True

    def __init__(
        self,
        place: Place,
        device: torch.device,
        seed: int,
        timeout_s: float,
        *,
        owns_group: bool,
        policies: Policies | None = None,
    ) -> None:
        from torch.distributed.device_mesh import init_device_mesh

        super().__init__(place, device, seed, timeout_s, owns_group=owns_group)
        self._mesh = init_device_mesh(device.type, (place.world_size,))
        self._policies = policies or Policies()
        self._sharded: list[ref[nn.Module]] = []
        self._averages = True
        """True if backward passes average gradients."""

    def prepare(self, model: nn.Module, device: torch.device, kinds: Kinds | None = None) -> None:
        """Divide the weights of rank 0 over the ranks, in place, and move the rest to the device."""
        model = uncompiled(model)
        check_shardable(model)
        names = self._policies.units(model, units_of(model, kinds))
        if not any(True for _ in model.parameters()):
            model.to(device)
            return
        copier = Copier(model, names, self._mesh, self._policies, self._add)
        shard(model, names, self._mesh, self._policies, lambda module: self._send(module, device))
        vars(model)["__deepcopy__"] = copier
        self._add(model)

    def _send(self, module: nn.Module, device: torch.device) -> None:
        """Move the whole tensors of a module to the device, and give them the values of rank 0."""
        with torch.no_grad():
            for part in module.modules():
                for parameter in part._parameters.values():
                    if parameter is not None and not is_divided(parameter):
                        parameter.data = parameter.data.to(device)
                        self._broadcast(parameter)
                for name, buffer in part._buffers.items():
                    if buffer is not None:
                        part._buffers[name] = buffer = buffer.to(device)
                        self._broadcast(buffer)

    def begin(self, models: Iterable[nn.Module], *, resumed: bool) -> None:
        """Give all ranks the buffers of rank 0, and each rank other random numbers; the weights are shared already."""
        models = list(models)
        super().begin((), resumed=resumed)
        self.share_buffers(models)

    def check_optimizer(self, optimizer: torch.optim.Optimizer) -> None:
        """Raise an error if an optimizer has whole parameters, or is one that torch cannot step on their parts.

        Raises:
            BadPart: it was made before its model was divided, or is LBFGS or Adafactor.
        """
        if isinstance(optimizer, torch.optim.LBFGS | torch.optim.Adafactor):
            raise BadPart(
                f"{type(optimizer).__name__} computes with whole parameters, and each rank has a part of them",
                expected='expected an optimizer that updates each number alone, such as AdamW, with strategy="fsdp"',
                remedy='use another optimizer, or pass strategy="ddp" to Run',
            )
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if not is_divided(parameter):
                    raise BadPart(
                        f"{type(optimizer).__name__} has a whole parameter of shape {tuple(parameter.shape)}",
                        expected='expected parameters that run.model() has divided over the ranks (strategy="fsdp")',
                        remedy="write model = run.model(model) before the optimizer is built",
                    )

    def explain(self, error: BaseException) -> None:
        """Raise an error that names the ranks that did not answer; note operations that torch cannot do with parts."""
        super().explain(error)
        if "sharding" in str(error).lower() and "DeviceMesh" in str(error):
            error.add_note('truestep: strategy="ddp" has whole parameters, for which torch has this operation')

    # --- gradients ---

    def before_backward(self, group: Sequence[Updates], loss: torch.Tensor, *, last: bool) -> None:
        """Average gradients in the next backward pass if it is the last of a window."""
        self._heartbeat.begin()
        self._set_averages(last)
        if last:
            for updates in group:
                updates.window.averaged = True
            if loss.requires_grad and not loss.is_leaf:
                loss.register_hook(self._agree)  # type: ignore[no-untyped-call]

    def leaves(self, parameters: list[torch.Tensor]) -> list[torch.Tensor]:
        """Return the whole parameters, which a backward pass reaches."""
        whole = {id(one.sharded_param): one for model in self._models for one in parameters_of(model)}
        return [whole[id(parameter)].unsharded_param for parameter in parameters if _is_met(whole[id(parameter)])]

    @together
    def average(self, updates: Updates) -> None:
        """Average the gradients that are still whole on each rank."""
        self._set_averages(True)
        own = {id(parameter) for parameter in updates.parameters()}
        records = [one for model in self._models for one in parameters_of(model) if id(one.sharded_param) in own]
        has = torch.tensor([_waiting(one) is not None for one in records], dtype=torch.uint8)
        distributed.all_reduce(has, distributed.ReduceOp.MAX, group=self._group)
        with torch.no_grad():
            for record in (record for record, one in zip(records, has.tolist(), strict=True) if one):
                self._reduce(record)

    def _reduce(self, record: Any) -> None:
        """Average the whole gradient of a parameter, and add this rank's part to its gradient."""
        from torch.distributed.tensor import DTensor, Partial

        parameter = record.sharded_param
        whole = _waiting(record)
        if whole is None:
            whole = torch.zeros(parameter.shape, device=self._device)
        _drop(record)
        mean = DTensor.from_local(whole.to(parameter.dtype) / self.world_size, self._mesh, [Partial()])
        own = mean.redistribute(placements=parameter.placements).to_local()
        part = record.to_sharded_dtensor(own.to(parameter.device))
        parameter.grad = part if parameter.grad is None else parameter.grad + part

    def discard(self, updates: Updates) -> None:
        """Drop the gradients that are still whole on each rank."""
        own = {id(parameter) for parameter in updates.parameters()}
        for model in self._models:
            for record in parameters_of(model):
                if id(record.sharded_param) in own:
                    _drop(record)

    def _set_averages(self, value: bool) -> None:
        if value is not self._averages:
            self._averages = value
            for model in self._models:
                model.set_requires_gradient_sync(value)  # type: ignore[operator]

    def _agree(self, gradient: torch.Tensor) -> None:
        """Agree on the parameters that a backward pass reaches, when it begins; zeros are averaged for the others.

        Ranks that average other gradients than the others would block, or mix them up. A parameter that no rank reaches
        has no gradient, as in a single process.

        Raises:
            BadLoss: some ranks reach a unit and others do not: these would not gather its parameters.
        """
        units = [list(group.fsdp_params) for model in self._models for group in groups_of(model)]
        own = [[_waiting(record) is not None or _is_reached(record) for record in unit] for unit in units]
        flags = [flag for unit in own for flag in (*unit, any(unit), not any(unit))]
        reached = torch.tensor(flags, dtype=torch.uint8)
        distributed.all_reduce(reached, distributed.ReduceOp.MAX, group=self._group)
        found = iter(reached.tolist())
        for unit, mine in zip(units, own, strict=True):
            everywhere = [next(found) for _ in unit]
            on_one, missing_on_one = next(found), next(found)
            if on_one and missing_on_one:
                raise _unit_left_out(unit, self.gathered(any(mine)))
            wide = next((sum.dtype for one in unit if (sum := one.unsharded_accumulated_grad) is not None), None)
            for record, here, anywhere in zip(unit, mine, everywhere, strict=True):
                whole = record.unsharded_param if anywhere else None
                if whole is not None and wide is not None and record.unsharded_accumulated_grad is None:
                    # torch averages the gradients of a unit in one type: this one is added to fp32, as the others are
                    record.unsharded_accumulated_grad = torch.zeros_like(whole, dtype=wide)
                elif whole is not None and not here:
                    whole.grad = torch.zeros_like(whole)

    def _add(self, model: nn.Module) -> None:
        if not self._averages:
            model.set_requires_gradient_sync(False)  # type: ignore[operator]
        self._sharded.append(ref(model))

    @property
    def _models(self) -> list[nn.Module]:
        """The sharded models and their copies, in the same order on all ranks."""
        return [model for held in self._sharded if (model := held()) is not None]

    # --- evaluation ---

    def even(self, batches: Iterator[T]) -> Iterator[T]:
        """Yield the batches of an evaluation; from the first that only some ranks have, with gathered parameters.

        A call of a model gathers its parameters, so it is made on all ranks or on none.
        """
        whole = False
        try:
            while True:
                batch: Any = next(batches, _END)
                if not whole:
                    count = int(self.sum(torch.tensor(int(batch is not _END))))
                    whole = 0 < count < self.world_size
                    if whole:
                        for model in self._models:
                            set_whole(model, True)
                if batch is _END:
                    return
                yield batch
        finally:
            if whole:
                for model in self._models:
                    set_whole(model, False)


def _is_met(record: Any) -> bool:
    """Return True if a parameter was gathered at least once."""
    return hasattr(record, "_unsharded_param")


def _waiting(record: Any) -> Any:
    """Return the whole gradient of earlier micro-steps that waits to be averaged; None without one."""
    if record.unsharded_accumulated_grad is not None:
        return record.unsharded_accumulated_grad  # in another dtype than the parameter
    return record.unsharded_param.grad if _is_met(record) else None


def _drop(record: Any) -> None:
    record.unsharded_accumulated_grad = None
    if _is_met(record):
        record.unsharded_param.grad = None


def _is_reached(record: Any) -> bool:
    """Return True if the backward pass under way computes a gradient of a parameter."""
    if not _is_met(record) or not record.unsharded_param.requires_grad:
        return False
    node = torch.autograd.graph.get_gradient_edge(record.unsharded_param).node
    return bool(torch._C._will_engine_execute_node(node))


def _unit_left_out(unit: list[Any], reached: list[bool]) -> BadLoss:
    names = [record._param_fqn for record in unit if record._param_fqn is not None]
    without = ", ".join(str(rank) for rank, one in enumerate(reached) if not one)
    return BadLoss(
        f"the loss of rank {without} does not reach {names[0] if names else 'a block'}, that of others does",
        expected='expected a loss that reaches the same blocks on all ranks with strategy="fsdp"',
        remedy='add 0 * output.sum() of that block to the loss, or pass strategy="ddp" to Run',
    )
