"""The process group, models wrapped in DistributedDataParallel, and operations over ranks that the program calls."""

from __future__ import annotations

import socket
import weakref
from contextlib import ExitStack
from typing import Any

from truestep.events import CollectiveCalled, GroupJoined, ReplicaRead, ReplicaWrapped, Site
from truestep.probes.context.probe import Probe, sees
from truestep.probes.gradients.gradient_states import Panel
from truestep.probes.ranks.weights import RankWeights
from truestep.seams import ranks

_MOST_CALLS = 64
"""Operations over ranks in one step that are looked at."""


class RankProbe(Probe):
    """Emits `GroupJoined`, `ReplicaWrapped`, `ReplicaRead`, `WeightsRead` and `CollectiveCalled`."""

    def install(self, stack: ExitStack) -> None:
        scene = self.scene
        self._joined = False
        self._replicas: list[tuple[int, weakref.ref[Any], dict[int, tuple[Any, Any]]]] = []
        """Number and reference of each wrapper, and its parameters at its construction, with type and device."""
        self._weights = RankWeights(scene)
        self._seen: set[tuple[Site | None, str, str]] = set()
        """Line, kind and tensor of the operations that were emitted."""
        self._calls = (-1, 0)
        """Step of the latest operation, and the number of operations in it."""
        self._owners: tuple[int, dict[int, str]] = (-1, {})
        scene.ranks = self

        def wrapped(model: Any) -> None:
            if scene.active:
                self.wrapped(model)

        def called(name: str, tensors: Any) -> None:
            if scene.active and not scene.coast.on:
                self.called(name, tensors)

        ranks.watch_wrapping(stack, wrapped)
        ranks.watch_operations(stack, called)

    @sees
    def wrapped(self, model: Any) -> None:
        """Emit a new wrapper, unless its group has one rank."""
        scene = self.scene
        import torch.distributed as dist

        members = tuple(int(rank) for rank in dist.get_process_group_ranks(model.process_group))
        if len(members) < 2:
            return
        ignored = getattr(model, "parameters_to_ignore", ())
        named = list(model.module.named_parameters())
        every = {name: scene.hold(one, name).number for name, one in named}
        number, _ = scene.numbers.of("replica", model)
        known = {every[name]: (one.dtype, one.device) for name, one in named}
        self._replicas.append((number, weakref.ref(model), known))
        scene.tell(
            ReplicaWrapped,
            replica=number,
            ranks=members,
            parameters=tuple(parameter for name, parameter in every.items() if name not in ignored),
            site=scene.site(),
        )

    @sees
    def called(self, name: str, tensors: Any) -> None:
        """Emit an operation, once for each line and kind of tensor."""
        scene, step = self.scene, self.scene.sampling.step
        latest, calls = self._calls
        self._calls = (step, calls + 1 if latest == step else 1)
        tensor = _first(tensors)
        if self._calls[1] > _MOST_CALLS or tensor is None or ranks.group() is None:
            return
        owner = self._owned().get(_memory(tensor), "") if scene.sampling.on else ""
        seen = scene.site(), ranks.OPERATIONS[name], owner
        if seen not in self._seen:
            self._seen.add(seen)
            scene.tell(CollectiveCalled, operation=seen[1], of=owner, numbers=tensor.numel(), site=seen[0])

    def _owned(self) -> dict[int, str]:
        """Return the memory of the known parameters and of their gradients, read once in a sampled step."""
        step, owners = self._owners
        if step != self.scene.sampling.step:
            owners = {}
            for held in list(self.scene.ledger.by_id.values()):
                parameter = held.ref()
                if parameter is None:
                    continue
                owners[_memory(parameter)] = "parameter"
                if parameter.grad is not None:
                    owners[_memory(parameter.grad)] = "gradient"
            owners.pop(0, None)
            self._owners = self.scene.sampling.step, owners
        return owners

    def before_step(self, panel: Panel) -> None:
        """Emit the group, and the wrappers of the parameters of an optimizer, in a sampled step."""
        scene, group = self.scene, ranks.group()
        if group is None:
            return
        if not self._joined:
            self._joined = True
            scene.tell(GroupJoined, rank=group[0], world_size=group[1], host=socket.gethostname())
        held = {id(held.ref()) for held in panel.everything}
        for number, reference, known in self._replicas:
            model = reference()
            if model is None:
                continue
            parameters = list(model.module.named_parameters())
            if not any(id(parameter) in held for _, parameter in parameters):
                continue
            now = [scene.hold(parameter, name).number for name, parameter in parameters]
            kinds = zip(now, ((parameter.dtype, parameter.device) for _, parameter in parameters), strict=True)
            recast = next((kind for one, kind in kinds if known.get(one, kind) != kind), None)
            scene.tell(
                ReplicaRead,
                replica=number,
                optimizer=panel.number,
                prepared=ranks.prepared(model),
                hooked=ranks.is_hooked(model),
                outside=tuple(parameter for parameter in now if parameter not in known),
                recast="" if recast is None else f"{recast[0]} on {recast[1]}".removeprefix("torch."),
            )

    def after_step(self, panel: Panel, site: Any) -> None:
        """Emit values of the parameters of an optimizer after a sampled step."""
        if self._joined:
            self._weights.look(panel, site)


def _first(tensors: Any) -> Any:
    """Return the first tensor of an argument: a tensor, or lists of tensors."""
    while isinstance(tensors, list | tuple) and tensors:
        tensors = tensors[0]
    return tensors if hasattr(tensors, "numel") else None


def _memory(tensor: Any) -> int:
    try:
        return int(tensor.untyped_storage().data_ptr())
    except (NotImplementedError, RuntimeError):
        return 0
