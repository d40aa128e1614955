"""Find a second name of a trained model that stands for another one: a teacher, a target, a member of an ensemble."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

from truestep import source
from truestep.events import ModelAliased, Site
from truestep.probes.context.local_variables import variables
from truestep.probes.context.scene import Scene

_ROLES = frozenset(
    {"average", "ema", "key", "keys", "momentum", "old", "ref", "reference", "slow", "target", "teacher"}
)  # fmt: skip
_MEMBERS = frozenset(
    {"ensemble", "estimators", "fold", "folds", "learners", "members", "models", "nets", "networks", "snapshots"}
)
_OUTER = 3
"""Frames around a call with variables that can hold an ensemble."""
_LEAST_STEPS = 3
_MOST = 32
_MOST_OWNERS = 256


class Aliases:
    """Looks at sampled steps for models, and modules inside of them, with such a name beside another one."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene

    def look(self) -> None:
        """Emit the models of which the program has a second name with a role."""
        scene = self._scene
        if scene.sampling.step < _LEAST_STEPS:
            return
        named = list(self._named())
        for root in scene.numbers.alive("trained model")[:_MOST]:
            self._tell(root, root, [name for name, value in named if value is root], whole=True)
            for module, paths in _shared(root).items():
                self._tell(root, module, paths, whole=False)

    def _named(self) -> Iterator[tuple[str, Any]]:
        """Yield the modules in variables of the main program and of the step's function, and in their attributes.

        An object with one model can have its role: ``teacher.net``. One with several, such as an average that holds the
        trained model too, has it in the names of their attributes: ``ema.model`` beside ``ema.shadow``.
        """
        module = self._scene.torch.nn.Module
        frame = self._scene.sites.frame(1)
        held = vars(sys.modules["__main__"]) | (variables(frame) if frame is not None else {})
        yield from ((name, value) for name, value in held.items() if isinstance(value, module))
        files = set(self._scene.sites.own_files())
        for name, owner in list(held.items())[:_MOST_OWNERS]:
            defined = getattr(sys.modules.get(type(owner).__module__), "__file__", None)
            if (defined in files or type(owner).__module__ == "__main__") and not isinstance(owner, module):
                attributes = getattr(owner, "__dict__", {}).items()
                parts = [(key, value) for key, value in attributes if isinstance(value, module)]
                several = len({id(value) for _, value in parts}) > 1
                for key, value in parts:
                    if not several or _has_role(key) or not _has_role(name):
                        yield f"{name}.{key}", value

    def _tell(self, root: Any, module: Any, names: list[str], *, whole: bool) -> None:
        scene = self._scene
        roles = [name for name in names if _has_role(name)]
        others = [name for name in names if not _has_role(name)]
        held = [scene.ledger.held(parameter) for parameter in module.parameters()]
        numbers = {one.number for one in held if one is not None}
        optimized = any(one is not None and one.panel is not None and one.panel.number for one in held)
        if not roles or not others or not numbers:
            return
        apart = not numbers.isdisjoint(scene.ledger.ran_without_grad)
        if (whole and optimized) or (not whole and apart):
            scene.tell(
                ModelAliased,
                model=scene.numbers.known("model", root) or 0,
                name=roles[0],
                other=others[0],
                whole=whole,
                site=next((at for path in scene.sites.own_files() if (at := binding(path, roles[0]))), None),
            )


def tell_ensemble(scene: Scene, module: Any, model: int, frame: FrameType) -> None:
    """Emit a collection that is named as an ensemble, and holds one model in all of its places.

    Args:
        scene: the scene.
        module: a model that is called without gradients, in eval mode or without layers that depend on it.
        model: its number.
        frame: the frame of the call.
    """
    around: FrameType | None = frame
    for _ in range(_OUTER):
        if around is None:
            return
        for name, value in variables(around).items():
            held: Any = list(value.values()) if type(value) is dict and not any(map(_is_role, value)) else value
            if type(held) not in (list, tuple) or len(held) < 2 or any(one is not module for one in held):
                continue
            if not _MEMBERS.isdisjoint(re.split(r"[\W_\d]+", name.lower())):
                site = binding(around.f_code.co_filename, name)
                facts = {"name": name, "other": f"{name}[0]", "whole": True, "times": len(held)}
                scene.tell(ModelAliased, model=model, site=site, **facts)
                return
        around = around.f_back


def _is_role(key: object) -> bool:
    """Return True for a key that is a name, such as "last" and "best", and not a number."""
    return isinstance(key, str) and not any(letter.isdigit() for letter in key)


def _has_role(name: str) -> bool:
    return not _ROLES.isdisjoint(re.split(r"[\W_\d]+", name.lower()))


def _shared(root: Any) -> dict[Any, list[str]]:
    """Return the modules with parameters that a model has under several attributes, with their paths."""
    paths: dict[Any, list[str]] = {}
    for owner, parent in root.named_modules():
        for name, child in parent._modules.items():
            if child is not None:
                paths.setdefault(child, []).append(f"{owner}.{name}" if owner else name)
    return {module: found for module, found in paths.items() if len(found) > 1}


def binding(path: str, name: str) -> Site | None:
    """Return the last assignment in a file to a variable, or to an attribute, of this name."""
    found = None
    tree, wanted = source.parsed(path), name.rpartition(".")[2]
    for node in source.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Assign) and any(wanted in _each(target) for target in node.targets):
            if found is None or node.lineno > found.line:
                found = Site(path, node.lineno, node.col_offset, node.end_lineno or -1, node.end_col_offset or -1)
    return found


def _each(target: ast.expr) -> Iterator[str]:
    """Yield the names that an assignment binds, with the attribute for ``self.a``."""
    for one in target.elts if isinstance(target, ast.Tuple | ast.List) else (target,):
        yield one.attr if isinstance(one, ast.Attribute) else getattr(one, "id", "")
