"""The option ``--color``, which is added to every command."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated

import typer

from truestep.report.color import ColorWhen, choose

_WHEN = Annotated[
    ColorWhen,
    typer.Option(
        "--color",
        help="Colors of texts; auto follows NO_COLOR, FORCE_COLOR and the terminal.",
        show_default=True,
    ),
]


def with_color(function: Callable[..., object]) -> inspect.Signature:
    """Return the signature of a command with the parameter `color`."""
    signature = inspect.signature(function, eval_str=True)
    added = inspect.Parameter("color", inspect.Parameter.KEYWORD_ONLY, default="auto", annotation=_WHEN)
    return signature.replace(parameters=[*signature.parameters.values(), added])


def colored(function: Callable[..., object], *, color: ColorWhen, **arguments: object) -> object:
    """Call a command's function after its option ``--color`` was taken."""
    choose(color)
    return function(**arguments)
