"""Check for trained parameters that a checkpoint would leave out: those of a model that was not passed to the run."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from truestep.errors import NotInCheckpoint, UnsavableState
from truestep.loop.process.stacklevel import outside
from truestep.seams.divided import local

if TYPE_CHECKING:
    from truestep.loop.run.registry import Parts


def check_all_kept(parts: Parts, state: Mapping[str, Any]) -> None:
    """Raise an error if a checkpoint would leave out trained parameters.

    Args:
        parts: registry of the run.
        state: `run.state`.

    Raises:
        UnsavableState: an optimizer trains parameters that would not be in the checkpoint.
    """
    found = _first_left_out(parts, state)
    if found is not None:
        raise UnsavableState(
            f"the checkpoint would not contain {found}",
            expected="expected trained parameters in a model of the run, a registered object or run.state",
            remedy="write model = run.model(model) before the optimizer is built",
        )


def warn_of_left_out(parts: Parts, state: Mapping[str, Any]) -> None:
    """Warn before the first step if a checkpoint would leave out trained parameters."""
    found = _first_left_out(parts, state)
    if found is not None:
        warnings.warn(
            f"checkpoints of this run would not contain {found}: write model = run.model(model) before the optimizer "
            "is built; until then, run.save() raises an error",
            NotInCheckpoint,
            stacklevel=outside(),
        )


def _first_left_out(parts: Parts, state: Mapping[str, Any]) -> str | None:
    """Return a description of the first parameters left out, with their optimizer; None if all would be saved."""
    kept = {id(parameter) for model in parts.models.values() for parameter in model.parameters()}
    storages: set[int] | None = None
    for name, updates in parts.updates.items():
        missing = [parameter for parameter in updates.parameters() if id(parameter) not in kept and parameter.numel()]
        if not missing:
            continue
        if storages is None:  # few registered objects hold parameters, so their state_dict is called only if needed
            registered = [part.state_dict() for part in parts.registered.values()]
            storages = {_storage(tensor) for tensor in _tensors([registered, dict(state)])}
        missing = [parameter for parameter in missing if _storage(parameter) not in storages]
        if missing:
            return f'{_described(missing)} of optimizer "{name}"'
    return None


def _storage(tensor: torch.Tensor) -> int:
    part: torch.Tensor = local(tensor)
    return part.untyped_storage().data_ptr()


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        if value.layout is torch.strided:
            yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _tensors(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _tensors(item)


def _described(parameters: list[nn.Parameter]) -> str:
    """Return a description of parameters: their model and names, or their shapes if no model has them."""
    wanted = {id(parameter) for parameter in parameters}
    modules = [module for module in gc.get_objects() if issubclass(type(module), nn.Module)]
    # the outermost module: the one with most of these parameters, and then with most submodules
    model = max(modules, key=lambda one: (len(_names_in(one, wanted)), len(list(one.modules()))), default=None)
    names = [] if model is None else _names_in(model, wanted)
    count = f"{len(parameters)} parameter tensor{'' if len(parameters) == 1 else 's'}"
    if model is None or not names:
        shapes = ", ".join(str(tuple(parameter.shape)) for parameter in parameters[:3])
        return f"{count} outside of any model, of shape {shapes},"
    more = ", ..." if len(names) > 3 else ""
    return f"{type(model).__name__} ({', '.join(names[:3])}{more}), {count}"


def _names_in(module: nn.Module, wanted: set[int]) -> list[str]:
    return [name for name, parameter in module.named_parameters() if id(parameter) in wanted]
