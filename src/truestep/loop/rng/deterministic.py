"""Deterministic algorithms: sets the flags of torch, cuDNN and cuBLAS together, and restores them."""

from __future__ import annotations

import os
from types import TracebackType
from typing import Self

import torch

CUBLAS = "CUBLAS_WORKSPACE_CONFIG"


class Switched:
    """The previous flags; `undo()` or the end of a `with` block restores them."""

    def __init__(self) -> None:
        self._enabled = torch.are_deterministic_algorithms_enabled()
        self._warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
        self._cudnn = (torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark)
        self._workspace = os.environ.get(CUBLAS)
        self._undone = False

    def undo(self) -> None:
        """Restore all flags; a second call does nothing."""
        if self._undone:
            return
        self._undone = True
        torch.use_deterministic_algorithms(self._enabled, warn_only=self._warn_only)
        torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = self._cudnn
        if self._workspace is None:
            os.environ.pop(CUBLAS, None)
        else:
            os.environ[CUBLAS] = self._workspace

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.undo()


def deterministic(on: bool = True) -> Switched:
    """Switch deterministic algorithms on or off: torch's, cuDNN's and cuBLAS's.

    When switched on, an operation without a deterministic algorithm raises a RuntimeError. cuBLAS reads its environment
    variable when its first handle is created, so call this before the first matrix product on a GPU. A deterministic
    value of the variable (":4096:8" or ":16:8") is kept.

    Args:
        on: True for deterministic algorithms, False for the fastest ones.

    Returns:
        The previous flags: call its `undo()` to restore them, or use it in a `with` statement.

    Example:
        >>> with deterministic():
        ...     torch.are_deterministic_algorithms_enabled()
        True
        >>> torch.are_deterministic_algorithms_enabled()
        False

    Source: https://docs.pytorch.org/docs/stable/notes/randomness.html
    """
    before = Switched()
    torch.use_deterministic_algorithms(on)
    torch.backends.cudnn.deterministic = on
    if on:
        torch.backends.cudnn.benchmark = False
        if os.environ.get(CUBLAS) not in (":4096:8", ":16:8"):
            os.environ[CUBLAS] = ":4096:8"
    return before
