"""Record the outputs of layers, or replace them."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import nn

from truestep.debugging._nested import mapped, shape
from truestep.debugging._visible import visible
from truestep.errors import BadPatch, ModuleNotCalled, UnknownModule

Patch = torch.Tensor | Callable[[Any], Any]


class Features(Mapping[str, Any]):
    """Outputs of modules by name: of the last call, or of every call in a list.

    They are kept after the context is left.
    """

    def __init__(self, names: Sequence[str], every_call: bool) -> None:
        self._names = list(names)
        self._every_call = every_call
        self._kept: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name in self._kept:
            return self._kept[name]
        if name not in self._names:
            near = difflib.get_close_matches(name, self._names, n=1, cutoff=0.5)
            raise UnknownModule(
                f'"{name}" was not recorded',
                expected=f"expected one of {self._names}",
                remedy=f'write "{near[0]}"' if near else "pass its name to features()",
            )
        raise ModuleNotCalled(
            f'"{name}" was not called',
            expected=f"expected a call of the model inside the context; recorded so far: {sorted(self._kept)}",
            remedy="call the model as model(x): model.forward(x) runs no hooks",
        )

    def __contains__(self, name: object) -> bool:
        return name in self._kept

    def __iter__(self) -> Iterator[str]:
        return iter(self._kept)

    def __len__(self) -> int:
        return len(self._kept)

    def __repr__(self) -> str:
        return f"Features({{{', '.join(f'{name!r}: {shape(value)}' for name, value in self._kept.items())}}})"

    def clear(self) -> None:
        """Drop all recorded outputs."""
        self._kept.clear()

    def _keep(self, name: str, value: Any) -> None:
        if self._every_call:
            self._kept.setdefault(name, []).append(value)
        else:
            self._kept[name] = value


@contextmanager
def features(
    model: nn.Module,
    names: Sequence[str] = (),
    *,
    patch: Mapping[str, Patch] | None = None,
    detach: bool = True,
    every_call: bool = False,
) -> Iterator[Features]:
    """Context manager: record the outputs of modules while it is open, and replace outputs that have a patch.

    Outputs are copied, so that a later layer that works in place does not change them. The hooks are removed when the
    context is left, also by an exception.

    Args:
        model: any model that is not compiled.
        names: names of modules, as in `model.named_modules()`.
        patch: replacements of outputs, by name: a tensor of the same shape, or a function from the output to its
            replacement. The replacement is recorded, not the output.
        detach: False keeps the graph, so that a loss on features reaches the model.
        every_call: True to record the outputs of every call in a list, instead of the last one.

    Raises:
        UnknownModule: no module has that name, or it is inside torch.compile or TorchScript.
        BadPatch: a tensor of another shape, or neither a tensor nor a function.
        ModuleNotCalled: on reading, the module was not called.

    Source: Vig et al., Investigating gender bias in language models using causal mediation analysis (NeurIPS 2020), for
    uses of patching.

    Example:
        >>> model = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
        >>> with features(model, ["0"]) as kept:
        ...     y = model(torch.ones(4, 2))
        >>> kept["0"].shape
        torch.Size([4, 3])
        >>> with features(model, patch={"0": kept["0"] * 0}):
        ...     model(torch.ones(4, 2)).abs().max().item()
        0.0
    """
    if isinstance(names, str):
        names = [names]
    patches = dict(patch or {})
    for name, instead in patches.items():
        if not isinstance(instead, torch.Tensor) and not callable(instead):
            raise BadPatch(
                f'the patch of "{name}" must be a tensor or a function of the output, got {type(instead).__name__}',
                remedy=f'pass patch={{"{name}": lambda output: ...}}',
            )
    kept = Features([*names, *(name for name in patches if name not in names)], every_call)
    found = visible(model, exact=False)
    modules = {name: found.module(name) for name in kept._names}

    def hook(name: str) -> Callable[[nn.Module, Any, Any], Any]:
        def returned(_: nn.Module, args: Any, output: Any) -> Any:
            if name in patches:
                output = _patched(name, patches[name], output)
            if torch._C._current_graph_task_id() == -1:  # else activation checkpointing recomputes
                kept._keep(name, mapped(output, _detached if detach else torch.clone))
            return output if name in patches else None

        return returned

    with ExitStack() as stack:
        for name, module in modules.items():
            stack.callback(module.register_forward_hook(hook(name)).remove)
        yield kept


def _detached(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().clone()


def _patched(name: str, instead: Patch, output: Any) -> Any:
    """Return the replacement of an output."""
    if not isinstance(instead, torch.Tensor):
        new = instead(output)
        if new is None:
            raise BadPatch(
                f'the patch of "{name}" returned None',
                expected=f"expected a replacement for {shape(output)}",
                remedy="return the changed output",
            )
        return new
    if not isinstance(output, torch.Tensor) or output.shape != instead.shape:
        raise BadPatch(
            f'the patch of "{name}" has another shape than its output',
            expected=f"expected {shape(output)}, got {shape(instead)}",
            remedy="pass a tensor of that shape, or a function",
        )
    return instead.to(output)
