"""Freezing parts of a model: their parameters get no gradients, and their norm layers keep their statistics."""

from __future__ import annotations

from collections.abc import Iterable
from types import MethodType

from torch import nn

from truestep.model.names import all_names, selected


def freeze(model: nn.Module, *patterns: str) -> list[str]:
    """Freeze the parameters of a model that match patterns, or all of them; return their names.

    A frozen parameter has `requires_grad=False`, and its gradient is removed, so that no optimizer uses it. If all
    parameters of a norm layer with running statistics (BatchNorm) are frozen, it is set to eval mode and stays there,
    also after `model.train()` and in `run.train()`: its statistics are frozen too. Dropout in frozen parts is not
    changed. A tied parameter is frozen under all its names.

    Args:
        model: any module, before or after the optimizer is created.
        *patterns: each matches the name of a parameter or of a module around it: "encoder.*", "layers.[0-3].*",
            "*.bias". Without patterns, everything is frozen.

    Raises:
        BadPart: a pattern matches nothing.

    Example:
        >>> model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2), nn.Linear(2, 1))
        >>> freeze(model, "0.*", "1.*")
        ['0.weight', '0.bias', '1.weight', '1.bias']
        >>> model.train().get_submodule("1").training
        False
    """
    parameters, norms = _touched(model, patterns)
    for parameter in parameters:
        parameter.requires_grad_(False)
        parameter.grad = None
    for norm in norms:
        if not any(parameter.requires_grad for parameter in norm.parameters(recurse=False)):
            _hold(norm)
    return _first_names(model, parameters)


def unfreeze(model: nn.Module, *patterns: str) -> list[str]:
    """Make the parameters of a model that match patterns, or all of them, trainable again; return their names.

    Norm layers that `freeze` kept in eval mode get the mode of the model, and follow `train()` again. Patterns and
    errors are those of `freeze`.

    Example:
        >>> model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
        >>> names = freeze(model)
        >>> unfreeze(model, "1")
        ['1.weight', '1.bias']
    """
    parameters, norms = _touched(model, patterns)
    for parameter in parameters:
        if parameter.is_floating_point() or parameter.is_complex():
            parameter.requires_grad_(True)
    for norm in norms:
        if is_held(norm):
            _release(norm, model.training)
    return _first_names(model, parameters)


def _touched(model: nn.Module, patterns: Iterable[str]) -> tuple[list[nn.Parameter], list[nn.Module]]:
    """Return the parameters that match patterns, and the norm layers that match or have such a parameter."""
    patterns = list(patterns) or ["*"]
    if patterns == ["*"]:
        parameters, modules = dict.fromkeys(model.parameters(), "*"), set(model.modules())
    else:
        parameters, modules = selected(model, patterns)
    norms: list[nn.Module] = [
        module
        for module in model.modules()
        if isinstance(module, nn.modules.batchnorm._NormBase) and module.running_mean is not None
        if module in modules or any(parameter in parameters for parameter in module.parameters(recurse=False))
    ]
    own = set(parameters)
    return [parameter for parameter in model.parameters() if parameter in own], norms


def _first_names(model: nn.Module, parameters: Iterable[nn.Parameter]) -> list[str]:
    names = all_names(model)
    return [names[parameter][0] for parameter in parameters]


def is_held(module: nn.Module) -> bool:
    """Return True if `freeze` keeps this norm layer in eval mode."""
    return getattr(vars(module).get("train"), "__func__", None) is _stays


def _hold(module: nn.Module) -> None:
    module.eval()
    vars(module)["train"] = MethodType(_stays, module)


def _release(module: nn.Module, training: bool) -> None:
    vars(module).pop("train", None)
    module.train(training)


def _stays(self: nn.Module, mode: bool = True) -> nn.Module:
    """Replace `train` of a frozen norm layer: it stays in eval mode."""
    self.training = False
    return self


_stays.__name__ = "train"  # a pickled method is found again by this name


def frozen_state(model: nn.Module) -> dict[str, list[str]]:
    """Return the names of frozen parameters, and of norm layers that are kept in eval mode."""
    return {
        "parameters": [names[0] for parameter, names in all_names(model).items() if not parameter.requires_grad],
        "norms": [name for name, module in model.named_modules() if is_held(module)],
    }


def load_frozen_state(model: nn.Module, state: dict[str, list[str]]) -> None:
    """Restore the frozen state: freeze exactly these parameters and norm layers."""
    frozen = set(state["parameters"])
    for parameter, names in all_names(model).items():
        if (names[0] in frozen) == parameter.requires_grad:
            parameter.requires_grad_(names[0] not in frozen)
            parameter.grad = None
    held = set(state["norms"])
    for name, module in model.named_modules():
        if name in held and not is_held(module):
            _hold(module)
        elif name not in held and is_held(module):
            _release(module, model.training)
