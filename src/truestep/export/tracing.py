"""`torch.export` of a model in eval mode, with free dimensions; a line of the model that stops it is explained."""

from __future__ import annotations

import copy
import importlib
import inspect
import random
import re
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.export import ExportedProgram
from torch.utils._pytree import tree_map

from truestep.errors import BadInputs, NotExportable
from truestep.export import causes
from truestep.export.calls import Call
from truestep.export.outputs import compared, leaves
from truestep.export.refusals import Line, explained, fixed_sizes, quiet, refusal
from truestep.export.shapes import Dims, example
from truestep.export.side_effects import OF_TORCH, Watch, calling, changed_input, random_operator
from truestep.model.boundary import add_post_mortem
from truestep.model.modes import evaluating

_REPEATED = 1e-4
"""Largest relative difference of two calls with the same inputs: sums in another order, by several threads."""


@dataclass(frozen=True)
class Traced:
    """The trace of a model.

    Attributes:
        program: the graph with its weights.
        notes: facts about the model that its export does not have.
    """

    program: ExportedProgram
    notes: tuple[str, ...]


class Plain(nn.Module):
    """A model with outputs in tuples, lists and dictionaries, which load without the model's Python.

    Args:
        model: any module; outputs that are mappings, named tuples or data classes become dictionaries and tuples, and
            parts without a tensor are left out.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, *inputs: torch.Tensor, **named: torch.Tensor) -> Any:
        """Return the outputs of the model in plain containers."""
        return plain(self.model(*inputs, **named))


def plain(output: Any) -> Any:
    """Return an output in tuples, lists and dictionaries; None for a part without tensors.

    Example:
        >>> from collections import OrderedDict
        >>> plain(OrderedDict(logits=torch.ones(1), cache=None))
        {'logits': tensor([1.])}
    """
    if isinstance(output, torch.Tensor):
        return output
    if isinstance(output, Mapping):
        parts = {str(name): plain(part) for name, part in output.items()}
        return {name: part for name, part in parts.items() if part is not None} or None
    if isinstance(output, tuple | list):
        kept = [made for part in output if (made := plain(part)) is not None]
        return (kept if type(output) is list else tuple(kept)) or None
    fields = getattr(output, "__dataclass_fields__", None)
    return None if fields is None else plain({name: getattr(output, name) for name in fields})


def others(output: Any) -> list[str]:
    """Return the types of the parts of an output that are neither tensors nor None.

    Example:
        >>> others((torch.ones(1), {"count": 3}, None))
        ['int']
    """
    if isinstance(output, Mapping):
        return [kind for part in output.values() for kind in others(part)]
    if isinstance(output, tuple | list):
        return [kind for part in output for kind in others(part)]
    fields = getattr(output, "__dataclass_fields__", None)
    if fields is not None:
        return [kind for name in fields for kind in others(getattr(output, name))]
    return [] if output is None or isinstance(output, torch.Tensor) else [type(output).__name__]


def is_plain(output: Any) -> bool:
    """Return True if an output consists of tensors in tuples, lists and dictionaries only."""
    if type(output) in (tuple, list):
        return bool(output) and all(map(is_plain, output))
    if type(output) is dict:
        return bool(output) and all(map(is_plain, output.values()))
    return isinstance(output, torch.Tensor)


def traced(model: nn.Module, calls: Sequence[Call], dims: Dims, edges: Sequence[tuple[str, Call]] = ()) -> Traced:
    """Return the trace of a model in eval mode. Modes, gradients and buffers are restored.

    torch can assume that no size is 1, or assume nothing. Either way can end in a graph that refuses a size, such as
    one sample or one word, so that the second way is tried if the first one refuses some of the edges.

    Args:
        model: on the CPU, not compiled.
        calls: calls with real inputs.
        dims: free dimensions of each input.
        edges: kinds and calls of edge shapes.

    Raises:
        NotExportable: the model cannot be exported; the message has its line.
        BadInputs: the model cannot be called with the inputs.
    """
    call = example(calls, dims)
    with evaluating(model), _without_cache(model), _restored(model):
        notes, wrapped, repeats = _called_twice(model, call)
        module = Plain(model).eval() if wrapped else model
        program = _accepting(module, call, dims, edges)
        chosen = _chosen_by_size(module, call, dims, program, edges)
        if chosen is not None:
            raise chosen
        line = changed_input(program)
        if line is not None:
            raise refusal(causes.IN_PLACE, line)
        drawn = random_operator(program)
        if drawn is not None:
            raise _draws(*drawn)
        if not repeats:
            raise refusal(causes.UNREPEATABLE, None, name=type(model).__name__)
    return Traced(program, tuple(notes))


def _draws(name: str, line: Line | None) -> NotExportable:
    """Return the error for an operator that draws random numbers."""
    if "dropout" in name:
        cause = causes.DROPOUT
    elif line is not None and re.search(r"\bnn\.[A-Z]\w*\(", line.code):
        cause = causes.LAYER
    else:
        cause = causes.RANDOM
    return refusal(cause, line, detail="" if cause is causes.LAYER else f"operator {name}")


def _called_twice(model: nn.Module, call: Call) -> tuple[list[str], bool, bool]:
    """Call a model twice with the same inputs and random states.

    Returns:
        Notes on changed attributes and on outputs other than tensors; True if the outputs need plain containers; True
        if both calls gave the same outputs.

    Raises:
        NotExportable: outputs differ because of the model's own state, or of random numbers of Python.
    """
    watch = Watch(model)
    state = torch.random.get_rng_state()
    first = _call(model, call.copied())
    if plain(first) is None:
        raise refusal(causes.cause_of("not a known type", ""), None, name=f"forward of {type(model).__name__}")
    if any(leaf.layout != torch.strided or leaf.is_nested for leaf in leaves(plain(first))):
        raise refusal(causes.SPARSE, None, name=f"forward of {type(model).__name__}")
    changes, drew = watch.changes(), watch.drew
    held = tree_map(lambda leaf: leaf.detach().clone(), plain(first))  # the model may keep it, and change it
    torch.random.set_rng_state(state)
    again = plain(_call(model, call.copied()))
    if drew and not _same(held, again):
        line = calling(model, r"(random|np\.random|numpy\.random)\.\w+|(self\.)?_?rng\.\w+")
        raise refusal(causes.PYTHON_RANDOM, line, name=type(model).__name__)
    if changes and not _same(held, again):
        line = next((change.line for change in changes if change.line is not None), None)
        raise refusal(causes.SIDE_EFFECT, line, detail=", ".join(map(str, changes)), name=type(model).__name__)
    notes = [
        f"{change} changes in forward{f' ({change.line})' if change.line else ''}; in the exported model it does not"
        for change in changes
    ]
    notes += [
        f"forward also returns a value of type {kind}: the exported model returns tensors only"
        for kind in others(first)
    ]
    found = compared(leaves(held), leaves(again))
    return notes, not is_plain(first), not found["fault"] and found["relative"] <= _REPEATED


def _call(model: nn.Module, call: Call) -> Any:
    try:
        return model(*call.args, **call.kwargs)
    except Exception as error:  # models raise many types
        add_post_mortem(error)
        shapes = ", ".join(f"{name} {list(t.shape)}" for name, t in zip(call.names, call.tensors, strict=True))
        note = "; ".join(getattr(error, "__notes__", ()))
        raise BadInputs(
            f"{type(model).__name__} cannot be called with a batch: {type(error).__name__}: {error}",
            expected=note or f"inputs of the call: {shapes}",
            remedy="pass inputs=, a function from a batch to the inputs of the model",
        ) from error


def _accepting(module: nn.Module, call: Call, dims: Dims, edges: Sequence[tuple[str, Call]]) -> ExportedProgram:
    """Return the trace that refuses fewer of the edges, of one that assumes sizes above 1 and one that does not."""
    program = _exported(module, call, dims)
    refused = _refused(program, edges)
    if not any(refused):
        return program
    try:
        with _sizes_of_one():
            other = _exported(module, call, dims)
    except NotExportable:
        return program
    return other if _refused(other, edges) < refused else program


def _refused(program: ExportedProgram, edges: Sequence[tuple[str, Call]]) -> tuple[int, int]:
    """Return the numbers of edges that a graph refuses: sizes of the batch, and short other dimensions."""
    refused = {"edge": 0, "short": 0}
    graph = program.module()
    for kind, call in edges:
        refused[kind] += not _accepts(graph, call)
    return refused["edge"], refused["short"]


def _accepts(module: nn.Module, call: Call) -> bool:
    return _shapes(module, call) is not None


def _shapes(module: nn.Module, call: Call) -> list[torch.Size] | None:
    """Return the shapes of the outputs of a model or a graph; None if it cannot be called."""
    given = call.copied()
    try:
        output = module(*given.args, **given.kwargs)
    except Exception:  # guards and operators raise many types
        return None
    return [leaf.shape for leaf in leaves(plain(output))]


def _chosen_by_size(
    module: nn.Module, call: Call, dims: Dims, program: ExportedProgram, edges: Sequence[tuple[str, Call]]
) -> NotExportable | None:
    """Return the refusal of a model that chooses by the size of the batch; None if the graph does the same."""
    graph = program.module()
    wanted = [
        (edge, shapes) for kind, edge in edges if kind == "edge" and (shapes := _shapes(module, edge)) is not None
    ]
    if all(_shapes(graph, edge) == shapes for edge, shapes in wanted):
        return None
    with _sizes_of_one():
        found = fixed_sizes(lambda: _trace(module, call, _spec(module, call, dims)))
    return None if found.line is None else refusal(found.cause, found.line, detail=found.dimension)


def _trace(module: nn.Module, call: Call, spec: Any) -> ExportedProgram:
    given = call.copied()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # on attributes, which are reported as notes, and of torch on itself
        return torch.export.export(module, given.args, given.kwargs, dynamic_shapes=spec)


def _exported(module: nn.Module, call: Call, dims: Dims) -> ExportedProgram:
    try:
        with quiet():
            return _trace(module, call, _spec(module, call, dims))
    except Exception as error:  # torch raises many types
        if "Constraints violated" in str(error) or "Specializations unexpectedly required" in str(error):
            auto = {name: dict.fromkeys(free, torch.export.Dim.AUTO) for name, free in dims.items()}
            found = fixed_sizes(lambda: _trace(module, call, _spec(module, call, auto)))
            raise refusal(found.cause, found.line, detail=found.dimension, name=type(module).__name__) from error
        raise _hidden(error, module) or explained(error, module) from error


def _hidden(error: Exception, module: nn.Module) -> NotExportable | None:
    """Return the refusal for a tensor that torch made without recording it; None for other errors."""
    if not re.search(r"fake tensor in the exported program constant|functorch tensor", str(error)):
        return None
    for cause, pattern in (
        (causes.GRADIENT, r"(torch\.)?(autograd|func)\.(grad|jac\w+|hessian|jvp|vjp)|grad|.+\.backward"),
        (causes.DATA, r"(?!self\.data$).+\.data"),
    ):
        if (line := calling(module, pattern)) is not None:
            return refusal(cause, line)
    return None


@contextmanager
def _sizes_of_one() -> Iterator[None]:
    """Trace without assuming that no size is 0 or 1, so that one word, or a difference of lengths of 1, is accepted."""
    config: Any = importlib.import_module("torch.fx.experimental._config")
    if not hasattr(config, "backed_size_oblivious"):
        yield
        return
    with config.patch(backed_size_oblivious=True):
        yield


def _spec(module: nn.Module, call: Call, dims: Dims) -> dict[str, Any]:
    """Return the free dimensions in the structure of the signature, as `torch.export` expects them."""
    spec: dict[str, Any] = {}
    given = [(name, dims.get(name, {})) for name in call.names]
    count = len(call.args)
    parameters = list(inspect.signature(module.forward).parameters.values())
    for parameter in parameters:
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            if rest := tuple(free for _, free in given[len(spec) : count]):
                spec[parameter.name] = rest
        elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
            if named := {name: free for name, free in given[count:] if name not in spec}:
                spec[parameter.name] = named
        elif len(spec) < count and not any(isinstance(value, tuple) for value in spec.values()):
            spec[parameter.name] = given[len(spec)][1]
        elif parameter.name in call.kwargs:
            spec[parameter.name] = dims.get(parameter.name, {})
    return spec


@contextmanager
def _without_cache(model: nn.Module) -> Iterator[None]:
    """Switch the cache of models of transformers off: an exported call has no state of earlier ones."""
    config: Any = getattr(model, "config", None)
    if getattr(config, "use_cache", None) is not True:
        yield
        return
    config.use_cache = False
    try:
        yield
    finally:
        config.use_cache = True


@contextmanager
def _restored(model: nn.Module) -> Iterator[None]:
    """Restore buffers, the user's attributes and the random states that a forward pass changes."""
    held = [(module, dict(vars(module))) for module in model.modules()]
    buffers = [(buffer, buffer.clone()) for buffer in model.buffers()]
    own_values = [value for _, own in held for name, value in own.items() if name not in OF_TORCH]
    containers = [(value, copy.copy(value)) for value in own_values if type(value) in (list, dict, set)]
    state, python = torch.random.get_rng_state(), random.getstate()
    numpy = sys.modules.get("numpy")
    arrays = None if numpy is None else numpy.random.get_state()
    try:
        yield
    finally:
        torch.random.set_rng_state(state)
        random.setstate(python)
        if numpy is not None and arrays is not None:
            numpy.random.set_state(arrays)
        with torch.no_grad():
            for buffer, before in buffers:
                buffer.copy_(before)
        for module, own in held:
            for name in [name for name in vars(module) if name not in own]:
                delattr(module, name)
            for name, value in own.items():
                if vars(module).get(name) is not value:
                    vars(module)[name] = value
        for value, before in containers:
            value.clear()
            if isinstance(value, list):
                value.extend(before)
            else:
                value.update(before)


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor):
        return isinstance(other, torch.Tensor) and one.shape == other.shape and torch.equal(one, other)
    if isinstance(one, dict):
        return isinstance(other, dict) and one.keys() == other.keys() and all(_same(one[k], other[k]) for k in one)
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(_same, one, other))
    return one is other
