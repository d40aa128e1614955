"""Activation checkpointing by type of block, without wrappers: classes, names and keys do not change."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import nullcontext
from types import MethodType
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from truestep.errors import BadPart
from truestep.model.blocks import Kinds, blocks_of

Buffer = tuple[nn.Module, str]

_CHANGING = "_recompute_changing"
"""Attribute of a block with the buffers that its forward pass writes to; None before the first pass."""


def recompute(model: nn.Module, kinds: Kinds) -> list[str]:
    """Make blocks of some types save only their inputs, and recompute the rest in the backward pass.

    Gradients equal those of the plain model, bit for bit: random numbers (dropout) are drawn again from the same state,
    with the same autocast. Buffers that the forward pass writes to (the statistics of BatchNorm) are written once: the
    second pass starts from the values at the start of the first, and its writes are dropped. Blocks keep their classes
    and names, the model the keys of its `state_dict`; a copy of the model recomputes too. Forward hooks inside blocks
    run twice.

    Args:
        model: any module, before or after it is compiled.
        kinds: the types of its blocks, such as `nn.TransformerEncoderLayer`. Of nested blocks, the outermost is taken.

    Returns:
        The names of the blocks.

    Raises:
        BadPart: `kinds` holds something other than types of modules, or the model has no such block.

    Source: Chen et al. (arXiv:1604.06174); `torch.utils.checkpoint` with `use_reentrant=False`.

    Example:
        >>> block = nn.Sequential(nn.Linear(2, 8), nn.Dropout(), nn.Linear(8, 2))
        >>> model = nn.Sequential(block, nn.Linear(2, 1))
        >>> recompute(model, nn.Sequential)
        ['0']
    """
    blocks = blocks_of(model, kinds, "recompute")
    for block in blocks.values():
        if not is_recomputed(block):
            if "forward" in vars(block):
                raise BadPart(
                    f"the forward of {type(block).__name__} was replaced on the module itself",
                    expected="expected the forward pass of the class",
                    remedy="call recompute before other tools change the forward pass",
                )
            vars(block)[_CHANGING] = None
            vars(block)["forward"] = MethodType(_recomputing(type(block)), block)  # type: ignore[arg-type]
    return list(blocks)


def is_recomputed(block: nn.Module) -> bool:
    """Return True if a block recomputes its forward pass."""
    return _CHANGING in vars(block)


@functools.cache
def _recomputing(kind: type[nn.Module]) -> Callable[..., Any]:
    """Return a recomputing forward pass for a class. It refers to no module, so that a copied block calls itself."""
    plain = kind.forward

    @functools.wraps(plain)
    def forward(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
        if not torch.is_grad_enabled() or torch.compiler.is_exporting():
            return plain(self, *args, **kwargs)
        if torch.compiler.is_compiling():  # compiled code writes buffers once, even if it recomputes
            return checkpoint(plain, self, *args, use_reentrant=False, **kwargs)
        buffers = Buffers(self)
        result = checkpoint(
            plain, self, *args, use_reentrant=False, context_fn=lambda: (nullcontext(), buffers), **kwargs
        )
        buffers.learn()
        return result

    forward.__name__ = "forward"  # a pickled method is found again by this name
    return forward


class Buffers:
    """The buffers that a block's forward pass writes to; as a context manager, it replaces them in the second pass.

    They are found by value in the block's first pass, and by version in every later one. The statistics of norm layers
    in train mode are always included: torch writes them without a new version. Inside the context, the block has copies
    of the values at the start of the first pass; after it, the buffers are restored, unchanged.

    Args:
        block: a block that is about to compute its first pass.
    """

    def __init__(self, block: nn.Module) -> None:
        self._block = block
        changing: list[Buffer] | None = vars(block)[_CHANGING]
        everything = [(module, name) for module in block.modules() for name in module._buffers]
        self._is_new = changing is None
        if changing is not None:
            changing = [*changing, *(buffer for buffer in everything if _counts(buffer[0]))]
        self._begun = {buffer: _copy(_read(buffer)) for buffer in (everything if changing is None else changing)}
        self._versions = [
            (buffer, tensor, 0 if tensor is None else tensor._version)
            for buffer, tensor in ((buffer, _read(buffer)) for buffer in everything if buffer not in self._begun)
        ]
        self._kept: list[dict[Buffer, torch.Tensor | None]] = []

    def learn(self) -> None:
        """Record which buffers the first pass wrote to."""
        if self._is_new:  # reads values, once per block
            self._begun = {buffer: old for buffer, old in self._begun.items() if not _same(old, _read(buffer))}
        written = [
            buffer
            for buffer, tensor, version in self._versions
            if _read(buffer) is not tensor or (tensor is not None and tensor._version != version)
        ]
        self._begun.update((buffer, _copy(_read(buffer))) for buffer in written)
        if self._is_new or written:
            vars(self._block)[_CHANGING] = list(self._begun)

    def __enter__(self) -> None:
        self._kept.append({buffer: _read(buffer) for buffer in self._begun})
        for (module, name), value in self._begun.items():
            module._buffers[name] = _copy(value)

    def __exit__(self, *raised: object) -> None:
        for (module, name), value in self._kept.pop().items():
            module._buffers[name] = value


def _counts(module: nn.Module) -> bool:
    return module.training and isinstance(module, nn.modules.batchnorm._NormBase)


def _read(buffer: Buffer) -> torch.Tensor | None:
    module, name = buffer
    return module._buffers.get(name)


def _same(old: torch.Tensor | None, new: torch.Tensor | None) -> bool:
    return old is new if old is None or new is None else torch.equal(old, new)


def _copy(tensor: torch.Tensor | None) -> torch.Tensor | None:
    return None if tensor is None else tensor.detach().clone()
