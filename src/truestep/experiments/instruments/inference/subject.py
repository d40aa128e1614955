"""The model or the exports to time, with their inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree

from truestep.errors import BadInputs
from truestep.export.calls import Call
from truestep.export.comparing import TOLERANCES, tolerance_for
from truestep.export.config_file import names_of_free
from truestep.export.examples import edge_calls
from truestep.export.formats import Source
from truestep.export.shapes import free_dimensions
from truestep.export.tracing import traced


@dataclass
class Subject:
    """The model or the exports that are timed.

    Attributes:
        calls: real inputs, on the CPU.
        folder: an empty folder for exports that are written for the measurement.
        model: in eval mode, on the CPU; None if only exports are known.
        exports: folder by format; that of a quantised one begins with "int8 ".
    """

    calls: Sequence[Call]
    folder: Path
    model: nn.Module | None = None
    exports: Mapping[str, Path] = field(default_factory=dict)

    @cached_property
    def source(self) -> Source:
        """The trace of the model, for the formats of exports.

        Raises:
            NotExportable: the model cannot be traced; the message has its line.
        """
        assert self.model is not None
        dims = free_dimensions(self.calls)
        program = traced(self.model, self.calls, dims, edge_calls(self.calls, dims)).program
        free = names_of_free(self.calls[0], {name: sorted(each) for name, each in dims.items()})
        return Source(self.model, program, self.calls[0].names, free)

    @property
    def tolerance(self) -> float:
        """Largest relative difference between equal outputs."""
        return TOLERANCES[torch.float32] if self.model is None else tolerance_for(self.model)

    def call(self, batch: int) -> Call:
        """Return a call with a number of samples, from the largest real batch."""
        return max(self.calls, key=lambda call: call.size).rows(batch)


class Constant(nn.Module):
    """A model with the tensors of a call as inputs; the other arguments stay as they are.

    Args:
        model: any module.
        args: positional arguments of the call.
        kwargs: keyword arguments of the call.
    """

    def __init__(self, model: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        super().__init__()
        self.model = model
        self._leaves, self._shape = _pytree.tree_flatten((args, dict(kwargs)))
        self._places = [at for at, leaf in enumerate(self._leaves) if isinstance(leaf, torch.Tensor)]

    @property
    def tensors(self) -> tuple[torch.Tensor, ...]:
        """The tensors of the call, in order."""
        return tuple(self._leaves[at] for at in self._places)

    def forward(self, *tensors: torch.Tensor) -> Any:
        """Return the output of the model for other tensors."""
        leaves = list(self._leaves)
        for at, tensor in zip(self._places, tensors, strict=True):
            leaves[at] = tensor
        args, kwargs = _pytree.tree_unflatten(leaves, self._shape)
        return self.model(*args, **kwargs)


def subject_of_call(model: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any], folder: Path) -> Subject:
    """Return the subject for a model and the arguments of one call.

    Args:
        model: any module; it is moved to the CPU, in eval mode.
        args: positional arguments.
        kwargs: keyword arguments.
        folder: an empty folder.

    Raises:
        BadInputs: the call has no tensor.
    """
    model = model.cpu().eval()
    given = {name: value for name, value in kwargs.items() if value is not None}
    if all(isinstance(value, torch.Tensor) for value in (*args, *given.values())) and (args or given):
        names = (*(f"input_{at}" for at in range(len(args))), *given)
        call = Call(tuple(args), given, names).copied()
        return Subject([call], folder, model)
    fixed = Constant(model, args, kwargs).eval()
    if not fixed.tensors:
        raise BadInputs(
            f"{type(model).__name__} was called without a tensor",
            expected="expected tensors: they give the size of the batch",
            remedy="name another model with --variable",
        )
    tensors = fixed.tensors
    return Subject([Call(tensors, {}, tuple(f"input_{at}" for at in range(len(tensors)))).copied()], folder, fixed)
