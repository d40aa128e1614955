"""Inspect one step of a training while it runs, without changing it."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from traceback import walk_tb
from typing import Any

import torch
from torch import nn

from truestep import seams
from truestep.debugging._nested import shape, tensors
from truestep.debugging._record import CallRecord, ParameterRecord, Record, Values
from truestep.debugging._visible import joined, kind, titles, visible
from truestep.debugging.inspection import Inspection
from truestep.debugging.statistics import local
from truestep.errors import BadPart
from truestep.seams.wrappers import uncompiled_name

MOST = 100_000
"""Most tensors to measure: an inspection of more is around a whole training instead of a step, and stops."""


def inspect(
    *models: nn.Module, when: bool = True, updates: bool = True, names: dict[str, nn.Module] | None = None
) -> AbstractContextManager[Inspection]:
    """Context manager: inspect the step inside, with shapes, values and gradients by layer, and the first NaN.

    The step is part of the training: nothing is computed twice, no random number is drawn, and the weights after it are
    unchanged by the inspection. All hooks (on modules, their outputs, parameters and optimizers) are removed when the
    context is left, also by an exception, which gets a note with the module that raised it.

    Hooks are not called inside torch.compile and TorchScript: the table lists such parts as hidden, but has their
    parameters. The same holds for torch's transformer layer in eval mode, which computes differently if it has a hook.
    A copy of the model that is made while the context is open keeps hooks without effect.

    Args:
        *models: the models.
        when: False skips the inspection; for a context in a loop, such as `when=step == 100`.
        updates: True to measure how far each parameter moves; needs a copy of the parameters in CPU memory while an
            optimizer steps.
        names: names of the models, if there are several.

    Raises:
        BadPart: no model was passed, or an object that is not a module.

    Example:
        >>> model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
        >>> with inspect(model) as seen:
        ...     model(torch.ones(5, 4)).sum().backward()
        >>> [(layer.name, layer.calls[0].gives) for layer in seen.layers]
        [('', '(5, 2)'), ('0', '(5, 8)'), ('1', '(5, 8)'), ('2', '(5, 2)')]
        >>> seen.unreached, seen.first_nan
        ((), None)
    """
    if not models or not all(isinstance(model, nn.Module) for model in models):
        raise BadPart(
            f"inspect() takes one or more nn.Module, got {', '.join(type(m).__name__ for m in models) or 'none'}",
            remedy="write with inspect(model) as seen:",
        )
    if not when:
        return nullcontext(Inspection())
    return _inspecting(titles(models, names), updates)


@contextmanager
def _inspecting(models: dict[str, nn.Module], updates: bool) -> Iterator[Inspection]:
    seen, watcher = Inspection(), _Observer(models, updates)
    try:
        with ExitStack() as stack:
            watcher.attach(stack)
            yield seen
    except BaseException as error:
        watcher.note(error, seen)
        raise
    finally:
        watcher.record.write_into(seen)


class _Observer:
    """The hooks of one inspection, which write into a `Record`."""

    def __init__(self, models: dict[str, nn.Module], updates: bool) -> None:
        self.record = Record(", ".join(kind(model) for model in models.values()))
        self._models = models
        self._updates = updates
        self._running: list[CallRecord] = []
        self._raised: tuple[int, CallRecord] | None = None
        self._values: dict[int, tuple[Callable[[], torch.Tensor | None], int, Values]] = {}
        self._parameters: dict[int, ParameterRecord] = {}
        self._before: dict[int, dict[int, torch.Tensor]] = {}
        self._stack = ExitStack()
        self._open = False

    # --- attaching hooks ---

    def attach(self, stack: ExitStack) -> None:
        """Attach the hooks; `stack` removes them."""
        self._stack = stack
        stack.callback(self._close)
        for prefix, model in self._models.items():
            found = visible(model)
            for border in found.hidden:
                self.record.hide(joined(prefix, uncompiled_name(border.name)), border)
            for name, module in found.names.items():
                also = tuple(joined(prefix, other) for other in found.others.get(name, ()))
                self._hook(joined(prefix, name), module, also)
            self._hook_parameters(prefix, model)
        seams.step.watch(stack, before=self._stepping, after=self._stepped)
        self._open = True

    def _close(self) -> None:
        """Release every tensor. Hooks that were compiled into a function do nothing from now on."""
        self._open = False
        self._values.clear()
        self._before.clear()

    def _hook(self, name: str, module: nn.Module, also: tuple[str, ...]) -> None:
        self.record.add_module(name, module, also)

        def before(_: nn.Module, args: Any, kwargs: Any) -> None:
            if not torch.compiler.is_compiling() and self._open:
                self._guarded(self._begin, name, module, (args, kwargs))

        def after(_: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
            if not torch.compiler.is_compiling() and self._open:
                self._guarded(self._end, name, output)

        self._stack.callback(module.register_forward_pre_hook(before, with_kwargs=True).remove)
        self._stack.callback(module.register_forward_hook(after, with_kwargs=True, always_call=True).remove)

    def _hook_parameters(self, prefix: str, model: nn.Module) -> None:
        for name, parameter in model.named_parameters():
            if id(parameter) in self._parameters or nn.parameter.is_lazy(parameter):
                continue
            record = self.record.add_parameter(joined(prefix, uncompiled_name(name)), parameter)
            self._parameters[id(parameter)] = record
            if parameter.requires_grad and parameter.is_leaf:
                hook = parameter.register_post_accumulate_grad_hook(self._accumulated(record))  # type: ignore[no-untyped-call]
                self._stack.callback(hook.remove)
        for name, buffer in model.named_buffers():
            if buffer.is_floating_point():
                self.record.add_buffer(joined(prefix, uncompiled_name(name)), buffer)

    def _guarded(self, function: Callable[..., None], *args: Any) -> None:
        """Call a measuring function. An exception in it is recorded, and does not end the training."""
        try:
            function(*args)
        except Exception as error:
            self.record.trouble.append(f"{type(error).__name__}: {error}")

    # --- forward ---

    def _begin(self, name: str, module: nn.Module, given: tuple[Any, Any]) -> None:
        if torch._C._current_graph_task_id() != -1:
            return  # activation checkpointing recomputes
        if len(self.record.measured) > MOST:
            self._close()
            self.record.trouble.append(f"everything after {MOST:,} tensors; inspect is meant for single steps")
            return
        self._raised = None  # an earlier exception was handled
        args, kwargs = given
        takes = shape(args[0]) if len(args) == 1 and not kwargs else shape([*args, *kwargs.values()])
        call = CallRecord(name, kind(module), len(self._running), takes, error=id(sys.exc_info()[1]))
        call.parent = self._running[-1] if self._running else None
        self._running.append(call)
        self.record.began(call)
        for index, value in enumerate(args):
            call.inputs.extend((f"[{index}]{path}", self._held(tensor)) for path, tensor in tensors(value))
        for key, value in kwargs.items():
            call.inputs.extend((f".{key}{path}", self._held(tensor)) for path, tensor in tensors(value))

    def _end(self, name: str, output: Any) -> None:
        if torch._C._current_graph_task_id() != -1:
            return
        while self._running:
            call = self._running.pop()
            if call.name == name:
                break
        else:
            return
        error = sys.exc_info()[1]
        if output is None and error is not None and id(error) != call.error:
            call.raised = True
            if self._raised is None or self._raised[0] != id(error):
                self._raised = (id(error), call)
            return
        self._raised = None
        call.gives = shape(output)
        self.record.ended(call)
        for path, tensor in tensors(output):
            held = self._held(tensor)
            call.outputs.append((path, held))
            if held.call is None and tensor.requires_grad and not _wrapped(tensor):
                held.call = call
                hook = tensor.register_hook(self._flowed(held))  # type: ignore[no-untyped-call]
                self._stack.callback(hook.remove)

    def _held(self, tensor: torch.Tensor) -> Values:
        """Return the measured values of a tensor; it is measured again only after a change in place."""
        version = -1 if tensor.is_inference() or _wrapped(tensor) else tensor._version
        known = self._values.get(id(tensor))
        if known is not None and known[0]() is tensor and known[1] == version and version != -1:
            return known[2]
        held = Values(tensor)
        self.record.measured.append(held.measured)
        self._values[id(tensor)] = (_reference(tensor), version, held)
        return held

    # --- backward and steps ---

    def _flowed(self, held: Values) -> Callable[[torch.Tensor], None]:
        def flowed(gradient: torch.Tensor) -> None:
            if self._open and not torch.compiler.is_compiling():
                self._guarded(self.record.flowed, held, gradient)

        return flowed

    def _accumulated(self, record: ParameterRecord) -> Callable[[torch.Tensor], None]:
        def accumulated(parameter: torch.Tensor) -> None:
            if self._open and not torch.compiler.is_compiling():
                record.reached = True
                self._guarded(self.record.gradient, record, parameter.grad, False)

        return accumulated

    def _stepping(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        if self._open:
            closure = any(
                callable(given) for given in (*args[1:], *kwargs.values())
            )  # a closure computes the gradients inside the step
            self._guarded(self._note_step, optimizer, closure)

    def _note_step(self, optimizer: torch.optim.Optimizer, closure: bool) -> None:
        before: dict[int, torch.Tensor] = {}
        for parameter in _own(optimizer):
            record = self._parameters.get(id(parameter))
            if record is None or (parameter.grad is None and not closure):
                continue
            record.stepped = True
            if parameter.grad is not None:
                record.reached = True
                self.record.gradient(record, parameter.grad, True)
            values = local(parameter) if self._updates else None
            if values is not None:
                before[id(parameter)] = values.to("cpu", copy=True)
        self._before[id(optimizer)] = before

    def _stepped(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        if self._open:
            self._guarded(self._note_update, optimizer)

    def _note_update(self, optimizer: torch.optim.Optimizer) -> None:
        before = self._before.pop(id(optimizer), {})
        for parameter in _own(optimizer):
            if id(parameter) in before and (values := local(parameter)) is not None:
                self.record.moved(self._parameters[id(parameter)], before[id(parameter)], values)

    # --- an exception ---

    def note(self, error: BaseException, seen: Inspection) -> None:
        """Add a note to an exception with the module that raised it, if there is one."""
        if self._raised is not None and self._raised[0] == id(error) and _from_module(error):
            call = self._raised[1]
            seen.raised = call.name
            error.add_note(f"raised in {call.label}, called with {call.takes}")


def _from_module(error: BaseException) -> bool:
    """Return True if an exception came through the call of a module."""
    code = nn.Module._call_impl.__code__
    return any(frame.f_code is code for frame, _ in walk_tb(error.__traceback__))


def _own(optimizer: torch.optim.Optimizer) -> Iterator[torch.Tensor]:
    for group in optimizer.param_groups:
        yield from group["params"]


def _reference(tensor: torch.Tensor) -> Callable[[], torch.Tensor | None]:
    """Return a function that returns the tensor, or None after it was freed.

    Parameters are held by a strong reference, since `torch.utils.swap_tensors` refuses weak ones; they live as long as
    their model anyway.
    """
    return (lambda: tensor) if isinstance(tensor, nn.Parameter) else weakref.ref(tensor)


def _wrapped(tensor: torch.Tensor) -> bool:
    """Return True if the tensor belongs to a transform of torch.func, so that it has values of several samples."""
    return torch._C._functorch.is_functorch_wrapped_tensor(tensor)
