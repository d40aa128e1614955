"""Loaders of torch: where a pass begins, and where its iterator gives a batch or ends."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from truestep.seams.patch import patch


def wrap_iter(stack: ExitStack, wrapper: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Replace ``DataLoader.__iter__`` until the stack unwinds, and return the method before it."""
    from torch.utils.data import DataLoader

    method: Callable[[Any], Any] = patch(stack, DataLoader, "__iter__", wrapper)
    return method


def wrap_next(stack: ExitStack, wrapper: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Replace ``__next__`` of the iterators until the stack unwinds, and return the method before it."""
    return wrap_iterator(stack, "__next__", wrapper)


def wrap_iterator(stack: ExitStack, name: str, wrapper: Callable[..., Any]) -> Callable[..., Any]:
    """Replace a method that the iterators of all loaders share, and return the method before it."""
    from torch.utils.data.dataloader import _BaseDataLoaderIter

    method: Callable[..., Any] = patch(stack, _BaseDataLoaderIter, name, wrapper)
    return method


def watch(
    stack: ExitStack,
    *,
    drew: Callable[[Any, Any], object] | None = None,
    ended: Callable[[Any], object] | None = None,
) -> None:
    """Call functions after each batch and at the end of each pass, until the stack unwinds.

    Args:
        stack: restores the method.
        drew: gets the iterator and the batch.
        ended: gets the iterator when it is exhausted.
    """

    def __next__(iterator: Any) -> Any:
        try:
            batch = original(iterator)
        except StopIteration:
            if ended is not None:
                ended(iterator)
            raise
        if drew is not None:
            drew(iterator, batch)
        return batch

    original = wrap_next(stack, __next__)
