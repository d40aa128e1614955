"""The modules of a model that hooks can see, their names, and the hidden ones with the reason."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass

import torch
from torch import nn

from truestep.errors import UnknownModule
from truestep.seams.wrappers import is_compiled, uncompiled


@dataclass(frozen=True, slots=True)
class Hidden:
    """A part of a model that hooks cannot see.

    Attributes:
        name: name of its outermost module; "" for the model.
        why: the reason, such as "torch.compile".
        modules: number of modules inside.
    """

    name: str
    why: str
    modules: int


@dataclass(slots=True)
class Visible:
    """The modules of a model.

    Attributes:
        names: every module that can have hooks, by its first name, in the order of the model; "" is the model.
        others: the other names of shared modules.
        hidden: the parts that hooks cannot see.
        model: the model.
    """

    names: dict[str, nn.Module]
    others: dict[str, tuple[str, ...]]
    hidden: list[Hidden]
    model: nn.Module

    def module(self, name: str) -> nn.Module:
        """Return the module of that name.

        Raises:
            UnknownModule: no module has that name, or it is hidden.
        """
        if name in self.names:
            return self.names[name]
        with suppress(AttributeError, RuntimeError):  # an unknown name; TorchScript has no named modules
            module = self.model.get_submodule(name)  # a second name of a shared module
            if any(module is seen for seen in self.names.values()):
                return module
        for border in self.hidden:
            if not border.name or name == border.name or name.startswith(f"{border.name}."):
                raise UnknownModule(
                    f'"{name}" is inside {border.why}, where hooks are not called',
                    expected=f"expected a module outside {border.why}",
                    remedy="pass the model that is not compiled, which shares its weights",
                )
        known = [known for known in self.names if known]
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
        raise UnknownModule(
            f'the model has no module "{name}"',
            expected=f"expected one of {_listed(known)}",
            remedy=f'write "{near[0]}"' if near else "take a name from model.named_modules()",
        )


def visible(model: nn.Module, *, exact: bool = True) -> Visible:
    """Return the modules of a model that can have hooks.

    Args:
        model: compiled or not.
        exact: True to leave out modules that compute differently with hooks: torch's transformer layer in eval mode
            takes another path if one of its parts has a hook.
    """
    found = Visible({}, {}, [], model)
    _walk(model, "", found, {}, exact)
    return found


def _walk(module: nn.Module, name: str, found: Visible, met: dict[int, str], exact: bool) -> None:
    if id(module) in met:
        first = met[id(module)]
        found.others[first] = (*found.others.get(first, ()), name)
        return
    met[id(module)] = name
    inside = sum(1 for _ in module.modules()) - 1
    if is_compiled(module):
        found.names[name] = module
        if inside > 1:
            found.hidden.append(Hidden(name, "torch.compile", inside - 1))
        return
    why = _why(module, exact)
    if why:
        found.hidden.append(Hidden(name, why, inside + 1))
        return
    found.names[name] = module
    for child_name, child in module._modules.items():
        if child is not None:
            _walk(child, f"{name}.{child_name}" if name else child_name, found, met, exact)


def _why(module: nn.Module, exact: bool) -> str:
    if getattr(module, "_compiled_call_impl", None) is not None:  # module.compile()
        return "torch.compile"
    if isinstance(module, torch.jit.ScriptModule):
        return "TorchScript"
    if exact and isinstance(module, nn.TransformerEncoderLayer) and not module.training:
        return "the fast path of nn.TransformerEncoderLayer in eval mode"
    return ""


def joined(prefix: str, name: str) -> str:
    """Return the qualified name of an inner part; either name can be empty."""
    return f"{prefix}.{name}" if prefix and name else prefix or name


def kind(module: nn.Module) -> str:
    """Return the name of a module's class; for a compiled one, of the class that was compiled."""
    return type(uncompiled(module)).__name__


def titles(models: Iterable[nn.Module], names: Mapping[str, nn.Module] | None = None) -> dict[str, nn.Module]:
    """Return models by the prefix for the names of their modules: "" for a single model."""
    models = list(models)
    if len(models) == 1:
        return {"": models[0]}
    called = {id(model): name for name, model in (names or {}).items()}
    found: dict[str, nn.Module] = {}
    for model in models:
        name = title = called.get(id(model), kind(model).lower())
        number = 1
        while title in found:
            number += 1
            title = f"{name}_{number}"
        found[title] = model
    return found


def _listed(names: list[str], most: int = 8) -> str:
    shown = ", ".join(f'"{name}"' for name in names[:most])
    return (
        f"{shown} and {len(names) - most} more" if len(names) > most else shown or "its modules, but it has no modules"
    )
