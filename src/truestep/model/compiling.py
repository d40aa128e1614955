"""`torch.compile` in place: the model remains the same object, with plain keys."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from torch import nn

from truestep.errors import BadSettings

MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
_OPTIONS = ("fullgraph", "dynamic", "backend", "mode", "options", "disable")


def compile_in_place(model: nn.Module, how: bool | str | Mapping[str, Any]) -> None:
    """Compile a model at its first call, with `Module.compile`.

    Args:
        model: any module.
        how: True for torch's defaults, the name of a mode, or options of torch.compile by name; False to not compile.

    Raises:
        BadSettings: an unknown mode or option.
    """
    options = compile_options(how)
    if options is not None:
        nn.Module.compile(model, **options)


def compile_options(how: bool | str | Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the options for `torch.compile`; None for no compilation.

    Raises:
        BadSettings: an unknown mode or option.
    """
    if how is False or how is None:
        return None
    if not isinstance(how, bool | str | Mapping):
        raise BadSettings(
            f"compile must be True, the name of a mode, or options of torch.compile by name, got {how!r}",
            remedy="pass compile=True",
        )
    options: dict[str, Any] = {}
    if isinstance(how, str):
        options["mode"] = how
    elif isinstance(how, Mapping):
        options.update(how)
    for name in options:
        if name not in _OPTIONS:
            raise _unknown(f'"{name}" is not an option of torch.compile', name, _OPTIONS, "{}=")
    mode = options.get("mode")
    if mode is not None and mode not in MODES:
        raise _unknown(f'"{mode}" is not a mode of torch.compile', str(mode), MODES, 'compile="{}"')
    if mode is not None and options.get("options") is not None:
        raise BadSettings(
            "compile has both a mode and options",
            expected="expected one of them: a mode is a set of options",
            remedy='leave "mode" out',
        )
    return options


def _unknown(happened: str, name: str, known: tuple[str, ...], written: str) -> BadSettings:
    near = get_close_matches(name, known, n=1, cutoff=0.4) or [known[0]]
    return BadSettings(
        happened, expected=f"expected one of {', '.join(known)}", remedy=f"write {written.format(near[0])}"
    )
