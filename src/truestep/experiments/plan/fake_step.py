"""Train a model from a factory for some steps on tensors without memory, as the script of a variant.

python -m truestep.experiments.plan.fake_step FACTORY OPTIMIZER DTYPE INPUT...

DTYPE is the type of parameters and inputs of floating point; empty leaves the parameters as the factory makes them.

The tensors have shapes and types, and no values (`FakeTensorMode`): a model that is too large for this machine is
measured like any other. A model that computes its own loss returns it; otherwise the loss is the cross entropy over the
last dimension if the first input is a tensor of integers, and the mean square of the outputs if not.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
import logging
import sys
from typing import Any

import torch
from torch import nn
from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException, FakeTensorMode
from torch.utils._pytree import tree_leaves

from truestep.errors import UsageError
from truestep.experiments.instruments.needs.recorders import FakeRecorder
from truestep.experiments.plan.units import Input, read_input

_STEPS = 1000
"""More steps than the instrument waits for: it stops the script."""


def main(factory: str, optimizer: str, dtype: str, *inputs: str) -> None:
    """Train until the instrument stops the script."""
    make = _found(factory)
    kind = _optimizer(optimizer)
    given = [read_input(text) for text in inputs]
    logging.getLogger("torch._subclasses.fake_tensor").setLevel(logging.CRITICAL)  # the error itself is raised
    with FakeTensorMode(allow_non_fake_inputs=True), FakeRecorder() as recorder:
        recorder.reads = True
        model = _made(make, factory, dtype)
        recorder.reads = False
        stepping = _stepping(kind, model)
        try:
            for _ in range(_STEPS):
                stepping.zero_grad()
                torch.autograd.backward(_loss(model, given, dtype))
                stepping.step()
        except (DataDependentOutputException, DynamicOutputShapeException) as error:
            raise UsageError(
                f"the model reads values in its forward pass ({error.args[0] if error.args else error})",
                expected="expected a model that can be computed from shapes alone",
                remedy="plan with a script instead, at a size that this machine can train",
            ) from error


def _found(name: str) -> Any:
    module, _, attribute = name.partition(":")
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise
        raise UsageError(
            f"no module is named {module!r}",
            expected="expected PACKAGE.MODULE:FACTORY, with a module that can be imported from this folder",
            remedy="run it from the folder that contains the package",
        ) from error
    if not callable(getattr(found, attribute, None)):
        names = [key for key, value in vars(found).items() if _makes(value, module)]
        best = (difflib.get_close_matches(attribute, names, 1) or names or ["build_model"])[0]
        raise UsageError(
            f"{module} has no function or class {attribute!r}",
            expected=f"expected a factory that returns the model: {', '.join(names[:8]) or 'the module has none'}",
            remedy=f"write {module}:{best}",
        )
    return getattr(found, attribute)


def _makes(value: Any, module: str) -> bool:
    return callable(value) and getattr(value, "__module__", "") == module and not value.__name__.startswith("_")


def _optimizer(name: str) -> Any:
    kinds = {
        key.lower(): value
        for key, value in vars(torch.optim).items()
        if isinstance(value, type) and issubclass(value, torch.optim.Optimizer) and value is not torch.optim.Optimizer
    }
    del kinds["lbfgs"]  # its step takes a function that computes the loss
    if name.lower() not in kinds:
        raise UsageError(
            f"--optimizer must be an optimizer of torch.optim, got {name!r}",
            expected=f"expected one of {', '.join(value.__name__ for value in kinds.values())}",
            remedy="write --optimizer AdamW",
        )
    return kinds[name.lower()]


def _made(make: Any, name: str, dtype: str) -> nn.Module:
    try:
        model = make()
    except TypeError as error:
        if error.__traceback__ is None or error.__traceback__.tb_next is not None:
            raise
        raise UsageError(
            f"{name} cannot be called without arguments: {error}",
            expected="expected a factory without required arguments",
            remedy="add a function that calls it with the sizes to plan for, and pass that one",
        ) from error
    if not isinstance(model, nn.Module):
        raise UsageError(
            f"{name} must return an nn.Module, got {type(model).__name__}",
            remedy="return the model from the factory",
        )
    if dtype:
        _convert(model, getattr(torch, dtype))
    return model.train()


def _convert(model: nn.Module, dtype: torch.dtype) -> None:
    """Convert parameters and buffers of floating point, since `Module.to` refuses tensors that a mode refers to."""
    made: dict[Any, Any] = {}
    for module in model.modules():
        for values in (module._parameters, module._buffers):
            for name, tensor in values.items():
                if tensor is None or not tensor.is_floating_point():
                    continue
                if tensor not in made:
                    new = tensor.detach().to(dtype)
                    trained = tensor.requires_grad
                    made[tensor] = nn.Parameter(new, trained) if isinstance(tensor, nn.Parameter) else new
                values[name] = made[tensor]


def _stepping(kind: Any, model: nn.Module) -> Any:
    """Return an optimizer that steps all parameters at once, as torch's do on a GPU, if it can."""
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if not trained:
        raise UsageError("the model has no parameters to train", remedy="return a model with requires_grad parameters")
    settings: dict[str, Any] = {"lr": 1e-3}
    if "foreach" in inspect.signature(kind).parameters:
        settings["foreach"] = True
    try:
        return kind(trained, **settings)
    except ValueError as error:
        raise UsageError(
            f"{kind.__name__} does not take all parameters of the model: {error}",
            remedy="write --optimizer AdamW, or plan with a script",
        ) from error


def _loss(model: nn.Module, inputs: list[Input], dtype: str) -> torch.Tensor:
    made = [_input(each, dtype) for each in inputs]
    result = model(*made)
    outputs = [leaf for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
    if not outputs:
        raise UsageError(
            "the model returned no tensor that depends on its parameters",
            expected=f"expected a loss, or outputs to compute one from, got {type(result).__name__}",
            remedy="return the outputs or the loss from forward",
        )
    losses = [output for output in outputs if output.numel() == 1]
    if losses:
        return losses[0].reshape(())
    if made and not made[0].is_floating_point():
        scores = outputs[0].flatten(0, -2)
        targets = torch.zeros(len(scores), dtype=torch.int64)
        return nn.functional.cross_entropy(scores, targets)
    return torch.stack([output.float().square().mean() for output in outputs]).sum()


def _input(given: Input, dtype: str) -> torch.Tensor:
    return torch.zeros(given.shape, dtype=getattr(torch, dtype if dtype and given.dtype == "float32" else given.dtype))


if __name__ == "__main__":
    main(*sys.argv[1:])
