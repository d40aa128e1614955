"""The blocks of a model: modules of given types, or its repeated ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torch import nn

from truestep.errors import BadPart
from truestep.seams.wrappers import bare

Kinds = type[nn.Module] | Sequence[type[nn.Module]]


def blocks_of(model: nn.Module, kinds: Kinds, argument: str) -> dict[str, nn.Module]:
    """Return the blocks of some types inside a model, by name. Of nested blocks, the outermost is taken.

    Args:
        model: any module.
        kinds: the types of its blocks, such as `nn.TransformerEncoderLayer`.
        argument: name of the argument with the types, for the message.

    Raises:
        BadPart: `kinds` holds something other than types of modules, or the model has no such block.
    """
    wanted = tuple(kinds) if isinstance(kinds, list | tuple | set) else (kinds,)
    if not wanted or not all(isinstance(kind, type) and issubclass(kind, nn.Module) for kind in wanted):
        raise BadPart(
            f"{argument} must be types of modules, got {kinds!r}",
            remedy=f"pass the class of the blocks: {argument}=[Block]",
        )
    blocks = dict(_outermost(model, wanted))
    if not blocks:
        raise _no_block(model, wanted)
    return blocks


def repeated_blocks(model: nn.Module) -> dict[str, nn.Module]:
    """Return the repeated blocks of a model, by name: the children of containers with several of one class.

    Of nested containers, the outermost is taken. A model without such a container has none.

    Example:
        >>> layers = nn.ModuleList(nn.Sequential(nn.Linear(2, 2), nn.Tanh()) for _ in range(2))
        >>> list(repeated_blocks(nn.ModuleDict({"layers": layers, "head": nn.Linear(2, 1)})))
        ['layers.0', 'layers.1']
    """
    return dict(_repeated(model))


def _outermost(
    module: nn.Module, kinds: tuple[type[nn.Module], ...], above: str = ""
) -> Iterator[tuple[str, nn.Module]]:
    for name, child in module.named_children():
        if isinstance(child, kinds):
            yield bare(above + name), child
        else:
            yield from _outermost(child, kinds, f"{above}{name}.")


def _repeated(module: nn.Module, above: str = "") -> Iterator[tuple[str, nn.Module]]:
    children = [(name, child) for name, child in module.named_children() if any(True for _ in child.parameters())]
    if isinstance(module, nn.ModuleList | nn.Sequential | nn.ModuleDict):
        if len(children) > 1 and len({type(child) for _, child in children}) == 1:
            yield from ((bare(above + name), child) for name, child in children)
            return
    for name, child in children:
        yield from _repeated(child, f"{above}{name}.")


def _no_block(model: nn.Module, kinds: tuple[type[nn.Module], ...]) -> BadPart:
    counts: dict[str, int] = {}
    for module in list(model.modules())[1:]:
        if any(True for _ in module.parameters()):
            counts[type(module).__name__] = counts.get(type(module).__name__, 0) + 1
    most = [f"{name} ({count})" for name, count in sorted(counts.items(), key=lambda item: -item[1])[:6]]
    return BadPart(
        f"the model has no {' or '.join(kind.__name__ for kind in kinds)}",
        expected=f"expected a type of blocks inside the model, which has {', '.join(most) or 'no submodules'}",
        remedy="pass the class of its repeated blocks",
    )
