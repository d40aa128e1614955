"""Weak references to objects that may be tensors, in a private class, which ``torch.utils.swap_tensors`` ignores.

``swap_tensors`` refuses a tensor that has a weak reference. Ours follow the Python object, which a swap leaves in its
place, so it need not refuse because of them; references of the script still count. See docs/decisions/0040.
"""

from __future__ import annotations

import weakref
from contextlib import ExitStack
from types import ModuleType
from typing import Any

from truestep.seams.patch import patch


class Ref(weakref.ref[Any]):
    """A weak reference of this package."""

    __slots__ = ()


class ValuesRef:
    """A weak reference to the memory of a tensor, which a detached tensor or a view of it keeps alive.

    Args:
        tensor: the tensor.
    """

    __slots__ = ("_ref",)

    def __init__(self, tensor: Any) -> None:
        from torch.multiprocessing.reductions import StorageWeakRef

        self._ref = StorageWeakRef(tensor.untyped_storage())  # type: ignore[no-untyped-call]

    def expired(self) -> bool:
        """Return True if the memory was freed: other tensors can have the same address since."""
        return bool(self._ref.expired())  # type: ignore[no-untyped-call]


def is_referenced(thing: Any) -> bool:
    """Return True if this package has a weak reference to an object."""
    return any(isinstance(reference, Ref) for reference in weakref.getweakrefs(thing))


def tensor_keys() -> Any:
    """Return an empty dictionary with tensors as weak keys, compared by identity."""
    from torch.utils import weak

    class IdRef(weak.WeakIdRef, Ref):
        """torch's reference for keys, as one of ours."""

        __slots__ = ()

    return weak.WeakIdKeyDictionary(ref_type=IdRef)


def let_swap(stack: ExitStack) -> None:
    """Hide the references of this package from ``torch.utils.swap_tensors`` until the stack unwinds.

    The function itself is left alone, since scripts import it by name: it looks up ``weakref`` in its own module.
    """
    import torch.utils

    def getweakrefs(thing: Any) -> list[Any]:
        return [reference for reference in weakref.getweakrefs(thing) if not isinstance(reference, Ref)]

    theirs = ModuleType(weakref.__name__, weakref.__doc__)
    vars(theirs).update(vars(weakref), getweakrefs=getweakrefs)
    patch(stack, torch.utils, "weakref", theirs)
