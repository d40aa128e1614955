"""Does an expression do more than to return its value? Objects are followed by names; no code of the program runs."""

from __future__ import annotations

import ast
import builtins
import dis
import functools
import inspect
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from truestep.probes.active.rows.origins import resolved

_BUILTINS = {
    abs, bool, dict, enumerate, float, int, isinstance, len, list, max, min, range, reversed, set, sorted, sum, tuple,
    zip,
}  # fmt: skip
_LIBRARIES = ("torch", "numpy", "math", "einops", "random", "itertools", "functools", "copy")
_ACTS = {
    "add", "append", "appendleft", "backward", "clear", "extend", "insert", "load", "load_state_dict", "manual_seed",
    "pop", "popitem", "popleft", "print", "push", "put", "remove", "save", "seed", "send", "setdefault", "step",
    "train", "eval", "update", "write", "zero_grad", "next",
}  # fmt: skip
_STORES = ("STORE_ATTR", "STORE_GLOBAL", "STORE_SUBSCR", "DELETE_ATTR", "DELETE_SUBSCR", "STORE_DEREF", "STORE_SLICE")
_DEEP = 3


def is_pure(value: ast.expr, names: dict[str, Any], torch: Any) -> bool:
    """Return True if an expression only makes a new value, as far as its names show.

    Args:
        value: the expression.
        names: variables at its place.
        torch: the module.
    """
    if isinstance(value, ast.Name | ast.Attribute | ast.Subscript | ast.Constant):
        return False  # another name for a value that exists
    for node in ast.walk(value):
        if isinstance(node, ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom):
            return False
        if isinstance(node, ast.Call) and not _is_pure_call(node, names, torch):
            return False
    return True


def _is_pure_call(node: ast.Call, names: dict[str, Any], torch: Any) -> bool:
    called = node.func
    if any(word.arg in ("out", "inplace") for word in node.keywords):
        return False
    if isinstance(called, ast.Name):
        return _is_pure_object(names.get(called.id, getattr(builtins, called.id, None)), torch, _DEEP)
    if not isinstance(called, ast.Attribute) or called.attr.endswith("_"):
        return False
    owner = resolved(called.value, names)
    if owner is None or isinstance(owner, torch.Tensor):
        plain = hasattr(torch.Tensor, called.attr) or called.attr in ("items", "keys", "values", "get")
        return plain and (owner is not None or called.attr != "add") and called.attr != "backward"
    if called.attr in _ACTS:
        return False
    if isinstance(owner, dict | list | tuple | str):
        return True
    if isinstance(owner, ModuleType):
        if owner.__name__.partition(".")[0] in _LIBRARIES:
            return True
        return _is_pure_object(vars(owner).get(called.attr), torch, _DEEP)
    if isinstance(owner, torch.nn.Module) and called.attr in ("parameters", "named_parameters", "state_dict"):
        return True
    if type(owner).__module__.partition(".")[0] == "torch":
        return not isinstance(owner, torch.nn.Module) or not _has_hooks(owner)
    return _is_pure_object(resolved(called, names), torch, _DEEP)


def _is_pure_object(called: Any, torch: Any, depth: int) -> bool:
    called = called.__func__ if isinstance(called, MethodType) else called
    if isinstance(called, torch.nn.Module):
        kinds = {type(module) for module in called.modules()}
        own = [inspect.getattr_static(kind, "forward", None) for kind in kinds if not _is_library(kind)]
        return not _has_hooks(called) and all(_is_pure_object(one, torch, depth) for one in own)
    if isinstance(called, FunctionType) and not _is_library(called):
        inner = [called.__globals__.get(name) for name in called.__code__.co_names]
        functions = [one for one in inner if isinstance(one, FunctionType) and not _is_library(one)]
        below = depth > 0 and all(one is called or _is_pure_object(one, torch, depth - 1) for one in functions)
        return _is_pure_code(called.__code__) and below
    if isinstance(called, type):
        return called in _BUILTINS or _is_library(called)
    name = getattr(called, "__name__", "_")
    return (
        called in _BUILTINS
        if inspect.isbuiltin(called) and called.__module__ == "builtins"
        else (_is_library(called) and not name.endswith("_") and name not in _ACTS)
    )


def _has_hooks(module: Any) -> bool:
    return any(one._forward_hooks or one._forward_pre_hooks for one in module.modules())


def _is_library(thing: Any) -> bool:
    return str(getattr(thing, "__module__", None) or type(thing).__module__).partition(".")[0] in _LIBRARIES


@functools.lru_cache(maxsize=256)
def _is_pure_code(code: CodeType) -> bool:
    """Return True if a function stores local variables only, and calls no method that changes an object."""
    names = {*code.co_names}
    if not _ACTS.isdisjoint(names) or any(name.endswith("_") and not name.endswith("__") for name in names):
        return False
    if any(one.opname.startswith(_STORES) for one in dis.get_instructions(code)):
        return False
    return all(_is_pure_code(one) for one in code.co_consts if isinstance(one, CodeType))
