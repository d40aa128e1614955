"""Lazy imports of public names, so that importing the package does not import torch."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping

from truestep.errors import TorchMissing


def attribute(package: str, homes: Mapping[str, str], name: str) -> object:
    """Import and return a public name of a package.

    Args:
        package: name of the package.
        homes: module of each public name.
        name: the requested name.

    Raises:
        AttributeError: the package has no such name.
        TorchMissing: torch or numpy is not installed.
    """
    if name not in homes:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    try:
        return getattr(importlib.import_module(homes[name]), name)
    except ModuleNotFoundError as error:
        if error.name not in ("torch", "numpy"):
            raise
        raise TorchMissing(
            f"{package}.{name} needs {error.name}, which is not installed for this Python",
            expected=f"expected it beside {sys.executable}",
            remedy=f"install it with `pip install {error.name}`",
        ) from None
