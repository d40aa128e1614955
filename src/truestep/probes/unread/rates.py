"""Learning rates that a script computes in its loop and that only its log gets, while the optimizer keeps its own.

The source shows that a rate goes nowhere else; its values at sampled steps, and the rates of the optimizer, show the
rest. An attribute or a key of an optimizer of torch that torch never reads needs no source.
"""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Iterator
from types import CodeType, FrameType
from typing import Any

from truestep import source
from truestep.events import RateComputed, Site
from truestep.probes.context.local_variables import variables
from truestep.probes.context.scene import Scene
from truestep.probes.unread.statements import scope_of, statements_of

_FRAMES = 3
_MOST = 8
_OBJECTS = 200
"""Variables of a frame that are looked at for an object with a rate."""
_FILLERS = {"new", "cur", "curr", "current", "now", "next", "it", "t", "i", "epoch", "step", "scheduled", "decayed"}
"""Words of a name beside "lr" that leave it the rate of the next step; `effective_lr` and `lr_scale` are others."""
_FROM_OPTIMIZERS = {"param_groups", "get_last_lr", "defaults", "state_dict"}
_SHOWN_BY = {
    "print", "log", "info", "debug", "warning", "append", "write", "writerow", "format", "add_scalar", "log_metric",
    "log_metrics", "log_dict", "set_postfix", "set_description", "echo",
}  # fmt: skip
_CARRIERS = (ast.Dict, ast.List, ast.Tuple, ast.keyword, ast.Starred, ast.BinOp, ast.UnaryOp, ast.IfExp)
_CONVERSIONS = {"round", "float", "str", "dict"}
_KEYS = ("learning_rate", "learningrate", "LR", "rate")


class ComputedRates:
    """Emits `RateComputed` for rates that the optimizer of a step does not get."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene

    def look(self, optimizer: Any, number: int, frame: FrameType | None) -> None:
        """Read the computed rates at a sampled step.

        Args:
            optimizer: the optimizer.
            number: its number.
            frame: the user's frame that steps it.
        """
        found = list(_ignored(optimizer)) if type(optimizer).__module__.startswith("torch.optim") else []
        path = frame.f_code.co_filename if frame is not None else ""
        rates = [(name, value, _assignment(path, name)) for name, value in found]
        for one in self._scene.sites.users(frame)[:_FRAMES]:
            rates += _of_frame(one, self._scene.torch)
        for name, value, site in rates[:_MOST]:
            self._scene.tell(RateComputed, optimizer=number, name=name, rate=float(f"{value:.6g}"), site=site)


def _ignored(optimizer: Any) -> Iterator[tuple[str, Any]]:
    """Yield rates in attributes and keys of an optimizer of torch that no step reads, unless it has them anyway."""
    used = [group.get("lr") for group in optimizer.param_groups]
    found = {f"optimizer.{name}": value for name, value in vars(optimizer).items() if _is_rate(name)}
    found['optimizer.defaults["lr"]'] = optimizer.defaults.get("lr")
    for group in optimizer.param_groups[:1]:
        found |= {f'group["{key}"]': group.get(key) for key in _KEYS}
    for name, value in found.items():
        if _is_number(value) and not any(_is_number(rate) and rate == value for rate in used):
            yield name, value


def _of_frame(frame: FrameType, torch: Any) -> list[tuple[str, float, Site]]:
    code = frame.f_code
    function = bool(code.co_flags & inspect.CO_OPTIMIZED)
    names = variables(frame) if function else frame.f_globals
    found: list[tuple[str, Any, Site]] = [(name, names.get(name), site) for name, site in _computed(code).items()]
    for name, value in list(names.items())[:_OBJECTS]:
        kind = type(value)
        if kind.__module__ != frame.f_globals.get("__name__") or issubclass(
            kind, torch.nn.Module | torch.optim.Optimizer
        ):
            continue
        for attribute, held in _attributes(value).items():
            if _is_rate(attribute) and _is_number(held):
                site = _computed_attributes(code.co_filename, kind.__name__, name).get(attribute)
                if site is not None:
                    found.append((f"{name}.{attribute}", held, site))
    return [(name, value, site) for name, value, site in found if _is_number(value)]


def _attributes(value: Any) -> dict[str, Any]:
    """Return the attributes of an object; a proxy can run code of the program for ``__dict__``."""
    try:
        found = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return {}
    return found if type(found) is dict else {}


def _is_number(value: Any) -> bool:
    return type(value) is float or type(value) is int


def _is_rate(name: str) -> bool:
    """Return True for a name of the learning rate of a step.

    >>> _is_rate("lr"), _is_rate("new_lr"), _is_rate("learning_rate"), _is_rate("base_lr"), _is_rate("effective_lr")
    (True, True, True, False, False)
    """
    words = name.lower().strip("_").replace("learning_rate", "lr").split("_")
    return words.count("lr") == 1 and _FILLERS.issuperset(word for word in words if word != "lr")


@functools.lru_cache(maxsize=256)
def _computed(code: CodeType) -> dict[str, Site]:
    """Return the variables of a function or the main file that a loop computes as a rate, and only a log reads."""
    scope, tree = scope_of(code), source.parsed(code.co_filename)
    if scope is None or tree is None:
        return {}
    stored: dict[str, Site] = {}
    looped = set[int]()
    for statement, inside, _ in statements_of(scope):
        if not inside:
            continue
        looped.update(id(node) for node in ast.walk(statement))
        target = _target(statement)
        if isinstance(target, ast.Name) and _is_rate(target.id) and _is_made(statement):
            stored.setdefault(target.id, _site(code.co_filename, statement, code.co_name))
    parents = source.parents(tree)
    for name in list(stored):
        for node in _loads(scope, name, whole=scope is tree):
            within = id(node) in looped or _function_of(node, parents) is not scope
            if within and not _is_shown(node, parents, ast.Name(name, ast.Load())):
                stored.pop(name, None)
    return stored


def _loads(scope: ast.AST, name: str, *, whole: bool) -> Iterator[ast.Name]:
    """Yield the places that read a variable; functions of the main file that have one of this name are others."""
    queue: list[ast.AST] = [scope]
    while queue:
        node = queue.pop()
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
            yield node
        for child in ast.iter_child_nodes(node):
            own = whole and isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) and name in _own_names(child)
            if not own:
                queue.append(child)


def _own_names(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    names = {node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg)}
    for node in ast.walk(function):
        if isinstance(node, ast.Global | ast.Nonlocal):
            return names
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return names


@functools.lru_cache(maxsize=256)
def _computed_attributes(path: str, kind: str, variable: str) -> dict[str, Site]:
    """Return the attributes of the objects of a class that its methods compute as a rate, and only a log reads.

    Args:
        path: file of the class and of the loop.
        kind: name of the class.
        variable: variable of the loop with an object of it.
    """
    tree = source.parsed(path)
    parents = {} if tree is None else source.parents(tree)
    stored: dict[str, Site] = {}
    loads: list[ast.Attribute] = []
    for node in source.walk(tree) if tree is not None else ():
        if isinstance(node, ast.stmt) and isinstance(target := _target(node), ast.Attribute):
            within = _class_of(node, parents) == kind or ast.unparse(target.value) == variable
            method = getattr(_function_of(node, parents), "name", "")
            if within and method != "__init__" and _is_rate(target.attr) and _is_made(node):
                stored.setdefault(target.attr, _site(path, node, method or "<module>"))
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and _is_rate(node.attr):
            loads.append(node)
    for node in loads:
        of_another = ast.unparse(node.value) == "self" and _class_of(node, parents) not in (kind, "")
        if not of_another and not _is_settings(node) and not _is_shown(node, parents, node):
            stored.pop(node.attr, None)
    return stored


def _is_settings(node: ast.Attribute) -> bool:
    """Return True for an attribute of the settings of a script, such as ``args.lr``."""
    name = ast.unparse(node.value).rpartition(".")[2].lower()
    return name in (
        "args",
        "arguments",
        "cfg",
        "config",
        "opt",
        "opts",
        "options",
        "hparams",
        "hp",
        "settings",
        "params",
    )


def _is_shown(node: ast.AST, parents: dict[ast.AST, ast.AST], read: ast.expr) -> bool:
    """Return True if a value is only printed, logged, or used to compute its own next value."""
    own = ast.unparse(read)
    while not isinstance(up := parents[node], ast.stmt):
        if isinstance(up, ast.JoinedStr | ast.FormattedValue):
            return True
        if isinstance(up, ast.BinOp) and isinstance(up.op, ast.Mod) and isinstance(up.left, ast.Constant):
            return isinstance(up.left.value, str)
        if isinstance(up, ast.Call):
            name = up.func.attr if isinstance(up.func, ast.Attribute) else getattr(up.func, "id", "")
            if node is not up.func and name in _SHOWN_BY:
                return True
            if node is up.func or not (name in _CONVERSIONS or _is_own(up, parents, own)):
                return False
        elif not isinstance(up, _CARRIERS):
            return False
        node = up
    return isinstance(up, ast.Expr) or _is_own(up, parents, own)


def _is_own(node: ast.AST, parents: dict[ast.AST, ast.AST], own: str) -> bool:
    """Return True if an expression is a part of the one that is assigned to the same name."""
    while not isinstance(node, ast.stmt):
        node = parents[node]
    target = _target(node)
    return target is not None and ast.unparse(target) == own


def _target(statement: ast.AST) -> ast.expr | None:
    """Return the only target of an assignment."""
    if isinstance(statement, ast.Assign):
        return statement.targets[0] if len(statement.targets) == 1 else None
    return statement.target if isinstance(statement, ast.AugAssign | ast.AnnAssign) else None


def _is_made(statement: ast.AST) -> bool:
    """Return True if an assignment computes a number, and does not read that of an optimizer."""
    if isinstance(statement, ast.AugAssign):
        return True
    value = getattr(statement, "value", None)
    if not isinstance(value, ast.Call | ast.BinOp | ast.IfExp):
        return False
    words = {getattr(node, "attr", getattr(node, "id", "")) for node in ast.walk(value)}
    return _FROM_OPTIMIZERS.isdisjoint(words)


def _function_of(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> ast.AST:
    """Return the function around a node, else the file."""
    while (up := parents.get(node)) is not None:
        if isinstance(up, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            return up
        node = up
    return node


def _class_of(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> str:
    while (up := parents.get(node)) is not None:
        if isinstance(up, ast.ClassDef):
            return up.name
        node = up
    return ""


@functools.lru_cache(maxsize=64)
def _assignment(path: str, name: str) -> Site | None:
    """Return the only line of a file that assigns an attribute or a key of this name to any object."""
    tree, end = source.parsed(path), name.partition(".")[2] or name.partition("[")[2]
    found = [
        _site(path, node, "<module>")
        for node in (source.walk(tree) if tree is not None else ())
        if isinstance(node, ast.stmt)
        and (target := _target(node)) is not None
        and isinstance(target, ast.Attribute | ast.Subscript)
        and ast.unparse(target).replace("'", '"').endswith(end)
    ]
    return found[0] if len(found) == 1 else None


def _site(path: str, node: ast.stmt, function: str) -> Site:
    return Site(path, node.lineno, node.col_offset, node.end_lineno or node.lineno, node.end_col_offset or 0, function)
