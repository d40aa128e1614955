"""Samples without a gradient, of distributions with one.

A sample counts where a module gets it, alone or beside other columns, and where the loss reaches both this module and
the parameters of the distribution. Samples with a probability in the loss (policy gradients) do not count.
"""

from __future__ import annotations

import ast
import functools
import re
import sys
import weakref
from collections.abc import Iterator
from types import CodeType
from typing import TYPE_CHECKING, Any, NamedTuple

from truestep import source
from truestep.events import SampleUsed, Site
from truestep.probes.context.local_variables import variables
from truestep.probes.context.values import has_values
from truestep.probes.unread.statements import scope_of
from truestep.seams.refs import Ref

if TYPE_CHECKING:
    from truestep.probes.context.scene import Scene

_KEY = "truestep distribution"
"""Key in the metadata of the operations that made the parameters of a distribution."""
_KEY_OF_FUNCTION = "truestep mean and spread"
"""The same for the parameters of a function that draws."""
_LEAF = "torch::autograd::AccumulateGrad"
_MOST = 32
_MOST_NODES = 5_000
_MOST_INNER = 3
_ZEROS = ("NormalBackward0", "NormalBackward1", "NormalBackward2", "NormalBackward3")
"""Operations with a gradient of zeros."""
_OF_DENSITIES = re.compile(r"log|prob|nll|loss|density|energy|^step$|append|store|push")
"""Functions that get a sample for another purpose than to be trained on it."""


class _Draw(NamedTuple):
    sample: Ref
    distribution: weakref.ref[Any] | None
    """None for a sample of a function."""
    kind: str
    site: Site | None
    before: frozenset[int]
    """Parameters that the distribution was computed with: a module with one of these gets its own predictions."""


class Draws:
    """The samples of a sampled step."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._drawn: dict[int, _Draw] = {}
        self._used: dict[int, tuple[_Draw, frozenset[int]]] = {}
        """Draws that a module got, with the parameters of the module."""
        self._scored: weakref.WeakSet[Any] = weakref.WeakSet()
        """Distributions that gave a probability."""

    def add(self, distribution: Any, sample: Any, site: Site | None) -> None:
        """Enter a sample, and mark the operations that made the parameters of its distribution."""
        made = [value.grad_fn for value in _parameters(distribution) if _has_graph(value)]
        before = self._before(made) if made and distribution not in self._scored else None
        if len(self._drawn) >= _MOST:
            self._drawn.clear()
        if before is not None:
            for node in made:
                for one in (node, *(following for following, _ in node.next_functions)):
                    if one is not None:
                        one.metadata[_KEY] = True
            kind = type(distribution).__name__
            self._drawn[id(sample)] = _Draw(Ref(sample), weakref.ref(distribution), kind, site, before)

    def add_of_function(self, kind: str, made: list[Any], sample: Any, site: Site | None) -> None:
        """Enter a sample that a function drew from a mean and a spread, which these operations made."""
        before = self._before(made)
        if len(self._drawn) >= _MOST:
            self._drawn.clear()
        if before is not None:
            for node in made:
                node.metadata[_KEY_OF_FUNCTION] = True
            self._drawn[id(sample)] = _Draw(Ref(sample), None, kind, site, before)

    def _before(self, nodes: list[Any]) -> frozenset[int] | None:
        """Return the parameters behind operations of the tape; None if there are too many operations."""
        queue, seen, found = [*nodes], set(nodes), set()
        while queue:
            node = queue.pop()
            if node.name() == _LEAF:
                found.add(self._scene.hold(node.variable).number)
            fresh = {following for following, _ in node.next_functions if following is not None} - seen
            seen |= fresh
            queue += fresh
            if len(seen) > _MOST_NODES:
                return None
        return frozenset(found)

    def scored(self, distribution: Any, value: Any) -> None:
        """Remove the samples of a distribution that gives a probability, and the samples that get one."""
        self._scored.add(distribution)
        for key, draw in [*self._drawn.items()]:
            if (draw.distribution is not None and draw.distribution() is distribution) or draw.sample() is value:
                del self._drawn[key]
                self._used.pop(key, None)

    def passed(self, module: Any, args: tuple[Any, ...]) -> None:
        """Enter that a module gets samples."""
        tensors = [one for one in args if isinstance(one, self._scene.torch.Tensor)] if self._drawn else []
        for key, draw in [*self._drawn.items()] if tensors else ():
            sample = draw.sample()
            if sample is None or not any(self._holds(one, sample) for one in tensors if _is_cut(one)):
                continue
            if draw.distribution is None and not self._only_passed(sample):
                del self._drawn[key]
                continue
            numbers = frozenset(self._scene.hold(p).number for p in module.parameters() if p.requires_grad)
            if numbers.isdisjoint(draw.before):
                self._used[key] = draw, numbers

    def _only_passed(self, sample: Any) -> bool:
        """Return True if the source only passes a sample on: a density of it that is written by hand would need it."""
        for frame in self._scene.sites.users(sys._getframe(1)):
            names = [name for name, value in variables(frame).items() if value is sample]
            if not set(names) <= passed_names(frame.f_code):
                return False
        return True

    def _holds(self, tensor: Any, sample: Any) -> bool:
        """Return True if a tensor is a sample, or has its columns at its beginning or end."""
        if tensor is sample:
            return True
        if tensor.dim() < 2 or tensor.shape[:-1] != sample.shape[:-1] or tensor.dtype != sample.dtype:
            return False
        if tensor.device != sample.device or not (has_values(tensor) and has_values(sample)):
            return False
        equal, width = self._scene.torch.equal, sample.shape[-1]
        return width > 0 and bool(equal(tensor[..., :width], sample) or equal(tensor[..., -width:], sample))

    @property
    def pending(self) -> bool:
        """Return True if a module got a sample since the last backward pass."""
        return bool(self._used)

    def tell(self, reached: dict[int, int], marked: bool, roots: list[Any], site: Site | None) -> None:
        """Emit the samples behind which a loss trains a module, if it trains their distribution as well.

        Args:
            reached: parameters that the loss reaches.
            marked: whether it reaches the parameters of a distribution with a sample.
            roots: operations that made the outputs of the backward pass.
            site: place of the backward pass.
        """
        of_function = any(draw.distribution is None for draw, _ in self._used.values()) and _is_apart(roots)
        for draw, numbers in self._used.values():
            trained = of_function if draw.distribution is None else marked
            if trained and not numbers.isdisjoint(reached):
                self._scene.tell(
                    SampleUsed, kind=draw.kind, parameters=tuple(sorted(numbers)), site=draw.site, loss=site
                )
        self._drawn.clear()
        self._used.clear()
        self._scored.clear()


def _is_cut(tensor: Any) -> bool:
    """Return True for a tensor without a gradient, and for a sample of ``torch.normal``, with one of zeros."""
    return not tensor.requires_grad or (tensor.grad_fn is not None and tensor.grad_fn.name() in _ZEROS)


def _is_apart(roots: list[Any]) -> bool:
    """Return True if a loss reaches mean and spread of a sample, and no trained module is on the way to them."""
    users: dict[Any, list[Any]] = {}
    queue, seen = [*roots], set(roots)
    while queue and len(seen) < _MOST_NODES:
        node = queue.pop()
        for following, _ in node.next_functions if node.name() not in _ZEROS else ():
            if following is None:
                continue
            users.setdefault(following, []).append(node)
            if following not in seen:
                seen.add(following)
                queue.append(following)
    above: set[Any] = set()
    made = {node for node in users if _KEY_OF_FUNCTION in node.metadata}
    queue = [*made]
    while queue:
        fresh = {user for user in users.get(queue.pop(), ()) if user not in above}
        above |= fresh
        queue += fresh
    inputs = [following for node in above for following, _ in node.next_functions if following not in above]
    return bool(above) and not any(_is_weight(node) for node in inputs if node is not None and node not in made)


def _is_weight(node: Any) -> bool:
    """Return True for a parameter, also for a transposed one."""
    following = node.next_functions[0][0] if node.name() == "TBackward0" else node
    return following is not None and following.name() == _LEAF


@functools.lru_cache(maxsize=64)
def passed_names(code: CodeType) -> frozenset[str]:
    """Return the variables of a function that it only passes to calls or returns, and does not compute with."""
    scope = scope_of(code)
    names: dict[str, bool] = {}
    for node in source.walk(scope) if scope is not None else ():
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Load):
                names[child.id] = names.get(child.id, True) and _passes(node, child)
    return frozenset(name for name, passes in names.items() if passes)


def _passes(node: ast.AST, name: ast.Name) -> bool:
    if isinstance(node, ast.Call):
        called = ast.unparse(node.func).rpartition(".")[2].lower()
        return node.func is not name and not _OF_DENSITIES.search(called)
    return isinstance(node, ast.Return | ast.Tuple | ast.List | ast.Attribute | ast.keyword | ast.Assign)


def is_marked(node: Any) -> bool:
    """Return True if an operation made a parameter of a distribution with a sample in this step."""
    return _KEY in node.metadata


def _parameters(distribution: Any) -> Iterator[Any]:
    """Yield the attributes of a distribution, and of those inside of it."""
    for _ in range(_MOST_INNER):
        yield from vars(distribution).values()
        distribution = getattr(distribution, "base_dist", None)
        if distribution is None:
            return


def _has_graph(value: Any) -> bool:
    return getattr(value, "grad_fn", None) is not None
