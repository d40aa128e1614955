"""Depth of parameters in a stack of layers, for learning rates that fall towards the input."""

from __future__ import annotations

from torch import nn

from truestep.errors import BadPart
from truestep.seams.wrappers import bare


def depths(model: nn.Module, layers: str | None = None) -> tuple[dict[nn.Parameter, int], int]:
    """Return the depth of every parameter, and the depth of the head.

    Modules before the stack (embeddings) have depth 0, its layers 1, 2, ..., and modules after it the depth of the
    head, which is the number of layers plus one. Before and after refer to the order in which the model registered its
    modules; a tied parameter has the depth of its first place.

    Args:
        model: any module.
        layers: name of the `nn.ModuleList` or `nn.Sequential` with the layers as children; None takes the longest one
            with children of one type, if it holds at least half of the parameters.

    Raises:
        BadPart: the model has no such stack, or several candidates.

    Example:
        >>> model = nn.Sequential(nn.Embedding(9, 4), nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4)), nn.Linear(4, 2))
        >>> list(depths(model, layers="1")[0].values())
        [0, 1, 1, 2, 2, 3, 3]
    """
    stack = _named(model, layers) if layers is not None else _found(model)
    layer_of = {
        parameter: number for number, layer in enumerate(stack.children(), 1) for parameter in layer.parameters()
    }
    head = len(list(stack.children())) + 1
    found: dict[nn.Parameter, int] = {}
    reached = False
    for parameter in model.parameters():
        reached = reached or parameter in layer_of
        found[parameter] = layer_of.get(parameter, head if reached else 0)
    return found, head


def _stacks(model: nn.Module) -> dict[str, nn.Module]:
    return {
        bare(name): module
        for name, module in model.named_modules()
        if isinstance(module, nn.ModuleList | nn.Sequential) and any(True for _ in module.parameters())
    }


def _named(model: nn.Module, layers: str) -> nn.Module:
    stacks = _stacks(model)
    if layers not in stacks:
        raise BadPart(
            f'the model has no stack of layers called "{layers}"',
            expected=f"expected an nn.ModuleList or nn.Sequential: {', '.join(filter(None, stacks)) or 'it has none'}",
            remedy="pass its name as layers=",
        )
    return stacks[layers]


def _found(model: nn.Module) -> nn.Module:
    uniform = {
        name: stack
        for name, stack in _stacks(model).items()
        if len(list(stack.children())) > 1 and len({type(layer) for layer in stack.children()}) == 1
    }
    longest = max((len(list(stack.children())) for stack in uniform.values()), default=0)
    best = [name for name, stack in uniform.items() if len(list(stack.children())) == longest]
    if len(best) == 1:
        stack = uniform[best[0]]
        if 2 * _count(stack) >= _count(model):
            return stack
    raise BadPart(
        "layer_decay was given, but the stack of layers is ambiguous",
        expected=f"expected one nn.ModuleList or nn.Sequential of equal layers with half of the parameters, "
        f"got {_listed(uniform)}",
        remedy='pass its name, such as layers="encoder.layers"',
    )


def _count(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def _listed(stacks: dict[str, nn.Module]) -> str:
    names = [f"{name or 'the model itself'} ({len(list(stack.children()))})" for name, stack in stacks.items()]
    return ", ".join(names[:6]) or "none"
