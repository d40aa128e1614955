"""Find attributes that were meant to freeze parameters but do not: ``requires_grad`` of a module, a misspelling."""

from __future__ import annotations

import ast
import functools
import weakref
from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType
from typing import Any

from truestep import source
from truestep.events import FreezeIgnored, Site
from truestep.probes.context.scene import Scene
from truestep.seams.code.functions import code_of

_ATTRIBUTE = "requires_grad"
MISSPELT = ("require_grad", "requires_grads", "require_grads", "required_grad")
_MOST = 16
_LONGEST = 1_000_000


class Freezes:
    """Examines the modules and parameters of models at sampled steps."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._frozen: weakref.WeakSet[Any] = weakref.WeakSet()
        """Modules that had frozen parameters: later trainable parameters in them are intended."""
        self._frozen_parameters: set[int] = set()
        self._events: dict[tuple[int, str, str], FreezeIgnored] = {}

    def look(self) -> None:
        """Emit the modules and parameters that have such an attribute and are trainable."""
        for model in self._scene.numbers.alive("trained model"):
            number = self._scene.numbers.known("model", model) or 0
            for holder, attribute, parameters in self._found(model):
                key = (number, holder, attribute)
                event = self._events.get(key)
                if event is None:
                    if len(self._events) >= _MOST:
                        return
                    event = self._events[key] = FreezeIgnored(
                        model=number,
                        holder=holder,
                        attribute=attribute,
                        parameters=parameters,
                        site=self._assignment(attribute, holder),
                    )
                self._scene.emit(event)

    def _found(self, model: Any) -> Iterator[tuple[str, str, tuple[int, ...]]]:
        ledger = self._scene.ledger
        for path, module in model.named_modules():
            own = vars(module)
            names = [name for name in (_ATTRIBUTE, *MISSPELT) if own.get(name) is False]
            if names and not (names[0] == _ATTRIBUTE and minds(type(module))):
                parameters = list(module.parameters())
                if not all(parameter.requires_grad for parameter in parameters):
                    self._frozen.add(module)
                elif parameters and module not in self._frozen:
                    known = [ledger.held(parameter) for parameter in parameters]
                    yield path, names[0], tuple(one.number for one in known if one is not None)
        misspelt: dict[str, list[int]] = {}
        first: dict[str, str] = {}
        for name, parameter in model.named_parameters():
            held = ledger.held(parameter)
            wrong = [word for word in MISSPELT if vars(parameter).get(word) is False]
            if not wrong or held is None:
                continue
            if not parameter.requires_grad:
                self._frozen_parameters.add(held.number)
            elif held.number not in self._frozen_parameters:
                misspelt.setdefault(wrong[0], []).append(held.number)
                first.setdefault(wrong[0], name)
        for word, numbers in misspelt.items():
            yield first[word], word, tuple(numbers)

    def _assignment(self, attribute: str, holder: str) -> Site | None:
        """Return the line of the program that sets the attribute; None if zero or several lines do."""
        found: list[tuple[str, Site]] = []
        for path in self._scene.sites.own_files():
            try:
                with open(path, encoding="utf-8") as file:
                    named = f".{attribute}" in file.read(_LONGEST)
            except (OSError, ValueError):
                continue
            tree = source.parsed(path) if named else None
            if tree is not None:
                found.extend(_targets(tree, attribute, path))
        if len(found) > 1:
            last = holder.rpartition(".")[2]
            found = [one for one in found if last and one[0].endswith(f".{last}")]
        return found[0][1] if len(found) == 1 else None


def freeze_line(paths: Iterable[str]) -> Site | None:
    """Return the only line of some files that freezes parameters."""
    found = [site for path in paths for site in _freezes(path)]
    return found[0] if len(found) == 1 else None


@functools.lru_cache(maxsize=64)
def _freezes(path: str) -> tuple[Site, ...]:
    tree = source.parsed(path)
    found: list[ast.Call | ast.Assign] = []
    for node in source.walk(tree) if tree is not None else ():
        match node:
            case ast.Call(func=ast.Attribute(attr="requires_grad_"), args=[ast.Constant(value=False)]):
                found.append(node)
            case ast.Assign(targets=[ast.Attribute(attr="requires_grad")], value=ast.Constant(value=False)):
                found.append(node)
    return tuple(
        Site(path, one.lineno, one.col_offset, one.end_lineno or -1, one.end_col_offset or -1) for one in found
    )


def minds(kind: type) -> bool:
    """Return True if the code of a class itself uses ``requires_grad``: it then handles the attribute."""
    for base in kind.__mro__:
        if base.__module__.startswith("torch.") or base is object:
            continue
        for value in vars(base).values():
            function = getattr(value, "__func__", getattr(value, "fget", value))
            code = code_of(function) if isinstance(function, FunctionType) else None
            if code is not None and any(_ATTRIBUTE in (*part.co_names, *part.co_consts) for part in _codes(code)):
                return True
    return False


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _targets(tree: ast.AST, attribute: str, path: str) -> Iterator[tuple[str, Site]]:
    """Yield the places that set an attribute to False; parameters of a loop get the attribute by its variable."""
    loops = [
        node for node in source.walk(tree) if isinstance(node, ast.For) and "parameters(" in ast.unparse(node.iter)
    ]
    looped = {id(inner) for loop in loops for inner in source.walk(loop)} if attribute == _ATTRIBUTE else set()
    for node in source.walk(tree):
        if not isinstance(node, ast.Assign) or id(node) in looped:
            continue
        if not isinstance(node.value, ast.Constant) or node.value.value is not False:
            continue
        for target in node.targets:
            if isinstance(target, ast.Attribute) and target.attr == attribute:
                end = node.end_lineno or node.lineno, node.end_col_offset or -1
                yield ast.unparse(target.value), Site(path, node.lineno, node.col_offset, *end)
