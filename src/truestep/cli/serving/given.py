"""Options of the commands for trained models, and the objects that they name."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from truestep.errors import TorchMissing, UsageError

FactoryArguments = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=VALUE", help="Argument of the factory; can be repeated.", show_default=False),
]
Weights = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Model of the checkpoint, such as ema or swa.", show_default=False),
]


def check_torch(command: str) -> None:
    """Raise an error without torch.

    Raises:
        TorchMissing: it is not installed.
    """
    try:
        import torch  # noqa: F401
    except ModuleNotFoundError:
        raise TorchMissing(
            f"truestep {command} needs torch, which is not installed for this Python",
            remedy="install it with `pip install torch`",
        ) from None


def argument_of(text: str) -> tuple[str, Any]:
    """Return name and value of an argument: JSON, or else text."""
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise UsageError(
            f"--argument {text} has no name", expected="expected NAME=VALUE", remedy="write --argument width=64"
        )
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def batches_of(source: str) -> Iterable[Any]:
    """Return the batches of a file, or of a loader in a module."""
    from truestep.export.examples import FILES, batches_in
    from truestep.export.factories import imported

    if Path(source).suffix in FILES or Path(source).exists():
        return batches_in(Path(source))
    found = imported(source)
    made = found() if callable(found) and not hasattr(found, "__iter__") else found
    if not isinstance(made, Iterable):
        raise UsageError(
            f"{source} gives a {type(made).__name__}",
            expected="expected a loader, or a function that returns one",
            remedy="name a function that returns the loader of the validation set",
        )
    return made
