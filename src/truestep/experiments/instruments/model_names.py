"""The model that a called module belongs to, and the name of its variable in the script: `model`, `self.net`."""

from __future__ import annotations

from types import FrameType
from typing import Any

from truestep.debugging._visible import kind
from truestep.probes.context.local_variables import variables
from truestep.probes.context.sites import Sites
from truestep.seams.wrappers import unwrapped


def model_of(module: Any, frame: FrameType | None, sites: Sites) -> tuple[Any, str]:
    """Return the model of a module that is called outermost, without wrappers, and its name.

    A method of a model that calls a part of it calls the model. Without a variable, the name is that of the class.

    Args:
        module: the module that is called.
        frame: the frame of the call.
        sites: knows the frames of the script.
    """
    from torch import nn

    own = root = unwrapped(module)
    name = ""
    above = frame
    while above is not None:
        owner = variables(above).get("self") if sites.kind(above.f_code) == 0 else None
        if isinstance(owner, nn.Module) and any(part is root for part in owner.modules()):
            root, frame = owner, above
        above = above.f_back
    while frame is not None and not name:
        if sites.kind(frame.f_code) == 0:
            name = named(root, frame) or (named(module, frame) if root is own else "")
        frame = frame.f_back
    return root, name or kind(root).lower()


def named(thing: Any, frame: FrameType) -> str:
    """Return the name of the variable or attribute of `self` that holds an object in a frame; "" for none."""
    local = variables(frame)
    for names in (local, dict(frame.f_globals)):
        for name, value in names.items():
            if value is thing and not name.startswith("__") and name != "self":
                return name
    owner = local.get("self")
    for names in (getattr(owner, "__dict__", {}), getattr(owner, "_modules", {})):
        for name, value in list(names.items()):
            if value is thing:
                return f"self.{name}"
    return ""


def unused(name: str, taken: Any) -> str:
    """Return a name that is not taken: with a number if there are several."""
    title, number = name, 1
    while title in taken:
        number += 1
        title = f"{name}_{number}"
    return title
