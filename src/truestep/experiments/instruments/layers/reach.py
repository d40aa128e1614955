"""The tape below an operation: the tensors that it reaches, and the memory that it keeps for the backward pass.

No saved tensor is unpacked, since that could compute something again: only its storage is read.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Set
from typing import Any

from truestep.debugging._visible import joined
from truestep.seams.wrappers import uncompiled_name

LEAF = "torch::autograd::AccumulateGrad"
_MOST_NODES = 500_000


def nodes_below(roots: Iterable[Any]) -> list[Any]:
    """Return the operations of a tape, from its roots on, each once."""
    found = [node for node in roots if node is not None]
    seen = set(found)
    for node in found:  # the list grows while it is read
        if len(found) > _MOST_NODES:
            break
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                found.append(following)
    return found


def leaves_of(nodes: Iterable[Any]) -> dict[int, Any]:
    """Return the leaf tensors of a tape by their ids."""
    return {id(node.variable): node.variable for node in nodes if node.name() == LEAF}


def saved_bytes(nodes: Iterable[Any], without: Iterable[Any]) -> int | None:
    """Return the bytes that a tape keeps for its backward pass, each storage once; None if torch does not tell.

    Args:
        nodes: the operations.
        without: tensors that exist anyway: parameters and buffers.
    """
    known = {_storage(tensor) for tensor in without}
    found: dict[Any, int] = {}
    for node in nodes:
        for tensor in _saved(node):
            if tensor is None:
                return None
            storage = _storage(tensor)
            if storage is not None and storage not in known:
                found[storage] = tensor.untyped_storage().nbytes()
    return sum(found.values())


def _saved(node: Any) -> Iterator[Any]:
    """Yield the tensors that an operation keeps; None once if this torch cannot show them without unpacking."""
    import torch

    for name in _saved_names(node.__class__):
        held = getattr(node, name, None)
        for one in held if isinstance(held, tuple | list) else (held,):
            if one is not None and not hasattr(one, "data"):
                yield None
                return
            data = getattr(one, "data", None)
            if isinstance(data, torch.Tensor):
                yield data


@functools.lru_cache(maxsize=1024)
def _saved_names(kind: type) -> tuple[str, ...]:
    return tuple(name for name in dir(kind) if name.startswith("_raw_saved_"))


def _storage(tensor: Any) -> Any:
    try:
        return tensor.untyped_storage()._cdata
    except (RuntimeError, NotImplementedError, AttributeError):  # sparse, or without a storage
        return None


def cover(module: Any, wanted: Set[int], name: str = "") -> list[str]:
    """Return the fewest names of modules and parameters that hold exactly the trainable parameters with these ids.

    >>> import torch
    >>> net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
    >>> cover(net, {id(p) for p in net[0].parameters()} | {id(net[1].bias)})
    ['0', '1.bias']
    """
    met: set[int] = set()
    return [uncompiled_name(one) for one in _cover(module, wanted, name, met)]


def _cover(module: Any, wanted: Set[int], name: str, met: set[int]) -> Iterator[str]:
    held = {id(parameter) for parameter in module.parameters() if parameter.requires_grad} - met
    if not held or wanted.isdisjoint(held):
        return
    if held <= wanted:
        met |= held
        yield name
        return
    for key, parameter in module._parameters.items():
        if parameter is not None and id(parameter) in held & wanted and id(parameter) not in met:
            met.add(id(parameter))
            yield joined(name, key)
    for key, child in module._modules.items():
        if child is not None:
            yield from _cover(child, wanted, joined(name, key), met)
