"""Derivatives by ``autograd.grad`` without a graph that are added to tensors with one, in the loss that follows.

The call shows that the result has no graph, and that its output has one to trained parameters. The source has the sum
with the result; the frame, the values beside it. The tape of the next backward pass has the operations of the output.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable, Iterator
from types import FrameType, ModuleType
from typing import Any, NamedTuple

from truestep import source
from truestep.events import Site, TermsRead
from truestep.probes.backward.loss_terms.loss_source import innermost_call, read_names
from truestep.probes.context.local_variables import own_dict, variables
from truestep.probes.context.scene import Scene

NAME = "torch.autograd.grad"
"""Text of the cut."""
_KEY = "truestep differentiated"
"""Key in the metadata of operations that an output was computed by."""
_MARKED = 64
_MOST = 32
"""Calls between two backward passes that are remembered."""
_MOST_NODES = 20_000
_DEEPEST = 3
"""Functions that return a derivative to each other."""
_FORMS = frozenset({"view", "reshape", "squeeze", "unsqueeze", "flatten", "sum", "mean", "clone", "contiguous", "t"})
"""Methods with results that are still the derivative, in another form."""


class _Sum(NamedTuple):
    """A sum with a derivative."""

    beside: frozenset[str]
    """Names in the other operands."""
    factors: frozenset[str]
    """Names in the factors of the derivative, with their attributes."""
    with_graph: bool
    """Whether another operand is a derivative with a graph."""


class _Use(NamedTuple):
    """The use of a derivative in a function."""

    sums: tuple[_Sum, ...]
    returned: bool
    """Whether the function returns it."""


class Derivatives:
    """Emits `TermsRead` for a derivative without a graph in a sum with tensors that have one."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._waiting: dict[int, tuple[Site, tuple[Site, ...]]] = {}
        """Number to the calls since the latest backward pass, each with the calls that lead to it."""
        self._count = 0
        self._with_graph: set[tuple[Site, ...]] = set()
        self._told: dict[tuple[Site, ...], Site] = {}

    def taken(self, outputs: Any, args: tuple[Any, ...], site: Site | None, frame: FrameType | None) -> None:
        """Look at a call of ``autograd.grad``.

        Args:
            outputs: the differentiated tensors.
            args: the other arguments of the engine.
            site: the line of the call.
            frame: the user's frame with the call.
        """
        scene = self._scene
        if site is None or frame is None or len(args) < 4 or not scene.sampling.on or len(outputs) != 1:
            return
        chain, frames = self._chain(frame, site)
        if args[2]:
            self._with_graph.add(chain)
            if chain in self._told:
                scene.tell(TermsRead, site=self._told[chain])
            return
        node = getattr(outputs[0], "grad_fn", None)
        if node is None or chain in self._with_graph or not scene.torch.is_grad_enabled():
            return
        made, leaves = below([node])
        trained = self._trained(leaves)
        if not trained or self._trained(_leaves_of(args[3] if type(args[3]) is tuple else ())):
            return
        if len(self._waiting) < _MOST and self._is_added(chain, frames, trained):
            self._count += 1
            self._waiting[self._count] = (chain[1] if len(chain) > 1 and _chooses(site) else site, chain)
            for one in made:
                one.metadata[_KEY] = self._count

    def look(self, node: Any, site: Site | None) -> bool:
        """Return True, and emit it, if such a derivative belongs to the loss of a backward pass."""
        if not self._waiting:
            return False
        waiting, self._waiting = self._waiting, {}
        if node is None or site is None:
            return False
        numbers = {one.metadata.get(_KEY) for one in _operations([node])}
        found = next((waiting[number] for number in waiting if number in numbers), None)
        if found is None:
            return False
        place, chain = found
        self._told[chain] = site
        self._scene.tell(TermsRead, site=site, place=place, cut=NAME)
        return True

    def _chain(self, frame: FrameType, site: Site) -> tuple[tuple[Site, ...], list[FrameType]]:
        """Return the calls that lead to a call and their frames, the innermost first, while these return its result."""
        places, frames = [site], [frame]
        index: int | None = None
        while len(places) < _DEEPEST and _use(places[-1], index).returned:
            index = _returned_at(places[-1], index)
            above = frames[-1].f_back
            place = self._scene.sites.at(above) if above is not None else None
            if above is None or place is None or place.path != site.path:
                break
            places.append(place)
            frames.append(above)
        return tuple(places), frames

    def _trained(self, leaves: Iterable[int]) -> set[int]:
        """Return the leaves that an optimizer holds."""
        ledger = self._scene.ledger
        held = ((leaf, ledger.by_id.get(leaf)) for leaf in leaves)
        return {
            leaf for leaf, one in held if one is not None and one.panel is not None and one.panel is not ledger.free
        }

    def _is_added(self, chain: tuple[Site, ...], frames: list[FrameType], trained: set[int]) -> bool:
        """Return True if the result is added to a tensor that these parameters have part in."""
        index: int | None = None
        for place, frame in zip(chain, frames, strict=True):
            sums = _use(place, index).sums
            values = frame.f_globals | variables(frame) if sums else {}
            for one in sums:
                beside = one.with_graph or any(self._reaches(values.get(name), trained) for name in one.beside)
                if beside and not any(self._has_gradient(values, name) for name in one.factors):
                    return True
            index = _returned_at(place, index)
        return False

    def _has_gradient(self, values: dict[str, Any], name: str) -> bool:
        """Return True for a name, such as ``c`` or ``self.c``, of a value that can have a gradient."""
        torch = self._scene.torch
        base, _, attribute = name.partition(".")
        value = values.get(base)
        if attribute and not isinstance(value, torch.Tensor | ModuleType):
            value = (own_dict(value) or {}).get(attribute, value)
        return isinstance(value, torch.nn.Module) or (isinstance(value, torch.Tensor) and value.requires_grad)

    def _reaches(self, value: Any, trained: set[int]) -> bool:
        torch = self._scene.torch
        if isinstance(value, torch.Tensor):
            return value.grad_fn is not None and not trained.isdisjoint(_leaves_of([value]))
        return isinstance(value, torch.nn.Module) and any(id(one) in trained for one in value.parameters())


def outputs_of(scope: ast.AST, term: str) -> Iterator[tuple[tuple[str, ...], ast.Call]]:
    """Yield the outputs of the derivatives without a graph that a term is computed from, by name, and the calls."""
    names = {name for one in _assigned(scope, {term}) for name in read_names(one.value)} | {term}
    for statement in _assigned(scope, names):
        for call in source.walk(statement.value):
            if isinstance(call, ast.Call) and _is_grad(call) and not _has_graph(call):
                first = [*call.args[:1], *(one.value for one in call.keywords if one.arg == "outputs")]
                yield tuple(sorted(name for one in first for name in read_names(one))), call


def _assigned(scope: ast.AST, names: set[str]) -> list[ast.Assign]:
    """Return the assignments to some names in a function."""
    found = (one for one in source.walk(scope) if isinstance(one, ast.Assign))
    return [one for one in found if not names.isdisjoint(name for target in one.targets for name in read_names(target))]


@functools.lru_cache(maxsize=256)
def _use(site: Site, index: int | None) -> _Use:
    """Return how a function uses the result of a call, or one of its results."""
    tree = source.parsed(site.path) if site.column >= 0 else None
    scope, call = innermost_call(tree, site) if tree is not None else (None, None)
    if scope is None or call is None:
        return _Use((), False)
    reader = _Reader(scope, call, index)
    return _Use(tuple(reader.sums()), any(True for _ in reader.returns()))


@functools.lru_cache(maxsize=256)
def _chooses(site: Site) -> bool:
    """Return True if a call leaves the choice of a graph to the caller of its function."""
    tree = source.parsed(site.path) if site.column >= 0 else None
    call = innermost_call(tree, site)[1] if tree is not None else None
    return call is not None and _has_graph(call)


@functools.lru_cache(maxsize=256)
def _returned_at(site: Site, index: int | None) -> int | None:
    """Return the place of the derivative among the values that a function returns; None if it is the only one."""
    tree = source.parsed(site.path) if site.column >= 0 else None
    scope, call = innermost_call(tree, site) if tree is not None else (None, None)
    return next(_Reader(scope, call, index).returns(), None) if scope is not None and call is not None else None


class _Reader:
    """Follows the result of a call through one function."""

    def __init__(self, scope: ast.AST, call: ast.Call, index: int | None) -> None:
        self._call, self._index = call, index
        inner = {
            id(below)
            for one in source.walk(scope)
            if one is not scope and isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef))
            for below in source.walk(one)
        }
        self._nodes = [one for one in source.walk(scope) if id(one) not in inner]
        self._parents = {id(child): one for one in self._nodes for child in ast.iter_child_nodes(one)}
        self._names: set[str] = set()
        assigned = [one for one in self._nodes if isinstance(one, ast.Assign) and len(one.targets) == 1]
        for _ in range(_DEEPEST):
            for statement in assigned:
                self._names.update(self._bound(statement.targets[0], statement.value))
        for statement in assigned:  # a name with another value as well
            self._names -= read_names(statement.targets[0]) - set(self._bound(statement.targets[0], statement.value))

    def _bound(self, target: ast.expr, value: ast.expr) -> Iterator[str]:
        """Yield the names that an assignment gives to the derivative."""
        if self._is_result(value):
            one: list[ast.expr] = [target]
            if isinstance(target, ast.Tuple | ast.List):
                one = target.elts if self._index is None else target.elts[self._index : self._index + 1]
            for name in one:
                if isinstance(name, ast.Name) and "target" not in name.id:
                    yield name.id

    def _is_result(self, node: ast.expr) -> bool:
        """Return True for the derivative, also in another form."""
        match node:
            case ast.Name():
                return node.id in self._names
            case ast.Call():
                if node is self._call:
                    return True
                kept = isinstance(node.func, ast.Attribute) and node.func.attr in _FORMS
                return kept and isinstance(node.func, ast.Attribute) and self._is_result(node.func.value)
            case ast.Subscript():
                return self._is_result(node.value)
            case ast.UnaryOp():
                return self._is_result(node.operand)
        return False

    def _factors(self, node: ast.expr) -> list[ast.expr] | None:
        """Return the factors of the derivative in an operand; None if it is none."""
        if self._is_result(node):
            return []
        if isinstance(node, ast.UnaryOp):
            return self._factors(node.operand)
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult | ast.Div):
            return None
        sides = [(node.left, node.right), (node.right, node.left)][: 2 if isinstance(node.op, ast.Mult) else 1]
        for side, other in sides:
            inner = self._factors(side)
            if inner is not None:
                return [*inner, other]
        return None

    def sums(self) -> Iterator[_Sum]:
        """Yield the sums with the derivative, unless these are cut on purpose."""
        for node in self._nodes:
            if not _is_sum(node) or _is_sum(self._parents.get(id(node))) or self._is_measured(node):
                continue
            read = [(one, self._factors(one)) for one in _operands(node)]
            beside = [one for one, factors in read if factors is None and "detach" not in ast.dump(one)]
            names = _names(beside)
            for _, factors in read:
                if factors is not None and beside:
                    yield _Sum(names, _dotted(factors), any(map(self._is_graph, names)))

    def _is_cut(self, node: ast.AST) -> bool:
        above: ast.AST | None = node
        while above is not None:
            if isinstance(above, ast.Attribute) and above.attr in ("detach", "data", "item"):
                return True
            if isinstance(above, ast.Call) and getattr(above.func, "id", "") in ("float", "print"):
                return True
            if isinstance(above, ast.With) and any("no_grad" in ast.dump(item) for item in above.items):
                return True
            above = self._parents.get(id(above))
        return False

    def _is_measured(self, node: ast.AST) -> bool:
        """Return True if a sum is only cut, also through variables: a number to watch, or weights of samples."""
        names, waiting = set[str](), list[ast.AST]([node])
        while waiting:
            one = waiting.pop()
            if self._is_cut(one):
                continue
            statement: ast.AST | None = one
            while statement is not None and not isinstance(statement, ast.stmt):
                statement = self._parents.get(id(statement))
            target = statement.targets[0] if isinstance(statement, ast.Assign) else None
            if not isinstance(target, ast.Name) or not isinstance(statement, ast.Assign) or len(statement.targets) > 1:
                return False
            if target.id not in names:
                names.add(target.id)
                reads = (each for each in self._nodes if isinstance(each, ast.Name) and each.id == target.id)
                waiting.extend(each for each in reads if isinstance(each.ctx, ast.Load))
        return True

    def returns(self) -> Iterator[int | None]:
        """Yield the place of the derivative among returned values, None if it is the only one."""
        for node in self._nodes:
            if not isinstance(node, ast.Return) or node.value is None:
                continue
            if isinstance(node.value, ast.Tuple):
                yield from (at for at, one in enumerate(node.value.elts) if self._is_result(one))
            elif self._is_result(node.value):
                yield None

    def _is_graph(self, name: str) -> bool:
        """Return True for a name of another derivative, with a graph."""
        return any(
            isinstance(call, ast.Call) and _is_grad(call) and _has_graph(call)
            for one in self._nodes
            if isinstance(one, ast.Assign) and any(name in read_names(target) for target in one.targets)
            for call in source.walk(one.value)
        )


def _names(expressions: Iterable[ast.expr]) -> frozenset[str]:
    return frozenset(name for one in expressions for name in read_names(one))


def _dotted(expressions: Iterable[ast.expr]) -> frozenset[str]:
    """Return the names in expressions, as ``self.c`` where an attribute is read."""
    nodes = [one for each in expressions for one in source.walk(each)]
    read = {id(one.value): one.attr for one in nodes if isinstance(one, ast.Attribute)}
    named = [one for one in nodes if isinstance(one, ast.Name)]
    return frozenset(f"{one.id}.{read[id(one)]}" if id(one) in read else one.id for one in named)


def _is_sum(node: ast.AST | None) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub)


def _operands(node: ast.AST) -> Iterator[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        yield from _operands(node.left)
        yield from _operands(node.right)
    elif isinstance(node, ast.expr):
        yield node


def _is_grad(call: ast.Call) -> bool:
    """Return True for a call of ``autograd.grad``; ``torch.func.grad`` has one argument."""
    several = len(call.args) + len(call.keywords) > 1
    return several and ast.unparse(call.func) in (NAME, "autograd.grad", "grad")


def _has_graph(call: ast.Call) -> bool:
    """Return True unless a call leaves out ``create_graph``, or turns it off."""
    given = [one.value for one in call.keywords if one.arg in ("create_graph", None)] + call.args[4:5]
    return any(not (isinstance(one, ast.Constant) and one.value is False) for one in given)


def _leaves_of(tensors: Iterable[Any]) -> set[int]:
    tensors = list(tensors)
    made = [one.grad_fn for one in tensors if one.grad_fn is not None]
    return {id(one) for one in tensors if one.grad_fn is None} | (below(made)[1] if made else set())


def below(nodes: list[Any]) -> tuple[list[Any], set[int]]:
    """Return some of the operations below others, the nearest first, and the ids of the leaves."""
    made: list[Any] = []
    leaves: set[int] = set()
    for node in _operations(nodes):
        if node.name() == "torch::autograd::AccumulateGrad":
            leaves.add(id(node.variable))
        elif len(made) < _MARKED:
            made.append(node)
    return made, leaves


def _operations(nodes: list[Any]) -> Iterator[Any]:
    """Yield operations and those that they were computed from, breadth first."""
    seen, queue = set(nodes), list(nodes)
    for node in queue:
        yield node
        for following, _ in node.next_functions if len(seen) < _MOST_NODES else ():
            if following is not None and following not in seen:
                seen.add(following)
                queue.append(following)
