"""Find models that were meant to follow a trained one, an average or a target network, and have kept their values."""

from __future__ import annotations

import ast
import sys
from collections.abc import Container, Mapping
from typing import Any

from truestep import source
from truestep.events import CopyUnchanged, Site
from truestep.probes.context.scene import Scene
from truestep.probes.gradients.gradient_states import Held

_LEAST_STEPS = 10
_MOST = 32
_NEAR = 0.3
"""Largest difference of a copy from its trained model after the first step, relative to its values."""


class Copies:
    """Compares the models that are called at sampled steps."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._loop: Site | None = None
        self._searched = False

    def look(self, moved: Container[int], stayed: Mapping[int, int]) -> None:
        """Emit the models that have kept their values while a trained model of the same kind changed.

        Args:
            moved: numbers of the parameters with other values than at first.
            stayed: the other parameters, with the number of steps since their values were first read.
        """
        scene = self._scene
        if scene.sampling.step < _LEAST_STEPS:
            return
        met = [(module, self._held(module)) for module in scene.numbers.alive("trained model")[:_MOST]]
        trained = [
            (module, held) for module, held in met if any(one.number in moved and _optimized(one) for one in held)
        ]
        for module, held in met:
            steps = min((stayed.get(one.number, 0) for one in held if not _optimized(one)), default=0)
            if steps < _LEAST_STEPS or any(_optimized(one) for one in held):
                continue
            kind, shapes = type(module), _shapes(held)
            average = kind.__name__ == "AveragedModel"
            for other, others in trained:
                if (type(other) is kind or average) and _shapes(others) == shapes:
                    self._tell(module, other, steps, average=average, equal=_are_near(held, others))
                    break

    def _tell(self, module: Any, other: Any, steps: int, *, average: bool, equal: bool) -> None:
        scene = self._scene
        main = vars(sys.modules["__main__"])
        scene.tell(
            CopyUnchanged,
            model=scene.numbers.known("model", module) or 0,
            source=scene.numbers.known("model", other) or 0,
            names=tuple(sorted(name for name, value in main.items() if value is module)),
            equal=equal,
            average=average,
            loop=self._idle_loop(),
            steps=steps,
        )

    def _held(self, module: Any) -> list[Held]:
        """Return the records of the parameters of a model; an empty list if one is unknown."""
        held = [self._scene.ledger.held(parameter) for parameter in module.parameters()]
        known = [one for one in held if one is not None and one.base is not None]
        return known if len(known) == len(held) else []

    def _idle_loop(self) -> Site | None:
        """Return the first loop of the program over pairs of values that only assigns its own variables."""
        if not self._searched:
            self._searched = True
            self._loop = next((site for path in self._scene.sites.own_files() if (site := idle_loop(path))), None)
        return self._loop


def idle_loop(path: str) -> Site | None:
    """Return the first loop over a zip of parameters with a body that changes nothing: it assigns its own variables."""
    tree = source.parsed(path)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.For) and isinstance(node.target, ast.Tuple) and _pairs(node.iter):
            names = {one.id for one in node.target.elts if isinstance(one, ast.Name)}
            if all(_is_idle(statement, names) for statement in node.body):
                return Site(path, node.lineno, node.col_offset)
    return None


def _pairs(iterated: ast.expr) -> bool:
    text = ast.unparse(iterated)
    return text.startswith("zip(") and ("param" in text or "state_dict" in text or "buffers()" in text)


def _is_idle(statement: ast.stmt, names: set[str]) -> bool:
    match statement:
        case ast.Pass() | ast.Expr(value=ast.Constant()):
            return True
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name in names
        case ast.If() | ast.With():
            return all(_is_idle(one, names) for one in [*statement.body, *getattr(statement, "orelse", ())])
    return False


def _optimized(held: Held) -> bool:
    return held.panel is not None and held.panel.number > 0


def _shapes(held: list[Held]) -> list[Any]:
    return [tuple(parameter.shape) for one in held if (parameter := one.ref()) is not None]


def _are_near(copy: list[Held], trained: list[Held]) -> bool:
    """Return True if the values of a copy are near those that the trained model had after its first step."""
    pairs = [
        (float(mine), float(theirs))
        for one, other in zip(copy, trained, strict=False)
        for mine, theirs in zip(one.base or (), other.base or (), strict=False)
    ]
    apart, size = sum(abs(mine - theirs) for mine, theirs in pairs), sum(abs(mine) for mine, _ in pairs)
    return bool(pairs) and apart < _NEAR * size
