"""Find models that were meant to follow a trained one, an average or a target network, and have kept their values."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Container, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from truestep import source
from truestep.events import CopyUnchanged, Site
from truestep.probes.context.scene import Scene
from truestep.probes.context.values import has_values
from truestep.probes.gradients.gradient_states import Held, version
from truestep.probes.gradients.random_values import is_initial
from truestep.probes.optimizer.sampled_measures import fingerprint

_LEAST_STEPS = 10
_MOST = 32
_MOST_VISITS = 10_000
"""Parameters of modules inside of models that are looked at."""
_READS = re.compile(r"\.parameters\(\)|\.state_dict\(\)\.values\(\)")
"""Parameters and states of models in the source of a loop."""
_ROUNDING = 1e-4
_NEAR = 0.3
"""Largest difference of a copy from its trained model after the first step, relative to its values."""


class Part(NamedTuple):
    """A model that the program calls, or a module inside of it."""

    root: Any
    path: str
    """Place in the root, such as "encoder"; empty for the root itself."""
    module: Any
    held: list[Held]
    """The records of its parameters."""

    def like(self, other: Part, *, average: bool) -> bool:
        """Return True if this is a module of the same kind as another one, apart from it, with the same shapes."""
        alike = average or type(self.module) is type(other.module)
        return alike and _shapes(self.held) == _shapes(other.held) and not set(self.numbers) & set(other.numbers)

    @property
    def numbers(self) -> tuple[int, ...]:
        """Numbers of its parameters."""
        return tuple(one.number for one in self.held)


class Copies:
    """Compares the models that are called, and the modules inside of them, at sampled steps and at the end."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._loop: Site | None = None
        self._searched = False
        self._calls: dict[int, int] = {}
        """Number of a model to the step of its latest call."""
        self._watched: dict[int, tuple[list[Held], CopyUnchanged]] = {}
        """Number of a model that has kept its values to its parameters and the latest event."""

    def look(self, moved: Container[int], stayed: Mapping[int, int]) -> None:
        """Emit the models that have kept their values while a trained model of the same kind changed.

        Args:
            moved: numbers of the parameters that were written to since their values were first read.
            stayed: the other parameters, with the number of steps since then.
        """
        if self._scene.sampling.step >= _LEAST_STEPS:
            for event in self._found(moved, stayed):
                self._scene.emit(event)

    def called(self, model: int) -> None:
        """Record the call of a model; one that has kept its values until its last call is looked at again.

        Between two sampled steps, it may be used for the first time since, or be written to.
        """
        step = self._scene.sampling.step
        if model in self._watched and self._calls.get(model) != step:
            held, event = self._watched[model]
            if not self._have_stayed(held, event):
                del self._watched[model]
                self._scene.emit(replace(event, moved=True))
            elif not event.used:
                self._watched[model] = held, replace(event, used=True, steps=step - held[0].base_step)
                self._scene.emit(self._watched[model][1])
        self._calls[model] = step

    def last(self) -> Iterator[CopyUnchanged]:
        """Yield the models again that were written to since they were looked at last."""
        for held, event in self._watched.values():
            if not self._have_stayed(held, event):
                yield replace(event, moved=True)

    def _found(self, moved: Container[int], stayed: Mapping[int, int]) -> Iterator[CopyUnchanged]:
        parts = self._parts()
        trained = [part for part in parts if any(one.number in moved and _optimized(one) for one in part.held)]
        emitted: set[int] = set()
        for part in parts if trained else ():
            if any(map(_trains, part.held)) or emitted.issuperset(part.numbers):
                continue
            steps = min(stayed.get(one.number, self._written_with_its_values(one)) for one in part.held)
            if steps < _LEAST_STEPS or (part.path and not self._runs(part)):
                continue
            written = any(one.number not in stayed for one in part.held)
            average = type(part.module).__name__ == "AveragedModel"
            for other in trained:
                if not other.like(part, average=average):
                    continue
                near = _are_near(part.held, other.held)
                initial = near and any(is_initial(weight) for one in part.held if (weight := one.ref()) is not None)
                if initial or not part.path:
                    emitted.update(part.numbers)
                    facts = {"average": average, "equal": near, "initial": initial, "written": written}
                    event = self._event(
                        part, other, steps, used=self._is_used(part), first=_are_first(part, other), **facts
                    )
                    if not part.path:
                        self._watched[event.model] = part.held, event
                    yield event
                    break

    def pairs(self, moved: Container[int]) -> Iterator[tuple[list[Held], list[Held], dict[str, int]]]:
        """Yield the parameters of models outside optimizers and of a trained model like each, with their numbers."""
        known, parts = self._scene.numbers.known, self._parts()
        trained = [part for part in parts if any(one.number in moved and _optimized(one) for one in part.held)]
        for part in parts if trained else ():
            if any(_optimized(one) for one in part.held):
                continue
            average = type(part.module).__name__ == "AveragedModel"
            for other in trained:
                if other.like(part, average=average):
                    numbers = {"model": known("model", part.root) or 0, "source": known("model", other.root) or 0}
                    yield part.held, other.held, numbers

    def _written_with_its_values(self, one: Held) -> int:
        """Return the number of steps for which a parameter was written to with its own values, up to rounding; 0 else.

        An average of itself, or of a copy of itself, is such a write.
        """
        parameter = one.ref()
        now = [] if parameter is None else fingerprint(parameter)
        pairs = [(float(before), float(after)) for before, after in zip(one.base or (), now, strict=False)]
        size = sum(abs(before) for before, _ in pairs)
        same = bool(pairs) and sum(abs(after - before) for before, after in pairs) <= _ROUNDING * size
        return self._scene.sampling.step - one.base_step if same else 0

    def _have_stayed(self, held: list[Held], event: CopyUnchanged) -> bool:
        """Return True if parameters have the values that were read first; of those that are gone nothing is known."""
        for one in held:
            parameter = one.ref()
            if parameter is None:
                continue
            same = one.base_version == version(parameter) and one.base == fingerprint(parameter)
            if not same and not (event.written and self._written_with_its_values(one)):
                return False
        return True

    def _runs(self, part: Part) -> bool:
        """Return True if a module inside of a model runs when the model is called."""
        numbers = set(part.numbers)
        return numbers <= self._scene.ledger.ran.keys() or len(numbers) == len(list(part.root.parameters()))

    def _is_used(self, part: Part) -> bool:
        """Return True if a model or a part of it was called at a later step than that in which its values were read."""
        since = max(one.base_step for one in part.held)
        if not part.path or not self._scene.ledger.ran.keys() >= set(part.numbers):
            return self._calls.get(self._scene.numbers.known("model", part.root) or 0, since + 1) > since
        return all(self._scene.ledger.ran[number] > since for number in part.numbers)

    def _parts(self) -> list[Part]:
        """Return the models that were called and the modules with submodules inside of them, outer ones first."""
        parts: list[Part] = []
        visits = 0
        for root in self._scene.numbers.alive("trained model")[:_MOST]:
            for path, module in root.named_modules():
                if (path and next(module.children(), None) is None) or visits > _MOST_VISITS:
                    continue
                held = self._held(module)
                visits += len(held)
                if held:
                    parts.append(Part(root, path, module, held))
        return sorted(parts, key=lambda part: bool(part.path))

    def _event(self, part: Part, other: Part, steps: int, **facts: bool) -> CopyUnchanged:
        scene = self._scene
        main = vars(sys.modules["__main__"])
        return scene.event(
            CopyUnchanged,
            model=scene.numbers.known("model", part.root) or 0,
            path=part.path,
            source=scene.numbers.known("model", other.root) or 0,
            source_path=other.path,
            parameters=part.numbers,
            names=tuple(sorted(name for name, value in main.items() if value is part.module)),
            loop=self._idle_loop(),
            steps=steps,
            inside=part.root is other.root,
            **facts,
        )

    def _held(self, module: Any) -> list[Held]:
        """Return the records of the parameters of a module; an empty list if one is unknown."""
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
    for node in source.walk(tree) if tree is not None else ():
        if isinstance(node, ast.For) and isinstance(node.target, ast.Tuple) and _pairs(node.iter):
            names = {one.id for one in node.target.elts if isinstance(one, ast.Name)}
            if all(_is_idle(statement, names) for statement in node.body):
                return Site(path, node.lineno, node.col_offset)
    return None


def pairs_loop(path: str) -> Site | None:
    """Return the first loop over a zip of parameters, or of the values of states."""
    tree = source.parsed(path)
    for node in source.walk(tree) if tree is not None else ():
        if isinstance(node, ast.For) and _pairs(node.iter) and _READS.search(ast.unparse(node.iter)):
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


def _are_first(copy: Part, trained: Part) -> bool:
    """Return True if the first values of a copy are those before all steps, or those of the trained model."""
    counted = getattr(copy.module, "n_averaged", None)
    if counted is not None and has_values(counted):
        return not bool(counted.any())
    pairs = zip(copy.held, trained.held, strict=False)
    return all(one.base_step == 0 for one in copy.held) or all(one.base == other.base for one, other in pairs)


def _optimized(held: Held) -> bool:
    return held.panel is not None and held.panel.number > 0


def _trains(held: Held) -> bool:
    """Return True if an optimizer may step a parameter: one that is frozen never gets a step."""
    parameter = held.ref()
    return _optimized(held) and parameter is not None and bool(parameter.requires_grad)


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
