"""Noise that a model is to predict, next to the input that it should be in: denoising diffusion.

A target that is drawn for the loss alone is compared with the noisy input by their correlation, over the sampled steps
of a training. The verdict is left to the end of the run: a model that learns its target is right in some other way.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from types import FrameType, FunctionType
from typing import Any

from truestep import source
from truestep.events import NoiseCompared, Site
from truestep.probes.context.local_variables import variables
from truestep.probes.context.names import call_at
from truestep.probes.context.scene import Scene
from truestep.probes.context.values import has_values
from truestep.probes.copies.call import Call, Path, called
from truestep.probes.copies.objects import Refused
from truestep.probes.variables.origins import place_of, resolved, scope_of, stored_by
from truestep.seams.code.functions import code_of

_DRAWS = frozenset({"randn", "randn_like", "normal_", "normal", "standard_normal"})
_LEAST_BATCHES = 3
_LEAST_VALUES = 1_024
_LARGEST = 1 << 20
_MOST_MODELS = 8
_SIGMAS = 4
_LEARNED = 0.95
"""Error of a model that has learned something of its target, as a share of the mean square of the target."""


@dataclass(slots=True)
class _Called:
    """A call of training, with the arguments that contain noise."""

    model: int
    given: dict[Path, Any]
    made: dict[Path, Site | None]
    """Places that make these arguments."""
    shapes: list[tuple[int, ...]]
    """Shapes of all arguments."""


@dataclass(slots=True)
class _Seen:
    """Sums over the batches of one model."""

    path: Path
    noise: Site
    loss: Site | None
    made: Site | None
    first: float = 0.0
    batches: int = 0
    count: int = 0
    products: float = 0.0
    inputs: float = 0.0
    noises: float = 0.0
    share: float = 0.0
    """Error in the latest batch, as a share of the mean square of the target."""

    @property
    def is_apart(self) -> bool:
        """Return True if the input and the noise have no correlation, and the noise was not learned either."""
        enough = self.batches >= _LEAST_BATCHES and self.count >= _LEAST_VALUES
        limit = _SIGMAS * (self.inputs * self.noises / max(1, self.count)) ** 0.5
        return enough and abs(self.products) < limit and self.share >= _LEARNED


class NoiseTargets:
    """Yields `NoiseCompared` for models that are to predict noise which their input does not contain.

    Args:
        scene: the scene.
        aside: returns the context manager in which values are computed.
    """

    def __init__(self, scene: Scene, aside: Any) -> None:
        self._scene = scene
        self._aside: Any = aside
        self._calls: list[_Called] = []
        """Calls since the latest loss."""
        self._seen: dict[int, _Seen] = {}
        self._done: set[int] = set()

    def returned(self, module: Any, model: int, site: Site | None, frame: FrameType) -> None:
        """Keep the arguments of a call in training that has returned."""
        made = _Called(model, {}, {}, [])
        self._calls = [*self._calls[-1:], made]
        if model in self._done or len(self._done | self._seen.keys() | {model}) > _MOST_MODELS:
            return
        own, node = self._scene.sites.own(1), call_at(site)
        if own is not None and node is not None and not any(isinstance(one, ast.Starred) for one in node.args):
            with contextlib.suppress(Refused), self._aside():
                self._sort(made, called(module, frame), node, own, site)

    def _sort(self, made: _Called, call: Call, node: ast.Call, own: FrameType, site: Site | None) -> None:
        """Record the arguments of a call that the program mixes with noise."""
        for path, value in call.tensors(self._scene.torch).items():
            made.shapes.append(tuple(value.shape))
            if len(path) != 2 or value.requires_grad or value.dim() < 2 or not value.is_cpu or not has_values(value):
                continue
            expression = expression_of(node, path, own)
            if expression is not None and value.is_floating_point() and _is_noisy(expression, own):
                named = isinstance(argument_of(node, path), ast.Name)
                made.given[path] = value.detach()
                made.made[path] = place_of(own.f_code, expression) if named else site

    def computed(self, site: Site | None, input: Any, target: Any) -> None:
        """Handle a loss of training, with its input and its target."""
        calls, self._calls = self._calls, []
        own, node = self._scene.sites.own(1), call_at(site)
        if len(calls) != 1:  # of several calls it is not known which one the loss belongs to
            self._give_up(*(one.model for one in calls))
            return
        made = calls[0]
        paths = [path for path, value in made.given.items() if value.shape == target.shape]
        drawn = None
        if own is not None and node is not None and len(paths) == made.shapes.count(tuple(target.shape)) == 1:
            names = [*node.args[1:2], *(one.value for one in node.keywords if one.arg == "target")]
            plain = target.is_cpu and target.is_floating_point() and input.shape == target.shape
            drawn = drawn_by(names[0], own, site) if plain and len(names) == 1 else None
        if drawn is None or target.numel() > _LARGEST:  # the source is read once for a model with another loss
            self._give_up(made.model)
            return
        with self._aside():
            seen = self._seen.setdefault(made.model, _Seen(paths[0], drawn, site, made.made[paths[0]]))
            value = made.given[paths[0]].double()
            if seen.path != paths[0] or not bool(value.isfinite().all()):
                self._give_up(made.model)
            else:
                self._add(made.model, seen, value, input.detach().double(), target.detach().double())

    def _add(self, model: int, seen: _Seen, value: Any, result: Any, target: Any) -> None:
        first = float(target.reshape(-1)[0])
        if first == seen.first:  # noise that is drawn once for the whole training
            self._give_up(model)
            return
        value = value - value.mean(0)  # a mean adds nothing to the products but their error
        square = float(target.square().sum())
        seen.first = first
        seen.batches += 1
        seen.count += target.numel()
        seen.products += float((value * target).sum())
        seen.inputs += float(value.square().sum())
        seen.noises += square
        seen.share = float((result - target).square().sum()) / square if square else 0.0

    def last(self) -> Iterator[NoiseCompared]:
        """Yield the models with other noise, at the end of the run."""
        for model, seen in self._seen.items():
            if seen.is_apart:
                facts = {"site": seen.noise, "given": seen.made, "loss": seen.loss}
                yield NoiseCompared(model=model, samples=seen.count, **facts)

    def _give_up(self, *models: int) -> None:
        for model in models:
            self._done.add(model)
            self._seen.pop(model, None)


def argument_of(call: ast.Call, path: Path) -> ast.expr | None:
    """Return the expression of an argument of a call."""
    where, at = path
    if where == "args":
        return call.args[at] if at < len(call.args) else None
    return next((one.value for one in call.keywords if one.arg == at), None)


def expression_of(call: ast.Call, path: Path, frame: FrameType) -> ast.expr | None:
    """Return the argument of a call, or the expression that was assigned to its name."""
    given = argument_of(call, path)
    if not isinstance(given, ast.Name):
        return given
    statement = stored_by(frame, given.id)
    plain = isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)
    return statement.value if plain and isinstance(statement, ast.Assign) else None


def _is_noisy(expression: ast.expr, frame: FrameType) -> bool:
    """Return True for arithmetic, or a call of the program, in which a value is drawn, or that gets a drawn one."""
    if not isinstance(expression, ast.Call | ast.BinOp) or (isinstance(expression, ast.Call) and _draws(expression)):
        return False
    names = frame.f_globals | variables(frame)
    for node in source.walk(expression):
        if isinstance(node, ast.Name) and drawn_by(node, frame, None) is not None:
            return True
        if isinstance(node, ast.Call):
            function = resolved(node.func, names)
            inside = code_of(function).co_names if isinstance(function, FunctionType) else ()
            if _draws(node) or not _DRAWS.isdisjoint(inside):
                return True
    return False


def drawn_by(expression: ast.expr, frame: FrameType, at: Site | None) -> Site | None:
    """Return the place of the call that draws an argument of another call; None if it is made otherwise.

    Noise of the loss, which has a place, must be read nowhere else.

    Args:
        expression: the argument.
        frame: frame of the other call.
        at: place of the other call, which is that of a draw within it.
    """
    if isinstance(expression, ast.Name):
        statement = stored_by(frame, expression.id)
        alone = isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)
        if not alone or not isinstance(statement, ast.Assign) or expression.id not in variables(frame):
            return None
        if at is not None and _reads(expression.id, frame) > 1:
            return None
        expression, at = statement.value, place_of(frame.f_code, statement.value)
    return at if isinstance(expression, ast.Call) and _draws(expression) else None


def _draws(call: ast.Call) -> bool:
    """Return True if the last function of a call draws: "randn" of ``torch.randn(4).to(device)``."""
    while isinstance(call.func, ast.Attribute) and call.func.attr in ("to", "cpu", "cuda", "float", "view"):
        if not isinstance(call.func.value, ast.Call):
            break
        call = call.func.value
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    return name in _DRAWS


def _reads(name: str, frame: FrameType) -> int:
    """Return the number of places in a function, and in those inside, that read a variable of it."""
    return sum(
        isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
        for whole in scope_of(frame.f_code)
        for node in _inside(whole, name)
    )


def _inside(node: ast.AST, name: str) -> list[ast.AST]:
    """Return the nodes of a function in which a name is not an argument; other nodes alone."""
    if not isinstance(node, ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef):
        return [node]
    given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    return [] if any(one.arg == name for one in given) else list(source.walk(node))
