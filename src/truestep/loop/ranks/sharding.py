"""A model divided over ranks by `fully_shard`: its units, models that cannot be divided, and copies of it.

A unit is a group of parameters that is gathered together: each block of the model, and the rest. Between its forward
and backward passes a rank holds a part of each parameter, a `DTensor`.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from truestep.errors import BadPart
from truestep.loop.ranks.policies import Policies
from truestep.model.blocks import Kinds, blocks_of, repeated_blocks
from truestep.seams.divided import is_divided, local

_DDP = 'or pass strategy="ddp" to Run'
_CALLS = ("forward", "_call_impl", "_wrapped_call_impl", "__call__")


def units_of(model: nn.Module, kinds: Kinds | None) -> list[str]:
    """Return the names of the blocks that are units: those of some types, or the repeated ones.

    A block that shares a parameter with the rest of the model is not a unit, so that the parameter stays one tensor.

    Args:
        model: before it is sharded.
        kinds: types of its blocks; None for its repeated blocks.

    Raises:
        BadPart: the model has no block of these types.
    """
    blocks = repeated_blocks(model) if kinds is None else blocks_of(model, kinds, "shard")
    single = {id(block): name for name, block in blocks.items()}  # one name for a block that is used several times
    owner = {id(module): key for key, name in single.items() for module in blocks[name].modules()}
    owners: dict[int, set[int | None]] = {}
    for module in model.modules():
        for parameter in module._parameters.values():
            if parameter is not None:
                owners.setdefault(id(parameter), set()).add(owner.get(id(module)))
    shared = {key for keys in owners.values() if len(keys) > 1 for key in keys}
    return [name for key, name in single.items() if key not in shared and any(True for _ in blocks[name].parameters())]


def check_shardable(model: nn.Module) -> None:
    """Raise an error if a model has parameters that cannot be divided.

    Raises:
        BadPart: a lazy parameter, one without a dimension, a sparse embedding, or a model that is sharded already.
    """
    kind = type(model).__name__
    if any(is_sharded(module) for module in model.modules()):
        raise BadPart(
            f"{kind} was sharded before run.model()",
            expected="expected whole parameters",
            remedy="leave fully_shard out: run.model() calls it for the blocks and the model",
        )
    for name, module in model.named_modules():
        if getattr(module, "sparse", False) is True:
            raise BadPart(
                f"{name or kind} has sparse gradients, which fully_shard does not reduce",
                expected='expected dense gradients with strategy="fsdp"',
                remedy=f"make it with sparse=False, {_DDP}",
            )
    for name, parameter in model.named_parameters():
        if is_lazy(parameter):
            raise BadPart(
                f"{name} has no shape yet",
                expected="expected initialized parameters, got those of a lazy module",
                remedy="call the model on one batch before run.model()",
            )
        if not parameter.dim():
            raise BadPart(
                f"{name} has no dimension along which it can be divided",
                expected='expected parameters of at least one dimension with strategy="fsdp"',
                remedy=f"give it one: nn.Parameter(torch.zeros(1)), {_DDP}",
            )


def shard(
    model: nn.Module, units: list[str], mesh: Any, policies: Policies, ready: Callable[[nn.Module], None]
) -> None:
    """Divide the parameters of a model over the ranks, in place.

    Args:
        model: with whole parameters.
        units: names of the blocks that are gathered one at a time.
        mesh: of all ranks.
        policies: types and place of the parts.
        ready: called with each unit and then with the model, before its parameters are divided: at most one unit is
            whole on the device at a time.
    """
    from torch.distributed.fsdp import fully_shard

    for module in (*map(model.get_submodule, units), model):
        ready(module)
        # The rest is divided again after a forward pass too. Otherwise its parameters stayed whole until the next
        # backward pass, and the ones that an optimizer or an average has would not be those of the model.
        options = policies.options(module, root=module is model)
        fully_shard(module, mesh=mesh, reshard_after_forward=True, **options)
    for module in model.modules():
        if any(parameter is not None for parameter in module._parameters.values()):
            module.register_forward_pre_hook(_check_whole)


def is_sharded(module: object) -> bool:
    """Return True if `fully_shard` was called on a module; torch.distributed is not imported for that."""
    fsdp = sys.modules.get("torch.distributed.fsdp")
    return fsdp is not None and isinstance(module, fsdp.FSDPModule)


def parameters_of(model: nn.Module) -> Iterator[Any]:
    """Yield torch's records of the sharded parameters of a model: `sharded_param`, `unsharded_param` and gradients."""
    for group in groups_of(model):
        yield from group.fsdp_params


def groups_of(model: nn.Module) -> Iterator[Any]:
    """Yield torch's records of the units of a model."""
    for module in model.modules():
        if is_sharded(module):
            state: Any = module._get_fsdp_state()  # type: ignore[operator]
            one = None if hasattr(state, "_fsdp_param_groups") else state._fsdp_param_group
            yield from getattr(state, "_fsdp_param_groups", [one] if one is not None else [])


def set_whole(model: nn.Module, whole: bool) -> None:
    """Gather all parameters of a model and keep them, or divide them again; all ranks must call this."""
    for module in model.modules():
        if is_sharded(module):
            sharded: Any = module
            sharded.set_reshard_after_forward(not whole, recurse=False)
            if whole:
                sharded.unshard()
            else:
                sharded.reshard()


class Copier:
    """Copies a sharded model, as `copy.deepcopy` does: the copy is sharded in the same way.

    Args:
        model: before it is sharded. Its structure is copied, without the values of its parameters.
        units: names of its blocks that are gathered one at a time.
        mesh: of all ranks.
        policies: types and place of the parts.
        made: called with each copy.
    """

    def __init__(
        self,
        model: nn.Module,
        units: list[str],
        mesh: Any,
        policies: Policies,
        made: Callable[[nn.Module], None],
    ) -> None:
        self._units, self._mesh, self._policies, self._made = units, mesh, policies, made
        self._source = model
        self._failure: Exception | None = None
        empty: dict[int, Any] = {}
        for parameter in model.parameters():
            meta = nn.Parameter(torch.empty_like(parameter, device="meta"), requires_grad=parameter.requires_grad)
            empty[id(parameter)] = meta
        try:
            self._structure: nn.Module = copy.deepcopy(model, empty)
        except Exception as error:  # of any class of the program; raised when a copy is needed
            self._failure = error

    def __call__(self, memo: dict[int, Any]) -> nn.Module:
        """Return a copy of the model with its current values."""
        if self._failure is not None:
            raise self._failure
        new, source = copy.deepcopy(self._structure), self._source
        shard(new, self._units, self._mesh, self._policies, lambda module: None)
        device = next(iter(source.parameters())).device
        apply: Any = new._apply
        apply(lambda tensor: torch.empty_like(tensor, device=device) if tensor.is_meta else tensor)
        with torch.no_grad():
            for (own, value), other in zip(source.named_parameters(), new.parameters(), strict=True):
                local(other).copy_(local(value))
                other.requires_grad_(value.requires_grad)
                assert other.shape == value.shape, own
            for mine, theirs in zip(source.modules(), new.modules(), strict=True):
                theirs.training = mine.training
                for name, buffer in mine._buffers.items():
                    theirs._buffers[name] = None if buffer is None else buffer.detach().clone()
        memo[id(source)] = new
        self._made(new)
        return new


def _check_whole(module: nn.Module, args: Any) -> None:
    """Raise an error if a module is called while its parameters are divided."""
    if torch.compiler.is_compiling():
        return
    parameter = next((one for one in module._parameters.values() if one is not None), None)
    if not is_divided(parameter):
        return
    method = _method_above()
    remedy = "pass each module that the loop calls to run.model(), in place of the one around them"
    if method:
        remedy = f'write torch.distributed.fsdp.register_fsdp_forward_method(model, "{method}") after run.model()'
    raise BadPart(
        f"{type(module).__name__} was called while its parameters are divided over the ranks",
        expected=f"expected a call of the model itself, got one of {method}()"
        if method
        else "expected a call of the model itself, got one of a part of it",
        remedy=remedy,
    )


def _method_above() -> str:
    """Return the name of the method of a sharded model that called one of its modules; empty if none did."""
    frame = sys._getframe(2)
    while frame.f_back is not None:
        code = frame.f_code
        if code.co_name not in _CALLS and code.co_varnames[:1] == ("self",) and is_sharded(frame.f_locals.get("self")):
            return code.co_name
        frame = frame.f_back
    return ""
