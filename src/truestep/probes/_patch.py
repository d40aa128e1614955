"""Set attributes and put them back exactly: the only place where torch is changed."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

_ABSENT = object()


def patch(stack: ExitStack, owner: Any, name: str, new: Any) -> Any:
    """Set ``owner.name`` until the stack unwinds, and return what stood there.

    Restores exactly: what was inherited is inherited again, and a later patch by somebody else on top of ours is left
    alone when it is no longer ours to take away.
    """
    own = vars(owner).get(name, _ABSENT)
    before = getattr(owner, name)
    setattr(owner, name, new)
    put = vars(owner)[name]

    def restore() -> None:
        if vars(owner).get(name, _ABSENT) is not put:
            return
        if own is _ABSENT:
            delattr(owner, name)
        else:
            setattr(owner, name, own)

    stack.callback(restore)
    return before
