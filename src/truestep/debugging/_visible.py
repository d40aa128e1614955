"""Which modules of a model can be seen, under which names, and which are hidden and why."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass

import torch
from torch import nn

from truestep.errors import UnknownModule


@dataclass(frozen=True, slots=True)
class Hidden:
    """A part of a model into which hooks cannot see.

    Attributes:
        name: the module that is the border; "" for the model.
        why: the reason, such as "torch.compile".
        modules: how many modules are inside.
    """

    name: str
    why: str
    modules: int


@dataclass(slots=True)
class Visible:
    """The modules of a model.

    Attributes:
        names: every module that hooks can be put on, by its first name, in the model's order; "" is the model.
        others: the other names of a module that has several.
        hidden: the borders behind which there are more.
        model: whose modules they are.
    """

    names: dict[str, nn.Module]
    others: dict[str, tuple[str, ...]]
    hidden: list[Hidden]
    model: nn.Module

    def module(self, name: str) -> nn.Module:
        """Return the module of a name.

        Raises:
            UnknownModule: there is none, or it is hidden.
        """
        if name in self.names:
            return self.names[name]
        with suppress(AttributeError, RuntimeError):  # none of that name; TorchScript has no names to ask for
            module = self.model.get_submodule(name)  # by another of its names
            if any(module is seen for seen in self.names.values()):
                return module
        for border in self.hidden:
            if not border.name or name == border.name or name.startswith(f"{border.name}."):
                raise UnknownModule(
                    f'"{name}" is inside {border.why}, where hooks are not called',
                    expected=f"a module outside of {border.why}",
                    remedy="ask the model that is not compiled: it shares its weights",
                )
        known = [known for known in self.names if known]
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
        raise UnknownModule(
            f'the model has no module "{name}"',
            expected=f"one of {_listed(known)}",
            remedy=f'write "{near[0]}"' if near else "take a name that model.named_modules() gives",
        )


def visible(model: nn.Module, *, exact: bool = True) -> Visible:
    """Find the modules of a model that hooks can be put on.

    Args:
        model: compiled or not.
        exact: leave out those on which a hook would change what is computed: torch's transformer layer in eval mode
            takes another path if there is a hook on one of its parts.
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
    if hasattr(module, "_orig_mod") and hasattr(module, "dynamo_ctx"):  # torch.compile(module)
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


def plain_name(name: str) -> str:
    """Return the name of a parameter or module without what torch.compile puts into it."""
    return name.replace("_orig_mod.", "")


def joined(prefix: str, name: str) -> str:
    """Return the name of what is inside of something that has a name, or none."""
    return f"{prefix}.{name}" if prefix and name else prefix or name


def kind(module: nn.Module) -> str:
    """Return the name of a module's class; for a compiled one, of the class that was compiled."""
    return type(getattr(module, "_orig_mod", module)).__name__


def titles(models: Iterable[nn.Module], names: Mapping[str, nn.Module] | None = None) -> dict[str, nn.Module]:
    """Return models by what goes before the names of their modules: nothing where there is one.

    Args:
        models: the models.
        names: what they are called elsewhere.
    """
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
        f"{shown} and {len(names) - most} more" if len(names) > most else shown or "its modules, of which it has none"
    )
