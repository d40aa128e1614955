"""Gradients of results: columns and samples that no loss uses, read in backward passes of sampled steps.

Seam: a pre-hook of the operation that made the result. It returns nothing, so the gradients stay as they are, and it is
freed with the graph.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Any

from truestep.events import ResultDifferentiated, Site
from truestep.probes.active.pushes import Pushes, push
from truestep.probes.context.scene import Scene
from truestep.probes.context.values import has_values
from truestep.probes.copies.call import called
from truestep.probes.copies.objects import Refused
from truestep.probes.evaluation.chosen import ChosenRows, Leaning, arguments, column_of, leaning
from truestep.probes.forward.losses.label_values import is_transformed
from truestep.probes.forward.results import call_at
from truestep.probes.variables.arrays import arrays, shape_of
from truestep.seams.refs import Ref

_MOST_PARTS = 8
_MOST_RESULTS = 16
"""Results that are followed in one step."""
_MOST_PASSES = 4
"""Backward passes of a step that are read."""
_LARGEST = 1 << 22
_LEAST_ROWS = 8
_MOST_RANGES = 4
_MOST_WEIGHTS = 256
_MOST_NUMBERS = 4096
"""Numbers of one sample in a result with positions, of which each is looked at."""
_COMMON = 0.9
"""Least share of the samples with a gradient that have one in each column with a gradient."""
_PARTS = frozenset({"chunk", "split", "select", "narrow", "unbind", "index_select", "tensor_split"})

Ranges = tuple[tuple[int, int], ...]


@dataclass(slots=True)
class _Followed:
    """A result, or a part of one, with a hook."""

    module: Ref
    model: int
    part: str
    site: Site | None
    step: int
    batch: bool
    """True if it has a row for each sample of the latest batch of a DataLoader."""
    place: int
    """Number of the result among those of the operation."""
    asked: bool = False
    """True if a variable next to the call has a value for each column."""
    given: frozenset[Any] | None = None
    """Keys of the arguments with a row for each of its rows; None unless it is the first part of its result."""
    column: Any = None
    """Its values, if it has a single column."""
    alive: Any = None
    """Rows and columns with a gradient that is not zero."""
    leaning: Leaning | None = None
    """Direction of its gradient."""
    origin: tuple[int, bool] = (0, False)
    """Model that made its input, and True if with its graph."""
    push: Any = None
    """Bounds and size of the gradient of one score for each sample."""


class ResultGradients:
    """Emits `ResultDifferentiated`: once for a result with a gradient everywhere, else after each pass that is read.

    Args:
        scene: the scene.
        chosen: gets the rows with a gradient.
    """

    def __init__(self, scene: Scene, chosen: ChosenRows) -> None:
        self._scene = scene
        self._chosen = chosen
        self._pushes = Pushes(scene)
        self._step = -1
        self._passes = 0
        self._followed: list[_Followed] = []
        self._told: dict[tuple[int, str], bool] = {}
        """Model and part to True if it lacked a gradient somewhere."""

    def returned(self, module: Any, model: int, site: Site | None, frame: FrameType, result: Any, batch: int) -> None:
        """Follow the result of a call with gradients.

        Args:
            module: the model.
            model: its number.
            site: line of the call.
            frame: torch's frame of the call, with the arguments.
            result: the result.
            batch: number of samples of the latest batch of a DataLoader; 0 without one.
        """
        step = self._scene.sampling.step
        if step != self._step:
            self._step, self._passes, self._followed = step, 0, []
        if _is_compiled_backward():
            return
        beside: list[tuple[int, ...]] | None = None
        first = True
        for part, tensor in _parts(result, self._scene.torch.Tensor):
            if len(self._followed) < _MOST_RESULTS and _is_readable(tensor):
                beside = self._beside(module, frame) if beside is None else beside
                asked = any(shape[1:] == tuple(tensor.shape[1:]) for shape in beside)
                place = int(tensor.output_nr)
                one = _Followed(Ref(module), model, part, site, step, len(tensor) == batch, place, asked)
                if first:
                    one.origin = self._pushes.origin(module, model, frame)
                    self._pushes.returned(model, tensor)
                    first, one.column = False, column_of(tensor)
                    one.given = arguments(frame, self._scene.torch, len(tensor))
                self._followed.append(one)
                tensor.grad_fn.register_prehook(self._hook(one, tuple(tensor.shape)))

    def _beside(self, module: Any, frame: FrameType) -> list[tuple[int, ...]]:
        """Return the shapes of the arrays in variables next to a call that can be targets: not of its inputs."""
        torch, scene = self._scene.torch, self._scene
        try:
            call = called(module, frame)
        except Refused:
            return []  # its inputs are not known
        given = {shape_of(torch, value)[1:] for value in (*call.args, *call.kwargs.values())}
        held = (one.value for one in arrays(scene, scene.sites.users(frame)))
        plain = [value for value in held if getattr(value, "requires_grad", False) is False]
        return [shape for value in plain if (shape := shape_of(torch, value))[1:] not in given]

    def _hook(self, one: _Followed, shape: tuple[int, ...]) -> Callable[[Any], None]:
        scene = self._scene

        def gradient(gradients: tuple[Any, ...]) -> None:
            if not scene.active or scene.sampling.step != one.step:
                return
            aside = scene.unseen.begin()
            try:
                given = gradients[one.place] if one.place < len(gradients) else None
                if given is not None and tuple(given.shape) == shape and not is_transformed(given):
                    alive = _alive(given.detach()) if has_values(given) else None
                    if alive is not None and one.given is not None:
                        one.leaning = leaning(given.detach(), one.column)
                        one.push = push(scene.torch, given)
                    one.alive = alive if one.alive is None or alive is None else one.alive | alive
            except Exception:
                scene.fail()
            finally:
                if aside:
                    aside.close()

        return gradient

    def differentiated(self, loss: Site | None) -> None:
        """Handle the end of a backward pass of a sampled step."""
        if not self._followed or self._passes >= _MOST_PASSES:
            return
        self._passes += 1
        for one in self._followed:
            alive, one.alive = one.alive, None
            pushed, one.push = one.push, None
            if pushed is not None:
                self._pushes.emit(one.model, one.origin, pushed, loss)
            if alive is not None:
                self._read(one, alive, loss)

    def _read(self, one: _Followed, alive: Any, loss: Site | None) -> None:
        alive = alive.cpu()
        each = alive.flatten(1)
        alive = alive.any(1) if alive.dim() == 3 else alive
        rows, columns = alive.any(1), alive.any(0)
        if one.given is not None and one.leaning is not None:
            self._chosen.trained(one.model, one.given, rows, one.leaning.on_cpu(), loss)
        count = int(rows.sum())
        dead = _dead(alive)
        own = bool(dead) and self._is_own(one.module(), columns, dead)
        if not dead and (parts := _dead(each)) and self._is_own(one.module(), each.any(0), parts):
            # Positions share their weights, unless one layer makes the numbers of all of them.
            columns, dead, own = each.any(0), parts, True
        unused = _ranges(rows) if one.batch and count >= _LEAST_ROWS and 2 * count <= len(rows) else ()
        key = one.model, one.part
        if not (dead or unused) and key in self._told and not self._told[key]:
            return
        self._told[key] = self._told.get(key, False) or bool(dead or unused)
        self._scene.tell(
            ResultDifferentiated,
            model=one.model,
            part=one.part,
            columns=len(columns),
            dead=dead,
            own=own,
            asked=one.asked,
            samples=len(rows),
            unused=unused,
            place=_place(one.site) if one.site is not None and (own or unused) else None,
            site=one.site,
            loss=loss,
        )

    def _is_own(self, module: Any, columns: Any, dead: Ranges) -> bool:
        """Return True if weights of the model belong to the columns alone: their gradients are zero as well."""
        if module is None:
            return False
        sizes = {end - begin for begin, end in dead}
        for number, weight in enumerate(module.parameters()):
            grad: Any = weight.grad if number < _MOST_WEIGHTS else None
            if type(grad) is not self._scene.torch.Tensor or not has_values(grad) or not 0 < grad.dim() < 6:
                continue
            if grad.numel() > _LARGEST:
                continue
            for dim in {0, min(1, grad.dim() - 1), grad.dim() - 1}:
                if grad.shape[dim] == len(columns):
                    used = (grad != 0).movedim(dim, 0).reshape(len(columns), -1).any(1).cpu()
                    if bool((used == columns).all()):
                        return True
            if grad.shape[0] in sizes and not bool((grad != 0).any()):
                return True
        return False


def _alive(gradient: Any) -> Any:
    """Return True for each row and column (the last of two or three dimensions, else the second) with a gradient.

    Of three dimensions the second one is left as it is, unless it is long.
    """
    alive = gradient != 0
    if alive.dim() == 1:
        return alive[:, None]
    if alive.dim() == 3:
        return alive if alive[0].numel() <= _MOST_NUMBERS else alive.any(1)
    return alive if alive.dim() == 2 else alive.flatten(2).any(2)


def _dead(alive: Any) -> Ranges:
    """Return the columns without a gradient in any row, if they are at least half of them, and the others have one."""
    rows, columns = alive.any(1), alive.any(0)
    if int(rows.sum()) < _LEAST_ROWS or 2 * int(columns.sum()) > len(columns):
        return ()
    return _ranges(columns) if float(alive[rows][:, columns].float().mean()) >= _COMMON else ()


def _ranges(alive: Any) -> Ranges:
    """Return the ranges without a gradient; nothing if they are many, as of a selection by the data."""
    found: list[tuple[int, int]] = []
    for place, one in enumerate(alive.tolist()):
        if one:
            continue
        if found and found[-1][1] == place:
            found[-1] = found[-1][0], place + 1
        else:
            found.append((place, place + 1))
        if len(found) > _MOST_RANGES:
            return ()
    return tuple(found)


def _parts(result: Any, tensor: type) -> Iterator[tuple[str, Any]]:
    """Yield the tensors of a result with their names; the methods of its class are not called."""
    kind = type(result)
    if kind is tensor:
        yield "", result
    elif issubclass(kind, dict):
        for key, value in [*dict.items(result)][:_MOST_PARTS]:
            if type(value) is tensor and type(key) is str:
                yield key, value
    elif issubclass(kind, tuple | list):
        plain = tuple.__iter__(result) if issubclass(kind, tuple) else list.__iter__(result)
        for place, value in enumerate([*plain][:_MOST_PARTS]):
            if type(value) is tensor:
                yield str(place), value


def _is_readable(tensor: Any) -> bool:
    """Return True for a result with a graph that a hook does not disturb."""
    return (
        tensor.grad_fn is not None
        and 0 < tensor.dim() < 6
        and tensor.shape[0] >= _LEAST_ROWS
        and tensor.numel() <= _LARGEST
        and not is_transformed(tensor)
        and has_values(tensor)
        and not tensor.is_complex()
    )


def _is_compiled_backward() -> bool:
    """Return True if compiled autograd is on, which would compile a hook with the backward pass."""
    module = sys.modules.get("torch._dynamo.compiled_autograd")
    return bool(getattr(module, "compiled_autograd_enabled", False))


def _place(site: Site) -> Site | None:
    """Return the first expression that takes a part of the result of a call, in the source of its function."""
    found = call_at(site)
    if found is None:
        return None
    call, parents = found
    up = parents[call]
    if _takes_part(call, parents):
        return _site_of(up, site)
    targets = up.targets if isinstance(up, ast.Assign) else ()
    names = {target.id for target in targets if isinstance(target, ast.Name)}
    for node in parents if names else ():
        if isinstance(node, ast.Name) and node.id in names and isinstance(node.ctx, ast.Load):
            after = (node.lineno, node.col_offset) >= (site.end_line, site.end_column)
            if after and _takes_part(node, parents):
                part = parents[node]
                return _site_of(part if isinstance(part, ast.Subscript) else parents[part], site)
    return None


def _takes_part(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    up = parents[node]
    if isinstance(up, ast.Subscript):
        return up.value is node and isinstance(up.ctx, ast.Load)
    return isinstance(up, ast.Attribute) and up.attr in _PARTS and isinstance(parents[up], ast.Call)


def _site_of(node: ast.AST, site: Site) -> Site:
    line, column, end_line, end_column = (
        getattr(node, name) for name in ("lineno", "col_offset", "end_lineno", "end_col_offset")
    )
    return Site(site.path, line, column, end_line, end_column, function=site.function)
