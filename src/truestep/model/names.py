"""Selection of parameters by patterns of their names, without the parts that wrappers add."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from fnmatch import fnmatchcase
from itertools import accumulate

from torch import nn

from truestep.errors import BadPart
from truestep.seams.wrappers import bare


def matches(name: str, pattern: str) -> bool:
    """Return True if a pattern matches a name, or the name of a module around it.

    >>> matches("encoder.0.weight", "encoder.*"), matches("encoder.0.weight", "encoder")
    (True, True)
    >>> matches("layers.3.attn.bias", "*.attn"), matches("encoder2.weight", "encoder")
    (True, False)
    """
    return any(fnmatchcase(prefix, pattern) for prefix in accumulate(name.split("."), lambda a, b: f"{a}.{b}"))


def all_names(model: nn.Module) -> dict[nn.Parameter, list[str]]:
    """Return every parameter of a model once, in the model's order, with all its names; a tied one has several."""
    names: dict[nn.Parameter, list[str]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        names.setdefault(parameter, []).append(bare(name))
    return names


def all_modules(model: nn.Module) -> dict[nn.Module, list[str]]:
    """Return every submodule of a model once, with all its names."""
    names: dict[nn.Module, list[str]] = {}
    for name, module in model.named_modules(remove_duplicate=False):
        if bare(name):
            names.setdefault(module, []).append(bare(name))
    return names


def selected(model: nn.Module, patterns: Iterable[str]) -> tuple[dict[nn.Parameter, str], set[nn.Module]]:
    """Return the parameters that match patterns, each with its last matching pattern, and the modules that match.

    Raises:
        BadPart: a pattern matches nothing.
    """
    parameters: dict[nn.Parameter, str] = {}
    modules: set[nn.Module] = set()
    own, parts = all_names(model), all_modules(model)
    for pattern in patterns:
        if not isinstance(pattern, str):
            raise BadPart(
                f"a pattern must be a str, got {pattern!r}",
                remedy='write it as text, such as "encoder.*"',
            )
        found = [parameter for parameter, names in own.items() if any(matches(name, pattern) for name in names)]
        fitting = [module for module, names in parts.items() if any(matches(name, pattern) for name in names)]
        if not found and not fitting:
            raise _fits_nothing(pattern, own, parts)
        parameters.update(dict.fromkeys(found, pattern))
        modules.update(fitting)
    return parameters, modules


def _fits_nothing(pattern: str, own: dict[nn.Parameter, list[str]], parts: dict[nn.Module, list[str]]) -> BadPart:
    leaves = [name for names in own.values() for name in names]
    holders = [name for names in parts.values() for name in names]
    near = get_close_matches(pattern.replace("*", "").strip("."), [*holders, *leaves], n=1, cutoff=0.5)
    first = dict.fromkeys(name.partition(".")[0] for name in [*holders, *leaves])
    shown = ", ".join(list(first)[:8]) + (", ..." if len(first) > 8 else "")
    return BadPart(
        f'no parameter of the model matches "{pattern}"',
        expected=f"expected names that begin with {shown}" if first else "expected a model with parameters",
        remedy=(f'write "{near[0]}.*"' if near[0] in holders else f'write "{near[0]}"')
        if near
        else "print truestep.parameter_table(model) for the names",
    )
