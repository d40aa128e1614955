"""Noise that a model is to predict, next to the input that it should be in: denoising diffusion.

The input of the model and the drawn target are compared by their correlation, over the sampled steps of a training:
a target that is in the input has one, by the definition of the task. Of inputs with noise of several levels, the
level of each sample (the product of its input and its noise) is compared with the arguments of one number per sample.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from truestep import source
from truestep.events import NoiseCompared, Site
from truestep.probes.context.local_variables import variables
from truestep.probes.context.names import call_at
from truestep.probes.context.scene import Scene
from truestep.probes.context.values import has_values
from truestep.probes.copies.call import Call, Path, called
from truestep.probes.variables.origins import place_of, scope_of, stored_by

_DRAWS = frozenset({"randn", "randn_like", "normal_", "normal", "standard_normal"})
_LEVELS = frozenset({"rand", "randint", "uniform_", "random_", "rand_like", "integers"})
_LEAST_BATCHES = 3
_LEAST_VALUES, _LEAST_OF_SEVERAL = 1_024, 4_096
"""Number of values that are compared; the second one for noise that other statements use."""
_LEAST_SAMPLES = 256
_MOST_SAMPLES = 8_192
_LEAST_LEVELS = 16
_LARGEST = 1 << 20
_MOST_MODELS = 8
_SIGMAS = 4


@dataclass(slots=True)
class _Called:
    """A call of training, with the arguments that may contain noise."""

    model: int
    given: dict[Path, Any]
    levels: dict[Path, Any]
    """Arguments of one number per sample."""
    made: dict[Path, Site | None]
    """Places that make the arguments that may contain noise."""
    drawn: dict[Path, Site]
    """Places that draw the arguments of one number per sample."""


@dataclass(slots=True)
class _Seen:
    """Sums over the batches of one model."""

    path: Path
    noise: Site
    elsewhere: bool
    """True if other statements than the loss use the noise."""
    first: float = 0.0
    batches: int = 0
    count: int = 0
    products: float = 0.0
    inputs: float = 0.0
    noises: float = 0.0
    tails: float = 0.0
    samples: list[Any] = field(default_factory=list)
    """Tables of the samples: the products of input and noise in two halves of the values, and the levels."""
    levels: tuple[Path, ...] = ()
    drawn: Site | None = None
    """Statement that draws the levels."""


class NoiseTargets:
    """Emits `NoiseCompared` once for a model that is to predict noise.

    Args:
        scene: the scene.
        aside: returns the context manager in which values are computed.
    """

    def __init__(self, scene: Scene, aside: Any) -> None:
        self._scene = scene
        self._aside: Any = aside
        self._call: _Called | None = None
        self._seen: dict[int, _Seen] = {}
        self._done: set[int] = set()

    def returned(self, module: Any, model: int, site: Site | None, frame: FrameType) -> None:
        """Keep the arguments of a call in training that has returned, if the program made one of them by arithmetic."""
        self._call = None
        own = self._scene.sites.own(1)
        node = call_at(site)
        if model in self._done or len(self._done | self._seen.keys() | {model}) > _MOST_MODELS:
            return
        if own is None or node is None or any(isinstance(one, ast.Starred) for one in node.args):
            return
        made = _Called(model, {}, {}, {}, {})
        with self._aside():
            self._sort(made, called(module, frame), node, own, site)
        self._call = made if made.given else None

    def _sort(self, made: _Called, call: Call, node: ast.Call, own: FrameType, site: Site | None) -> None:
        """Record the arguments of a call that may contain noise, and those of one number per sample."""
        for path, value in call.tensors(self._scene.torch).items():
            if len(path) != 2 or value.requires_grad or not value.dim() or not value.is_cpu or not has_values(value):
                continue
            if value.numel() == len(value):
                made.levels[path] = value.detach()
                drawn = _drawn(_argument(node, path), own, site, _LEVELS)
                made.drawn |= {} if drawn is None else {path: drawn}
            expression = _expression(node, path, own)
            if expression is not None and value.is_floating_point() and value.dim() > 1 and _is_made(expression):
                named = isinstance(_argument(node, path), ast.Name)
                made.given[path] = value.detach()
                made.made[path] = place_of(own.f_code, expression) if named else site

    def computed(self, site: Site | None, target: Any) -> None:
        """Handle a loss of training, with its target."""
        made, self._call = self._call, None
        own, node = self._scene.sites.own(1), call_at(site)
        if made is None or own is None or node is None or not target.is_cpu or target.numel() > _LARGEST:
            return
        paths = [path for path, value in made.given.items() if value.shape == target.shape]
        names = [*node.args[1:2], *(one.value for one in node.keywords if one.arg == "target")]
        if len(paths) != 1 or len(names) != 1 or not target.is_floating_point():
            return
        drawn = _drawn(names[0], own, site)
        if drawn is None:
            self._done.add(made.model)
            return
        with self._aside():
            self._compare(made, paths[0], target.detach(), site, (drawn, _is_used(names[0], own, site)))

    def _compare(self, made: _Called, path: Path, target: Any, site: Site | None, noise: tuple[Site, bool]) -> None:
        seen = self._seen.setdefault(made.model, _Seen(path, *noise))
        value, first = made.given[path], float(target.reshape(-1)[0])
        if seen.path != path or first == seen.first or not bool(value.isfinite().all()):
            self._done.add(made.model)  # another argument, or noise that is drawn once for the whole training
            self._seen.pop(made.model)
            return
        value, target = value.double(), target.double()
        value = value - value.mean(0)  # a mean adds nothing to the products but their error
        seen.first = first
        seen.batches += 1
        seen.count += target.numel()
        seen.products += float((value * target).sum())
        seen.inputs += float(value.square().sum())
        seen.noises += float(target.square().sum())
        self._add_samples(seen, made, value, target)
        least = _LEAST_OF_SEVERAL if seen.elsewhere else _LEAST_VALUES
        if seen.batches < _LEAST_BATCHES or seen.count < least:
            return
        apart = abs(seen.products) < _SIGMAS * (seen.inputs * seen.noises / seen.count) ** 0.5
        if apart and (not seen.elsewhere or _are_several(made)):
            self._emit(made, seen, site, "noise")
        elif apart or not seen.levels or seen.drawn is None:
            self._finish(made.model)
        else:
            self._compare_levels(made, seen, site)

    def _add_samples(self, seen: _Seen, made: _Called, value: Any, target: Any) -> None:
        """Record the level of the noise in each sample by two halves of its values, beside the given levels."""
        rows, torch = len(target), self._scene.torch
        levels = {path: one for path, one in made.levels.items() if len(one) == rows}
        if not seen.samples:
            seen.levels = tuple(levels)
            seen.drawn = made.drawn.get(seen.levels[0]) if len(levels) == 1 else None
        products = (value * target).reshape(rows, -1)
        if seen.levels != tuple(levels) or products.shape[1] < 2:
            return
        halves = [products[:, at::2].mean(1) for at in (0, 1)]
        given = [one.reshape(rows).double() for one in levels.values()]
        seen.samples.append(torch.stack([*halves, *given], 1))

    def _compare_levels(self, made: _Called, seen: _Seen, site: Site | None) -> None:
        """Emit levels that are not those of their samples: the noise has several, as both halves of a sample show."""
        torch = self._scene.torch
        table = torch.cat(seen.samples) if seen.samples else torch.zeros(0, 3)
        if len(table) < _LEAST_SAMPLES:
            return
        limit = _SIGMAS / len(table) ** 0.5
        columns = torch.stack([table[:, 0], table[:, 1], table[:, :2].sum(1), table[:, 2]])
        together = torch.corrcoef(columns.argsort(1).argsort(1).double())
        is_given = not abs(float(together[2, 3])) < limit
        if is_given or len(table) > _MOST_SAMPLES or len(table[:, 2].unique()) < _LEAST_LEVELS:
            self._finish(made.model)
        elif float(together[0, 1]) > limit:
            self._emit(made, seen, site, "level")

    def _emit(self, made: _Called, seen: _Seen, site: Site | None, kind: str) -> None:
        self._finish(made.model)
        at = seen.drawn if kind == "level" and seen.drawn is not None else seen.noise
        given = made.made[seen.path]
        self._scene.emit(
            NoiseCompared(model=made.model, kind=kind, site=at, given=given, loss=site, samples=seen.count)
        )

    def _finish(self, model: int) -> None:
        self._done.add(model)
        self._seen.pop(model, None)


def _are_several(made: _Called) -> bool:
    """Return True if an argument has levels that differ between the samples: at most levels there is much noise."""
    return any(len(one.unique()) >= min(_LEAST_LEVELS, len(one) // 2) > 1 for one in made.levels.values())


def _argument(call: ast.Call, path: Path) -> ast.expr | None:
    """Return the expression of an argument of a call."""
    where, at = path
    if where == "args":
        return call.args[at] if at < len(call.args) else None
    return next((one.value for one in call.keywords if one.arg == at), None)


def _expression(call: ast.Call, path: Path, frame: FrameType) -> ast.expr | None:
    """Return the expression that makes an argument of a call: the argument itself, or what its name was stored as."""
    given = _argument(call, path)
    if not isinstance(given, ast.Name):
        return given
    statement = stored_by(frame, given.id)
    plain = isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)
    return statement.value if plain and isinstance(statement, ast.Assign) else None


def _is_made(expression: ast.expr) -> bool:
    """Return True for arithmetic, and for calls of other functions than those that draw."""
    called = isinstance(expression, ast.Call) and _name(expression) not in _DRAWS | _LEVELS
    return called or isinstance(expression, ast.BinOp)


def _drawn(
    expression: ast.expr | None, frame: FrameType, at: Site | None, draws: frozenset[str] = _DRAWS
) -> Site | None:
    """Return the place of the call that draws an argument of another call; None if it is made otherwise.

    Args:
        expression: the argument.
        frame: frame of the other call.
        at: place of the other call, which is that of a draw within it.
        draws: names of functions that draw.
    """
    if isinstance(expression, ast.Name):
        statement = stored_by(frame, expression.id)
        alone = isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)
        if not alone or not isinstance(statement, ast.Assign) or expression.id not in variables(frame):
            return None
        expression, at = statement.value, place_of(frame.f_code, statement.value)
    drawn = isinstance(expression, ast.Call) and _name(expression) in draws
    return at if drawn else None


def _name(call: ast.Call) -> str:
    """Return the last name of a called function: "randn" of ``torch.randn(4).to(device)``."""
    while isinstance(call.func, ast.Attribute) and call.func.attr in ("to", "cpu", "cuda", "float", "long", "view"):
        if not isinstance(call.func.value, ast.Call):
            break
        call = call.func.value
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _is_used(expression: ast.expr, frame: FrameType, loss: Site | None) -> bool:
    """Return True if statements outside the loss read the noise."""
    if not isinstance(expression, ast.Name):
        return False
    lines = range(loss.line, max(loss.line, loss.end_line) + 1) if loss else range(0)
    return any(
        isinstance(node, ast.Name) and node.id == expression.id and isinstance(node.ctx, ast.Load)
        for whole in scope_of(frame.f_code)
        for node in _inside(whole, expression.id)
        if getattr(node, "lineno", 0) not in lines
    )


def _inside(node: ast.AST, name: str) -> list[ast.AST]:
    """Return the nodes of a function in which a name is not an argument; other nodes alone."""
    if not isinstance(node, ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef):
        return [node]
    given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    return [] if any(one.arg == name for one in given) else list(source.walk(node))
