"""The tensors of one call of a model, by the names of its arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from truestep.errors import BadInputs

Batch = Any
Chosen = Callable[[Batch], Any]
"""A function from a batch to the inputs of a model: a tensor, a tuple of tensors, or a mapping by argument."""

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_LABELS = ("labels", "label")


@dataclass(frozen=True)
class Call:
    """The arguments of one call of a model.

    Attributes:
        args: positional arguments, all tensors.
        kwargs: keyword arguments, all tensors, in the order of the signature.
        names: names of all of them, in order.
    """

    args: tuple[torch.Tensor, ...]
    kwargs: dict[str, torch.Tensor]
    names: tuple[str, ...]

    @property
    def tensors(self) -> tuple[torch.Tensor, ...]:
        """All arguments, in the order of `names`."""
        return (*self.args, *self.kwargs.values())

    @property
    def size(self) -> int:
        """Size of the batch: that of the first dimension of the first argument that has one."""
        return next((len(tensor) for tensor in self.tensors if tensor.dim()), 1)

    def mapped(self, change: Callable[[str, torch.Tensor], torch.Tensor]) -> Call:
        """Return a call with changed tensors."""
        new = [change(name, tensor) for name, tensor in zip(self.names, self.tensors, strict=True)]
        count = len(self.args)
        return Call(tuple(new[:count]), dict(zip(self.kwargs, new[count:], strict=True)), self.names)

    def rows(self, count: int) -> Call:
        """Return a call with the first `count` samples, repeated from the start if there are fewer."""
        size = self.size
        places = torch.arange(count) % size

        def part(_: str, tensor: torch.Tensor) -> torch.Tensor:
            return tensor.index_select(0, places) if tensor.dim() and len(tensor) == size else tensor

        return self.mapped(part)

    def copied(self) -> Call:
        """Return a call with copies of the tensors on the CPU, which a model can change without harm."""
        return self.mapped(lambda _, tensor: tensor.detach().to("cpu", copy=True).contiguous())


def call_from(model: nn.Module, batch: Batch, chosen: Chosen | None = None) -> Call:
    """Return the call of a model for a batch.

    Without `chosen`, a tensor is the only argument. Of a tuple, the first fields are passed, as many as `forward` has
    required arguments, at least one. Of a mapping, the entries with the name of an argument are passed, without labels.

    Args:
        model: any module.
        batch: of a loader.
        chosen: returns the inputs of a batch.

    Raises:
        BadInputs: the batch has no such inputs, or one of them is not a tensor.

    Example:
        >>> class Bag(nn.Module):
        ...     def forward(self, tokens, lengths, mask=None): ...
        >>> call_from(Bag(), (torch.ones(2, 3), torch.ones(2), torch.zeros(2))).names
        ('tokens', 'lengths')
    """
    signature = inspect.signature(model.forward)
    named = {name: each for name, each in signature.parameters.items() if each.kind in _POSITIONAL}
    given: Any = batch if chosen is None else chosen(batch)
    if isinstance(given, Mapping):
        wanted = [name for name in signature.parameters if name in given]
        kept = [name for name in wanted if chosen is not None or name not in _LABELS]
        if not kept:
            raise BadInputs(
                f"the batch has no input of {type(model).__name__}",
                expected=f"expected one of {', '.join(signature.parameters)}, got {', '.join(map(str, given))}",
                remedy='pass inputs=, a function from a batch to the inputs, such as lambda batch: batch["x"]',
            )
        return _bound(model, [], {name: given[name] for name in kept if given[name] is not None}, list(named))
    if isinstance(given, tuple | list) and chosen is None:
        required = sum(each.default is inspect.Parameter.empty for each in named.values())
        given = given[: max(1, required)]
    fields = list(given) if isinstance(given, tuple | list) else [given]
    return _bound(model, fields, {}, list(named))


def _bound(model: nn.Module, fields: Sequence[Any], by_name: Mapping[str, Any], names: list[str]) -> Call:
    """Return a call with as many positional arguments as possible, since exported graphs keep the convention."""
    place = len(fields)
    fields, by_name = list(fields), dict(by_name)
    while place < len(names) and names[place] in by_name:
        fields.append(by_name.pop(names[place]))
        place += 1
    labels = [names[at] if at < len(names) else f"input_{at}" for at in range(len(fields))]
    for label, value in (*zip(labels, fields, strict=True), *by_name.items()):
        if not isinstance(value, torch.Tensor):
            raise BadInputs(
                f"input {label!r} of {type(model).__name__} is a {type(value).__name__}",
                expected="expected tensors: an exported graph takes nothing else",
                remedy="pass inputs=, a function from a batch to tensors, and set other arguments in the model",
            )
    return Call(tuple(fields), by_name, (*labels, *by_name))
