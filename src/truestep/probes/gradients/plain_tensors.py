"""Tensors in plain attributes of models that stand for weights: leaves with gradients, or values drawn at random."""

from __future__ import annotations

import ast
import functools
import re
import sys
import weakref
from collections.abc import Iterator
from typing import Any, NamedTuple

from truestep import source
from truestep.events import PlainTensorKept, Site
from truestep.probes.context.scene import Scene
from truestep.probes.context.values import has_values
from truestep.probes.gradients.gradient_states import version
from truestep.probes.optimizer.sampled_measures import fingerprint

_LEAST_STEPS = 10
_MOST = 32
_MOST_ITEMS = 64
_RANDOM = frozenset({"randn", "rand", "normal", "empty", "normal_", "uniform_", "trunc_normal_"})
_ZERO = frozenset({"zeros"})
_LEARNT = frozenset(
    {"weight", "weights", "w", "W", "bias", "pos", "position", "positions", "positional", "embed", "embedding",
     "embeddings", "emb", "token", "tokens", "query", "queries", "prompt", "prompts", "prefix", "prototype",
     "prototypes", "codebook", "gamma", "scale", "gate", "kernel", "slots", "temperature", "logits", "mu", "sigma"}
)  # fmt: skip
_LEARNT_FROM_ZERO = frozenset(
    {"bias", "embed", "embedding", "token", "tokens", "query", "queries", "prompt", "prompts"}
)
_ON_PURPOSE = re.compile(r"random|rand|fixed|noise|fourier|rff|proj|reservoir|echo|esn|hash|freq|frozen", re.IGNORECASE)


class Kept(NamedTuple):
    """A tensor in a plain attribute of a module, as it was first seen."""

    owner: weakref.ref[Any]
    attribute: str
    key: int | str | None
    """Its place, if the attribute is a list or a dict."""
    tensor: int
    """Its id."""
    values: tuple[int, list[str]]
    step: int
    site: Site | None


class PlainTensors:
    """Finds such tensors when a model is first met, and looks at sampled steps whether they have kept their values."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._met: dict[int, list[Kept]] = {}

    def look(self, model: int, module: Any) -> None:
        """Emit the tensors that have kept their values while the model was trained."""
        kept = self._met.get(model)
        if kept is None:
            self._met[model] = [one for part in module.modules() for one in self._found(part, module)][:_MOST]
            return
        for one in kept:
            owner = one.owner()
            tensor = None if owner is None else _item(vars(owner).get(one.attribute), one.key)
            late = self._scene.sampling.step - one.step >= _LEAST_STEPS
            if (
                tensor is None
                or not late
                or id(tensor) != one.tensor
                or _values(tensor) != one.values
                or self._is_held(tensor)
            ):
                continue
            gradient = bool(tensor.requires_grad)
            if gradient and tensor.grad is None:
                continue
            place = one.attribute if one.key is None else f"{one.attribute}[{one.key!r}]"
            self._scene.tell(
                PlainTensorKept,
                model=model,
                kind=type(owner).__name__,
                name=place,
                gradient=gradient,
                site=one.site,
            )

    def _is_held(self, tensor: Any) -> bool:
        """Return True if an optimizer holds a tensor."""
        held = self._scene.ledger.held(tensor)
        return held is not None and held.panel is not None and held.panel.number > 0

    def _found(self, part: Any, root: Any) -> Iterator[Kept]:
        """Yield the tensors of a module that may stand for weights."""
        kind = type(part)
        if kind.__module__.partition(".")[0] == "torch":
            return
        torch = self._scene.torch
        path = getattr(sys.modules.get(kind.__module__), "__file__", None)
        if path is None or self._scene.sites.is_installed(path):
            return
        registered = {id(tensor) for tensor in (*root.parameters(), *root.buffers())}
        for attribute, value in list(vars(part).items()):
            for key, tensor in _items(value):
                if not issubclass(type(tensor), torch.Tensor) or id(tensor) in registered or not tensor.is_leaf:
                    continue
                if not tensor.is_floating_point() or not has_values(tensor):
                    continue
                site = assignment(path, kind.__name__, attribute, drawn=not tensor.requires_grad)
                if tensor.requires_grad or (site is not None and key is None and tensor.numel() > 1):
                    step = self._scene.sampling.step
                    yield Kept(weakref.ref(part), attribute, key, id(tensor), _values(tensor), step, site)


@functools.lru_cache(maxsize=256)
def assignment(path: str, kind: str, attribute: str, *, drawn: bool) -> Site | None:
    """Return the line of a class that assigns an attribute of its objects; None without one.

    Args:
        path: the file of the class.
        kind: name of the class.
        attribute: name of the attribute.
        drawn: whether the line must draw random values, or make zeros, for a tensor with the name of a weight, and
            another method must read it.
    """
    tree = source.parsed(path)
    found = [node for node in (source.walk(tree) if tree is not None else ()) if isinstance(node, ast.ClassDef)]
    for node in found:
        if node.name != kind:
            continue
        for statement in source.walk(node):
            if isinstance(statement, ast.Assign) and (value := _assigned(statement, attribute)) is not None:
                if drawn and not (_is_drawn(value, kind, attribute) and _is_read(node, attribute)):
                    return None
                return Site(path, statement.lineno, statement.col_offset, statement.end_lineno or -1, -1)
    return None


def _assigned(statement: ast.Assign, attribute: str) -> ast.expr | None:
    """Return the expression that a statement assigns to an attribute of ``self``."""
    for target in statement.targets:
        if isinstance(target, ast.Tuple) and isinstance(statement.value, ast.Tuple):
            pairs = zip(target.elts, statement.value.elts, strict=False)
        else:
            pairs = iter([(target, statement.value)])  # type: ignore[assignment]
        for one, value in pairs:
            if isinstance(one, ast.Attribute) and one.attr == attribute and ast.unparse(one.value) == "self":
                return value
    return None


def _is_drawn(value: ast.expr, kind: str, attribute: str) -> bool:
    words = set(re.split(r"[\W_\d]+", attribute))
    calls = {
        node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        for node in source.walk(value)
        if isinstance(node, ast.Call)
    }
    if _ON_PURPOSE.search(f"{kind} {attribute}"):
        return False
    return bool((calls & _RANDOM and words & _LEARNT) or (calls & _ZERO and words & _LEARNT_FROM_ZERO))


def _is_read(kind: ast.ClassDef, attribute: str) -> bool:
    """Return True if a method other than ``__init__`` reads an attribute."""
    methods = [node for node in kind.body if isinstance(node, ast.FunctionDef) and node.name != "__init__"]
    return any(
        isinstance(node, ast.Attribute) and node.attr == attribute and isinstance(node.ctx, ast.Load)
        for method in methods
        for node in source.walk(method)
    )


def _items(value: Any) -> list[tuple[int | str | None, Any]]:
    kind = type(value)  # `isinstance` would run the program's own `__class__`
    if issubclass(kind, list | tuple):
        return list(enumerate(value[:_MOST_ITEMS]))
    if issubclass(kind, dict):
        return [(key, one) for key, one in list(value.items())[:_MOST_ITEMS] if isinstance(key, str)]
    return [(None, value)]


def _item(value: Any, key: int | str | None) -> Any:
    return next((one for place, one in _items(value) if place == key), None)


def _values(tensor: Any) -> tuple[int, list[str]]:
    return version(tensor), fingerprint(tensor)
